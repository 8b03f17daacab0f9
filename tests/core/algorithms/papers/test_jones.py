"""The algorithm `jones`, in every metric, and its refusals of bad sites before any plan exists."""

from itertools import combinations, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from core.algorithms import registry
from core.data import ArraySource, Dense, Ids, Stored, read_sites
from core.errors import InvalidRequest
from core.plan import Plan, Request
from core.postprocessing.medoids import weighted_medoids
from core.privacy import Budget
from core.privacy.losses import Approximate
from core.statistics.counts import SiteCounts
from core.views import SiteDistances
from tests.support.privacy import epsilon_at, is_pure

CITY = Dense.box([0, 0], [10, 10], ["x", "y"], size=4000)
GLOBE = Dense.box([-60, -180], [60, 180], ["lat", "lon"], size=4000)
LINE = Ids(count=60, size=4000)

Floats = npt.NDArray[np.float64]


def points(count: int = 60) -> list[list[float]]:
    found: list[list[float]] = np.random.default_rng(1).uniform(0, 10, size=(count, 2)).tolist()
    return found


def coordinates(**more: Any) -> dict[str, Any]:
    return {"kind": "coordinates", "points": points(), **more}


def matrix(places: Floats | None = None) -> dict[str, Any]:
    at = np.arange(60.0) if places is None else places
    return {"kind": "distances", "matrix": np.abs(at[:, None] - at).tolist()}


def plan(
    domain: Stored,
    sites: Any,
    k: int = 3,
    budget: Budget | None = None,
    objective: str = "medians",
    **options: Any,
) -> Plan:
    chosen = {"sites": sites, **options}
    return registry.plan(domain, Request(k, budget or Budget.of(2), objective, "jones", chosen))


# --- refusals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("domain", "sites", "reason"),
    [
        (CITY, None, "give a set of public sites"),
        (CITY, coordinates(points=[*points(), [11.0, 3.0]]), "point 60 lies outside the dataset's bounds"),
        (CITY, coordinates(points=[*points(), points()[4]]), "points 4 and 60 are the same"),
        (CITY, coordinates(points=points(2)), "2 sites cannot hold k = 3"),
        (CITY, coordinates(points=[[1.0, float("nan")]] * 3), "finite"),
        (CITY, matrix(), "records are site numbers"),
        (LINE, coordinates(), "dense columns"),
        (LINE, {"kind": "distances", "matrix": matrix()["matrix"][:59]}, "square"),
        (LINE, {"kind": "distances", "matrix": np.triu(np.ones((60, 60)), 1).tolist()}, "symmetric"),
        (LINE, {"kind": "distances", "matrix": np.zeros((5, 5)).tolist()}, "60 sites"),
    ],
)
def test_bad_sites_are_refused_before_a_plan_exists(domain: Stored, sites: Any, reason: str) -> None:
    with pytest.raises(InvalidRequest, match=reason) as refusal:
        plan(domain, sites)
    assert refusal.value.parameter == "options.sites"


def test_an_accounting_with_a_delta_is_refused_where_none_is_offered() -> None:
    with pytest.raises(InvalidRequest, match="delta") as refusal:
        plan(CITY, coordinates(), accounting="approximate")
    assert refusal.value.parameter == "options.accounting"


# --- plans ------------------------------------------------------------------------------------------------


def test_the_default_is_pure_whatever_the_budget() -> None:
    assert is_pure(plan(CITY, coordinates(), budget=Budget.of(1, "0.00001")).composition)


@pytest.mark.parametrize("accounting", ["approximate", "jones"])
@pytest.mark.parametrize("rows", [1, 5])
def test_other_accountings_stay_within_the_budget_of_a_person(accounting: str, rows: int) -> None:
    domain = Dense.box([0, 0], [10, 10], size=4000, rows_per_person=rows)
    budget = Budget.of(1, "0.00001")
    made = plan(domain, coordinates(), budget=budget, accounting=accounting)
    loss = made.step("cover").mechanism.loss
    assert isinstance(loss, Approximate)
    assert made.composition.within(budget)
    assert epsilon_at(made.composition, budget.delta) > 0.99


def test_radii_grow_up_to_the_largest_possible_distance() -> None:
    made = plan(CITY, coordinates(), growth=2.0)
    radii = made.parameters["radii"]
    assert radii == sorted(set(radii))
    assert radii[-1] == SiteDistances.of(CITY, read_sites(CITY, coordinates())).reach
    assert all(1.9 < b / a < 2.1 for a, b in pairwise(radii))


# --- runs -------------------------------------------------------------------------------------------------


def town(domain: Dense, centres: Floats, spread: float) -> ArraySource:
    draw = np.random.default_rng(2)
    rows = centres[draw.integers(0, len(centres), 4000)] + draw.normal(size=(4000, 2)) * spread
    return ArraySource(domain, rows)


def test_sites_in_the_middle_of_separate_towns_are_found() -> None:
    towns = np.array([[1.0, 1.0], [9.0, 2.0], [5.0, 8.0]])
    sites = np.concatenate([np.array(points()), towns])
    made = plan(CITY, coordinates(points=sites.tolist()), budget=Budget.of(20), objective="means")
    found = registry.run(made, town(CITY, towns, 0.2))
    # False alarm: at epsilon 20 a wrong site would need noise of hundreds of records, far below 1e-6.
    assert sorted(map(tuple, found.centres)) == sorted(map(tuple, towns))
    assert found.sizes is not None
    assert found.sizes.sum() == pytest.approx(4000, abs=400)


def test_centres_on_the_globe_are_near_across_the_date_line() -> None:
    east_and_west = np.array([[0.0, 179.0], [0.0, -179.0], [0.0, 0.0]])
    given = {
        "kind": "coordinates",
        "metric": "great-circle",
        "points": [[0.0, 180.0], [0.0, 120.0], [1.0, 0.0]],
    }
    made = plan(GLOBE, given, k=2, budget=Budget.of(20))
    found = registry.run(made, town(GLOBE, east_and_west, 0.1))
    assert sorted(map(tuple, found.centres)) == [(0.0, 180.0), (1.0, 0.0)]


def test_records_that_are_site_numbers_are_served_by_a_matrix() -> None:
    ids = np.repeat([5, 6, 7, 30, 31, 32, 50], [500, 500, 500, 500, 500, 500, 1000])
    # Nine picks at the smallest radius, so all seven sites with records are listed and counted for themselves
    # (each outweighs an empty site by far more than e^100); with six, one is left to its neighbours.
    generous = plan(LINE, matrix(), budget=Budget.of(20), rounds=9)
    found = registry.run(generous, ArraySource(LINE, ids))
    assert found.centres[:, 0].tolist() == [6.0, 31.0, 50.0]
    assert found.details["sites"] == [6, 31, 50]


def test_a_higher_power_moves_centres_towards_what_is_far() -> None:
    ids = np.repeat([0, 40], [3000, 1000])
    near, far = (
        registry.run(
            plan(LINE, matrix(), k=1, budget=Budget.of(20), power=power), ArraySource(LINE, ids)
        ).centres[0, 0]
        for power in (1, 8)
    )
    assert near == 0
    assert 15 <= far <= 25


@pytest.mark.parametrize(
    ("domain", "sites"),
    [(CITY, coordinates()), (GLOBE, coordinates(metric="great-circle")), (LINE, matrix())],
    ids=["plane", "sphere", "matrix"],
)
def test_site_counts_are_counts_of_nearest_sites(domain: Dense | Ids, sites: dict[str, Any]) -> None:
    draw = np.random.default_rng(7)
    rows = draw.integers(0, 60, 300) if isinstance(domain, Ids) else draw.uniform(0, 10, size=(300, 2))
    chunk = ArraySource(domain, rows).loaders()[0]()
    distances = SiteDistances.of(domain, read_sites(domain, sites))
    listed = np.array([3, 8, 20, 41])
    statistic = SiteCounts(distances, listed)
    away = distances.distances(np.asarray(chunk.rows))[:, listed]
    counts = statistic.of(chunk)
    assert counts.sum() == 300
    strictly = (away < np.sort(away, axis=1)[:, 1:2]).sum(axis=0)  # not counting ties in whole steps
    ties = 300 - strictly.sum()
    assert np.all(counts >= strictly)
    assert np.all(counts <= strictly + ties)


# --- the solver -------------------------------------------------------------------------------------------


def test_the_solver_finds_the_best_sites_of_a_small_instance() -> None:
    draw = np.random.default_rng(11)
    better = 0
    for _ in range(20):
        costs, weights = draw.uniform(size=(15, 8)), draw.uniform(size=15)
        found = weighted_medoids(costs, weights, 3)
        best = min(float(weights @ costs[:, list(c)].min(axis=1)) for c in combinations(range(8), 3))
        assert len(set(found.tolist())) == 3
        better += bool(float(weights @ costs[:, found].min(axis=1)) <= best * 1.0001)
    assert better >= 17  # swaps of one site at a time may end in a local optimum


def test_the_solver_takes_weights_of_zero_and_k_equal_to_the_sites() -> None:
    assert weighted_medoids(np.ones((2, 3)), np.zeros(2), 3).tolist() == [0, 1, 2]
    assert len(weighted_medoids(np.zeros((1, 5)), np.ones(1), 1)) == 1
