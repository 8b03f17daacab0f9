"""The algorithms `chaturvedi` and `jones-euclidean`: their plans, their options and what they find."""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from core.algorithms import registry
from core.algorithms.papers.stages.max_coverage import above_noise, growing_radii
from core.algorithms.papers.stages.recovery import GroupMeans
from core.coverage.grid_balls import GridBalls
from core.data import UNITS, ArraySource, Dense
from core.kernels.sparse_counts import SparseCounts
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import GaussianNoise, LaplaceNoise
from core.plan import Plan, Request
from core.postprocessing.medoids import weighted_medians
from core.privacy import Budget
from core.privacy.composition import compose, gaussian_delta
from core.privacy.losses import Approximate, Pure
from core.privacy.shares import Shares
from core.views import Encoded
from tests.support.privacy import epsilon_at

Floats = npt.NDArray[np.float64]

BOTH = pytest.mark.parametrize("name", ["chaturvedi", "jones-euclidean"])
BUDGET = Budget.of(1, "0.000001")


def domain(size: int = 20_000, dimension: int = 30, rows: int = 1) -> Dense:
    return Dense.ball(10.0, dimension=dimension, size=size, rows_per_person=rows)


def plan(
    name: str, where: Dense, budget: Budget = BUDGET, k: int = 4, objective: str = "means", **options: Any
) -> Plan:
    return registry.plan(where, Request(k, budget, objective, name, options))


# --- plans ------------------------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize(
    ("size", "dimension", "expected"), [(100, 30, 2), (60_000, 784, 5), (10**9, 784, 5), (60_000, 3, 3)]
)
def test_the_dimension_follows_from_the_public_size(
    name: str, size: int, dimension: int, expected: int
) -> None:
    assert plan(name, domain(size, dimension)).parameters["dimension"] == expected


@BOTH
@pytest.mark.parametrize("rows", [1, 7])
@pytest.mark.parametrize("accounting", ["pure", "approximate", "paper"])
def test_every_accounting_fills_the_budget_of_a_person(name: str, rows: int, accounting: str) -> None:
    chosen = (
        {"chaturvedi": "chaturvedi", "jones-euclidean": "jones"}[name]
        if accounting == "paper"
        else accounting
    )
    made = plan(name, domain(rows=rows), accounting=chosen)
    loss = made.step("cover").mechanism.loss
    assert isinstance(loss, Pure if accounting == "pure" else Approximate)
    assert made.composition.within(BUDGET)
    assert epsilon_at(made.composition, BUDGET.delta) > 0.98


@pytest.mark.parametrize("epsilon", ["0.01", "1", "30", "900"])
@pytest.mark.parametrize("lloyd", [0, 2])
@pytest.mark.parametrize("averages", ["tight", "paper"])
def test_both_kinds_of_averages_keep_any_budget(epsilon: str, lloyd: int, averages: str) -> None:
    budget = Budget.of(epsilon, "0.000001")
    assert plan("chaturvedi", domain(), budget, averages=averages, lloyd=lloyd).composition.within(budget)


def test_the_papers_averages_have_three_times_the_noise() -> None:
    wide, whole = Dense.box(0, 1, dimension=10**6, size=100), Shares(Budget.of(1, "0.000001"))
    sizes, sums = (step.mechanism for step in GroupMeans(wide, whole, 1.0, constants="paper").steps())
    assert isinstance(sizes, LaplaceNoise)
    assert isinstance(sums, GaussianNoise)
    assert 1 / sums.mu == pytest.approx(13.7, abs=0.1)
    # Nearly all of the budget goes to sums when columns are many.
    sizes, sums = (step.mechanism for step in GroupMeans(wide, whole, 1.0).steps())
    assert isinstance(sizes, GaussianNoise)
    assert isinstance(sums, GaussianNoise)
    assert 1 / sums.mu == pytest.approx(4.23, abs=0.1)  # mu of (1, 1e-6) is 0.2368


def test_the_papers_constant_would_break_its_promise_at_a_large_epsilon() -> None:
    """A loop on no records, and on one that 1 of 100 sets holds: it escapes all rounds too often."""
    epsilon, delta, sets = 20.0, 0.5, 100
    printed = epsilon / (2 * math.log(math.e / delta))

    def excess(eta: float) -> float:
        """P[never picked] without the record, less e^epsilon times P[never picked] with it, at its most."""
        growth = 1 + (math.exp(eta) - 1) / sets
        return max(
            (1 - 1 / sets) ** rounds * (1 - math.exp(epsilon - rounds * math.log(growth)))
            for rounds in range(1, 400)
        )

    assert excess(printed) > delta
    assert excess(CoverageChoice(epsilon, delta, "jones").eta) <= delta


def test_the_papers_average_would_break_its_promise_at_a_large_epsilon() -> None:
    """Removing one of m records moves a mean by up to the diameter over m: more than the noise hides."""
    epsilon, delta = 50.0, 1e-6
    printed = 4 * epsilon / (5 * math.sqrt(2 * math.log(3.5 / delta)))
    assert gaussian_delta(printed, epsilon) > 100 * delta
    budget = Budget.of(50, "0.000001")
    built = GroupMeans(domain(), Shares(budget), 1.0, constants="paper").steps()
    assert compose([(step.mechanism.loss, 1) for step in built]).within(budget)


def test_a_grid_that_grows_with_what_it_covers_would_show_a_record() -> None:
    """A record at the edge reaches points outside the grid: in print, to be picked only if it is there."""
    where = Dense.box(-1.0, 1.0, dimension=1, size=100)
    family = GridBalls(Encoded.of(where), (UNITS,), 1)
    (edge,) = (loader() for loader in ArraySource(where, [[1.0]]).loaders())
    cell = family.parts(family.positions(edge, np.arange(1)), 0)
    assert isinstance(cell, SparseCounts)
    printed = family.coordinates(0, cell.cells) + family.offsets
    assert printed.max() > family.half(0)
    counts_of_sets = family.set_counts(0)
    counts_of_sets.change(cell, 1)
    assert np.abs(family.coordinates(0, counts_of_sets.listed()[0])).max() <= family.half(0)


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_a_coverage_loop_for_several_rows_keeps_its_share(rows: int) -> None:
    loss = Shares(BUDGET, rows).approximate(0.5, 0.5).for_group(rows)
    assert loss.epsilon <= 0.5
    assert loss.delta <= BUDGET.delta / 2


def test_radii_double_from_a_part_of_the_largest() -> None:
    assert growing_radii(1600, 16, 2.0) == (100, 200, 400, 800, 1600)
    assert growing_radii(3, 64, 2.0) == (1, 2, 3)


def test_counts_that_noise_explains_weigh_nothing() -> None:
    weights = above_noise(np.array([-5, 0, 30, 70, 900]), scale=20.0)
    assert weights.tolist() == [0.0, 0.0, 0.0, 70.0, 900.0]


# --- runs -------------------------------------------------------------------------------------------------


def clusters(count: int, dimension: int) -> tuple[Floats, Floats]:
    """Four tight clusters in orthogonal directions."""
    centres = 7.0 * np.eye(dimension)[:4]
    draw = np.random.default_rng(1)
    return centres, centres[draw.integers(0, 4, count)] + draw.normal(scale=0.05, size=(count, dimension))


def worst_distance(found: Floats, centres: Floats) -> float:
    return float(np.linalg.norm(found[:, None, :] - centres[None, :, :], axis=2).min(axis=0).max())


@pytest.mark.parametrize(
    ("name", "objective", "options"),
    [
        ("chaturvedi", "means", {}),
        ("chaturvedi", "means", {"averages": "paper", "lloyd": 0}),
        ("jones-euclidean", "means", {}),
        ("jones-euclidean", "means", {"candidates": "hashing"}),
        ("jones-euclidean", "medians", {}),
    ],
)
def test_tight_clusters_are_found(name: str, objective: str, options: dict[str, Any]) -> None:
    where = domain(20_000, 4)
    centres, rows = clusters(20_000, 4)
    made = plan(name, where, Budget.of(10, "0.000001"), objective=objective, **options)
    found = registry.run(made, ArraySource(where, rows))
    # False alarm: noise of 40 standard deviations; no rotation or shift can merge what is 10 apart.
    assert worst_distance(found.centres, centres) < 1.0
    assert found.sizes is not None
    assert found.sizes == pytest.approx([5000] * 4, rel=0.1)


def test_coverage_by_coins_finds_more_than_the_papers_constant() -> None:
    """On the same budget, with fewer records than the paper's constant needs to see clusters in a grid."""
    where = domain(3000, 4)
    centres, rows = clusters(3000, 4)
    budget = Budget.of(2, "0.000001")
    weight = {}
    for accounting in ("pure", "chaturvedi"):
        made = plan("chaturvedi", where, budget, accounting=accounting, rounds=4)
        loop = made.step("cover").mechanism
        assert isinstance(loop, CoverageChoice)
        # What a cluster of 750 records weighs against all grid points together, in exponents.
        weight[accounting] = loop.eta * 750 * loop.keep / 2**64
    assert weight["pure"] > 100
    assert weight["chaturvedi"] < 10
    found = registry.run(plan("chaturvedi", where, Budget.of(5, "0.000001")), ArraySource(where, rows))
    assert worst_distance(found.centres, centres) < 2.0


def test_medians_of_weighted_points_resist_an_outlier() -> None:
    points = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [100.0, 100.0]])
    centre = weighted_medians(points, np.array([5.0, 5.0, 5.0, 1.0]), 1, np.random.default_rng(0))
    assert np.linalg.norm(centre) < 1.0
