"""Balcan's algorithms and their comparators: parameters, refusals, and that they find what is there."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from core.algorithms import registry
from core.data import UNITS, ArraySource, DataSource, Dense, Ids, Sparse, SparseSource
from core.errors import InvalidRequest, WorkLimitExceeded
from core.plan import Request
from core.postprocessing.bounds import spread_centres
from core.privacy import Budget
from tests.support.bits import inject_bytes

PLANE = Dense.box([0, 0], [1, 1], size=10_000)
SPOTS = np.array([[0.2, 0.2], [0.8, 0.2], [0.5, 0.85]])


def spots(count: int = 10_000) -> DataSource:
    draw = np.random.default_rng(4)
    rows = SPOTS[draw.integers(0, 3, count)] + draw.normal(scale=0.03, size=(count, 2))
    return ArraySource(PLANE, rows)


def farthest_spot(centres: np.ndarray) -> float:
    """How far the worst served spot is from its nearest centre."""
    return float(np.sqrt(((SPOTS[:, None] - centres) ** 2).sum(axis=2)).min(axis=1).max())


@pytest.mark.parametrize(
    ("name", "delta"),
    [
        ("balcan", "0"),
        ("balcan", "0.000001"),
        ("balcan-median", "0"),
        ("balcan-median", "0.000001"),
        ("grid", "0"),
    ],
)
def test_three_spots_are_found(name: str, delta: str, monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 11)
    objective = registry.get(name).objectives[0]
    plan = registry.plan(PLANE, Request(3, Budget.of(4, delta), objective, name))
    assert farthest_spot(registry.run(plan, spots()).centres) < 0.05


def test_a_median_can_be_chosen_from_a_net(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 12)
    request = Request(3, Budget.of(4), "medians", "balcan-median", {"recovery": "net"})
    assert farthest_spot(registry.run(registry.plan(PLANE, request), spots()).centres) < 0.1


def test_the_best_of_several_trials_is_picked(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 13)
    request = Request(3, Budget.of(4), "means", "balcan", {"trials": 2, "rounds": 0})
    plan = registry.plan(PLANE, request)
    assert plan.step("trial").repeats == 1
    assert farthest_spot(registry.run(plan, spots()).centres) < 0.15


def test_sites_nearest_to_the_spots_are_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 14)
    places = [[x / 10, y / 10] for x in range(1, 10) for y in range(1, 10)]
    sites = {"kind": "coordinates", "metric": "euclidean", "points": places}
    plan = registry.plan(PLANE, Request(3, Budget.of(1), "medians", "gupta", {"sites": sites}))
    assert plan.inputs["sites"]["count"] == len(places)
    assert farthest_spot(registry.run(plan, spots()).centres) < 0.12


def test_records_that_name_sites_are_served_by_sites(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 15)
    domain = Ids(count=20, size=10_000)
    matrix = np.abs(np.arange(20)[:, None] - np.arange(20)[None, :]).astype(float).tolist()
    rows = np.repeat([3, 16], 5000)
    request = Request(2, Budget.of(1), "medians", "gupta", {"sites": {"kind": "distances", "matrix": matrix}})
    found = registry.run(registry.plan(domain, request), ArraySource(domain, rows))
    assert sorted(found.centres[:, 0].tolist()) == [3, 16]


# --- printed constants and refusals -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["balcan", "balcan-median", "balcan-sparse"])
def test_printed_constants_are_refused_before_any_work(name: str) -> None:
    algorithm = registry.get(name)
    domain = Sparse(dimension=500, radius=1.0, size=60_000)
    if name != "balcan-sparse":
        domain = Dense.box(0, 1, dimension=784, size=60_000)  # type: ignore[assignment]  # the other domain
    request = Request(10, Budget.of(1), algorithm.objectives[0], name, {"constants": "printed"})
    with pytest.raises(WorkLimitExceeded, match="89 projected dimensions"):  # 8 ln N
        registry.plan(domain, request)
    few = {"constants": "printed", "dimension": 5}
    with pytest.raises(WorkLimitExceeded, match="operations"):
        registry.plan(domain, Request(10, Budget.of(1), algorithm.objectives[0], name, few))


def test_printed_constants_that_are_feasible_are_planned() -> None:
    domain = Dense.box(0, 1, dimension=2, size=100)
    plan = registry.plan(domain, Request(1, Budget.of(1), "means", "balcan", {"constants": "printed"}))
    assert plan.parameters["trees"] == math.ceil(27 * math.log(100 / 0.01))
    assert plan.parameters["swaps"] == math.ceil(100 * math.log(100 / 0.01))


def test_defaults_are_those_of_the_experiments() -> None:
    domain = Dense.box(0, 1, dimension=784, size=60_000)
    plan = registry.plan(domain, Request(10, Budget.of(1), "means", "balcan"))
    assert plan.parameters["dimension"] == math.floor(math.log(60_000) / 2)
    assert plan.parameters["trees"] == 10
    assert plan.parameters["trials"] == 1
    assert plan.parameters["rounds"] == 8


@pytest.mark.parametrize(
    ("name", "options", "parameter"),
    [
        ("balcan", {"dimension": 0}, "options.dimension"),
        ("balcan", {"clipping": "none"}, "options.clipping"),
        ("balcan-sparse", {"largest": 99.0}, "options.largest"),
        ("balcan-sparse", {"largest": 0}, "options.largest"),
        ("gupta", {}, "options.sites"),
        ("grid", {"cells": 30_000}, "options.cells"),
        ("sulq", {"clip": 3}, "options.clip"),
    ],
)
def test_bad_options_are_refused_by_name(name: str, options: dict[str, object], parameter: str) -> None:
    algorithm = registry.get(name)
    domain = Sparse(dimension=50, radius=9.0, size=100) if name == "balcan-sparse" else PLANE
    with pytest.raises(InvalidRequest) as refusal:
        registry.plan(domain, Request(3, Budget.of(1), algorithm.objectives[0], name, options))
    assert refusal.value.parameter == parameter


# --- sparse rows --------------------------------------------------------------------------------------------


def topics(count: int, dimension: int, k: int, draw: np.random.Generator) -> sp.csr_array:
    """Rows of ten ones: eight from a topic of sixteen columns of its own, two from anywhere."""
    topic = draw.integers(0, k, count)
    own = topic[:, None] * 16 + draw.permuted(np.tile(np.arange(16), (count, 1)), axis=1)[:, :8]
    columns = np.concatenate([own, draw.integers(16 * k, dimension, (count, 2))], axis=1)
    rows = sp.csr_array(
        (np.ones(columns.size), columns.ravel(), np.arange(count + 1) * 10), shape=(count, dimension)
    )
    rows.sum_duplicates()
    return rows


def test_sparse_recovery_loses_less_than_dense_recovery(monkeypatch: pytest.MonkeyPatch) -> None:
    inject_bytes(monkeypatch, 16)
    draw = np.random.default_rng(5)
    rows = topics(20_000, 2000, 3, draw)
    domain = Sparse(dimension=2000, radius=math.sqrt(12), size=20_000)
    source = SparseSource(domain, rows)

    def loss(name: str, options: dict[str, object]) -> float:
        plan = registry.plan(domain, Request(3, Budget.of(2), "means", name, options))
        centres = registry.run(plan, source).centres
        gaps = (centres**2).sum(axis=1) - 2 * (rows @ centres.T)
        return float(gaps.min(axis=1).mean() + rows.power(2).sum() / rows.shape[0])

    sparse = loss("balcan-sparse", {"nonzeros": 10, "largest": 1.0})
    dense = loss("balcan", {})
    nothing = rows.power(2).sum() / rows.shape[0]  # one centre at the origin
    assert sparse < dense
    assert sparse < 0.95 * nothing


# --- starting points ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("domain", [PLANE, Dense.ball(1.0, dimension=40, size=100)])
def test_starts_keep_their_distance_from_each_other_and_from_the_bounds(domain: Dense) -> None:
    points = spread_centres(domain, 8, np.random.default_rng(2))
    gaps = np.sqrt(((points[:, None] - points) ** 2).sum(axis=2)) + np.eye(8) * 1e9
    inner = UNITS if domain.bounds_units is None else domain.bounds_units[1].min()
    farthest = np.linalg.norm(points, axis=1) if domain.bounds_units is None else np.abs(points).max(axis=1)
    assert gaps.min() / 2 <= inner - farthest.max() + 1 or gaps.min() > 0.2 * inner
    assert gaps.min() > 0.1 * inner
