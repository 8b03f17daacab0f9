"""What every entry of the registry promises; a new algorithm is held to it by being registered."""

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from core.algorithms import registry
from core.algorithms.base import Algorithm
from core.data import (
    ArraySource,
    Boolean,
    Category,
    DataSource,
    Date,
    Dense,
    Ids,
    Number,
    Sparse,
    SparseSource,
    Stored,
    Table,
    TableSource,
)
from core.errors import CoreError, InvalidRequest
from core.options import options_schema
from core.plan import Plan, Request
from core.privacy import Budget
from core.probe import Probe
from tests.support.bits import inject_bytes
from tests.support.privacy import example_options

PURE = Budget.of(1)
APPROXIMATE = Budget.of(1, "0.000001")


TABLE = Table(
    declared=(
        Number(name="age", low=0, high=110, whole=True, weight=2.0),
        Category(name="ward", levels=("a", "b"), missing="level"),
        Boolean(name="smoker", missing="fill", fill=False),
        Date(name="born", low="1930-01-01", high="2030-01-01", role="keep"),
    ),
    size=1000,
)


def domain_for(kind: str) -> Stored:
    match kind:
        case "table":
            return TABLE
        case "sparse":
            return Sparse(dimension=40, radius=3.0, size=1000)
        case "ids":
            return Ids(count=12, size=1000)
    return Dense.box([0, -5, 10], [1, 5, 30], ["a", "b", "c"], size=1000)


def source_for(domain: Stored, count: int, spread: bool = True, chunk_rows: int | None = None) -> DataSource:
    draw = np.random.default_rng(count)
    if isinstance(domain, Sparse):
        rows = sp.random_array((count, 40), density=0.1, rng=draw, format="csr")
        return SparseSource(domain, rows, chunk_rows=chunk_rows)
    if isinstance(domain, Ids):
        return ArraySource(domain, draw.integers(0, 12 if spread else 1, count), chunk_rows=chunk_rows)
    if isinstance(domain, Table):
        columns = {
            "age": draw.integers(0, 120, count) if spread else np.full(count, 30),
            "ward": np.array(["a", "b", ""])[draw.integers(0, 3 if spread else 1, count)],
            "smoker": np.array(["yes", "no", ""])[draw.integers(0, 3 if spread else 1, count)],
            "born": np.full(count, "NaT", dtype="datetime64[D]"),
        }
        return TableSource(domain, columns, chunk_rows=chunk_rows)
    low, high = np.array(domain.low), np.array(domain.high)
    points = draw.uniform(size=(count, 3)) if spread else np.full((count, 3), 0.25)
    return ArraySource(domain, low + points * (high - low), chunk_rows=chunk_rows)


def cases() -> list[tuple[str, str, str, Budget]]:
    """Every algorithm with every objective, kind of domain and kind of guarantee it serves."""
    found = []
    for name in registry.names():
        algorithm = registry.get(name)
        budgets = {"pure": [PURE], "approximate": [APPROXIMATE], "either": [PURE, APPROXIMATE]}
        for objective in algorithm.objectives:
            for kind in algorithm.domains:
                found += [(name, objective, kind, budget) for budget in budgets[algorithm.guarantee]]
    return found


def make_request(algorithm: Algorithm, domain: Stored, k: int, objective: str, budget: Budget) -> Request:
    return Request(k, budget, objective, algorithm.name, example_options(algorithm, domain))


EVERY = pytest.mark.parametrize(
    ("name", "objective", "kind", "budget"),
    cases(),
    ids=lambda value: f"delta={value.delta_text}" if isinstance(value, Budget) else str(value),
)


def planned(name: str, objective: str, kind: str, budget: Budget, k: int = 3) -> tuple[Stored, Plan]:
    """A domain of the kind, and the algorithm's plan for it."""
    domain = domain_for(kind)
    return domain, registry.plan(domain, make_request(registry.get(name), domain, k, objective, budget))


@EVERY
def test_a_plan_is_a_pure_function_of_public_numbers(
    name: str, objective: str, kind: str, budget: Budget
) -> None:
    (domain, first), (_, second) = (planned(name, objective, kind, budget) for _ in range(2))
    assert first.digest == second.digest
    assert first.composition.within(budget)
    again = Plan.from_json(json.loads(json.dumps(first.to_json(), allow_nan=False)), domain)
    assert again.digest == first.digest
    assert again.composition == first.composition


@EVERY
@pytest.mark.parametrize("count", [0, 1, 2, 500])
def test_any_data_give_k_centres_inside_the_bounds(
    name: str, objective: str, kind: str, budget: Budget, count: int
) -> None:
    domain, plan = planned(name, objective, kind, budget)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for spread in (True, False):
            found = registry.run(plan, source_for(domain, count, spread))
            assert found.centres.shape == (3, plan.domain.dimension)
            assert np.isfinite(found.centres).all()
            if isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
                assert (found.centres >= np.array(domain.low)).all()
                assert (found.centres <= np.array(domain.high)).all()
            if isinstance(domain, Table):
                assert found.profiles is not None
                for age, ward, smoker in found.profiles:
                    assert 0 <= age["value"] <= 110
                    assert sum(ward["shares"].values()) == pytest.approx(1)
                    assert min(ward["shares"].values()) >= 0
                    assert 0 <= smoker["value"] <= 1
            if isinstance(domain, Sparse):
                assert np.linalg.norm(found.centres, axis=1).max() <= domain.radius * (1 + 1e-12)
            if found.sizes is not None:
                assert found.sizes.shape == (3,)
                assert np.isfinite(found.sizes).all()
            assert found.plan is plan
            json.dumps([dict(found.draws), dict(found.details), found.profiles], allow_nan=False)


@EVERY
def test_no_step_is_measured_more_often_than_planned_whatever_the_data(
    name: str, objective: str, kind: str, budget: Budget
) -> None:
    domain, plan = planned(name, objective, kind, budget)
    for count in (0, 300):
        probe = Probe(plan, source_for(domain, count))
        registry.get(name).run(plan, probe)
        for step in plan.steps:
            assert sum(release.step == step.name for release in probe.transcript) <= step.repeats


@EVERY
def test_the_same_bits_give_the_same_release_under_any_chunking(
    name: str, objective: str, kind: str, budget: Budget, monkeypatch: pytest.MonkeyPatch
) -> None:
    domain, plan = planned(name, objective, kind, budget)
    releases = []
    for chunk_rows in (300, 7):
        inject_bytes(monkeypatch, 5)
        releases.append(registry.run(plan, source_for(domain, 300, chunk_rows=chunk_rows)))
    assert np.array_equal(releases[0].centres, releases[1].centres)
    assert releases[0].draws == releases[1].draws


@EVERY
def test_a_result_states_the_size_of_its_noise(name: str, objective: str, kind: str, budget: Budget) -> None:
    domain, plan = planned(name, objective, kind, budget)
    for count in (0, 300):
        noise = registry.run(plan, source_for(domain, count)).noise
        assert noise.size == plan.forecast.get("size_noise")
        if plan.domain.kind != "table":
            assert (noise.centres is not None) == ("noise_at_bounds" in plan.forecast)
        if noise.centres is not None:
            assert len(noise.centres) == 3
            assert min(noise.centres) > 0
            assert noise.columns is None or max(noise.columns) == 1
        json.dumps(noise.to_json(), allow_nan=False)


@EVERY
def test_one_cluster_is_a_request_like_any_other(
    name: str, objective: str, kind: str, budget: Budget
) -> None:
    domain, plan = planned(name, objective, kind, budget, k=1)
    assert registry.run(plan, source_for(domain, 200)).centres.shape == (1, plan.domain.dimension)


@pytest.mark.parametrize("name", registry.names())
def test_bad_parameters_are_refused_by_name_before_a_plan_exists(name: str) -> None:
    algorithm = registry.get(name)
    domain = domain_for(algorithm.domains[0])
    budget = PURE if algorithm.guarantee == "pure" else APPROXIMATE
    objective = algorithm.objectives[0]
    with pytest.raises(InvalidRequest) as refusal:
        registry.plan(domain, Request(3, budget, objective, name, {"no-such-option": 1}))
    assert refusal.value.parameter == "options.no-such-option"
    for option in algorithm.options:
        wrong = {"wrong": "value"}
        with pytest.raises(InvalidRequest) as refusal:
            registry.plan(domain, Request(3, budget, objective, name, {option.name: wrong}))
        assert option.name in (refusal.value.parameter or "")
    with pytest.raises(CoreError):
        registry.plan(domain, Request(0, budget, objective, name))


@pytest.mark.parametrize("name", registry.names())
def test_an_algorithm_describes_itself(name: str) -> None:
    algorithm = registry.get(name)
    assert len(algorithm.summary) > 20
    assert algorithm.origin == ("house" if name == "summit" else "literature")
    assert algorithm.guarantee in ("pure", "approximate", "either")
    json.dumps(options_schema(algorithm.options))
