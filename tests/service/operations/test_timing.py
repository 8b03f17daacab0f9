"""Planned times: from public numbers, in quarters of a second, close to what runs need."""

from __future__ import annotations

import itertools

import pytest
from sqlalchemy import select

from core.algorithms import registry
from core.data import Dense, Number, Table
from core.kernels.backend import NUMPY, bodies, body_in_use, computed_by
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.questions import registry as questions
from core.questions.base import Question
from service.operations import timing
from service.operations.tables import Timing
from service.operations.timing import DEFAULT, Rates, planned_ms
from service.workers import calibration
from tests.support.service import House


def plan_of(size: int, k: int = 3, dimension: int = 2) -> Plan:
    domain = Dense.box(0.0, 1.0, dimension=dimension, size=size)
    return registry.plan(domain, Request(k, Budget.of("1", "0.000001"), algorithm="sulq"))


def test_job_on_a_small_table_is_planned_within_a_second() -> None:
    assert planned_ms(DEFAULT, plan_of(10_000), 10_000, 1.5) <= 1000


def test_planned_times_are_quarters_of_a_second_with_a_margin() -> None:
    plan = plan_of(10_000_000)
    for margin in (1.0, 1.5, 3.0):
        planned, wanted = planned_ms(DEFAULT, plan, plan.domain.size, margin), 1000 * margin
        estimate = wanted * DEFAULT.seconds(plan, plan.domain.size)
        assert planned % 250 == 0
        assert estimate <= planned < estimate + 250


def test_fitted_rates_are_those_that_were_measured() -> None:
    truth, worker = Rates(run=0.02, row=800e-9, operation=0.4e-9), calibration.WORKER_SECONDS
    plans = [plan_of(*shape) for shape in ((1000, 3), (100_000, 3), (20_000, 10, 20), (50_000, 10, 60))]
    times = [truth.seconds(plan, plan.domain.size) for plan in plans]
    found = calibration.fit(list(zip(plans, times, strict=True)))
    for plan, seconds in zip(plans, times, strict=True):
        estimate = found.seconds(plan, plan.domain.size) - worker
        assert abs(estimate - seconds) <= 0.001 * (seconds + worker)


def test_one_rate_does_where_operations_alone_explain_what_was_measured() -> None:
    """Rates for rows and for operations, of a few disturbed runs, would be far off on many more rows."""
    truth = Rates(run=0.02, row=0.0, operation=0.5e-9)
    plans = [plan_of(*shape) for shape in ((1000, 3), (100_000, 3), (20_000, 10, 20), (50_000, 10, 60))]
    times = [truth.seconds(plan, plan.domain.size) for plan in plans]
    found = calibration.fit(
        [(plan, s * t) for plan, s, t in zip(plans, times, (1, 1.1, 0.9, 1), strict=True)]
    )
    large = plan_of(5_000_000)
    assert found.row == 0.0
    assert found.seconds(large, 5_000_000) == pytest.approx(truth.seconds(large, 5_000_000), rel=0.15)


def test_working_bounds_are_planned_for() -> None:
    plan, wide = plan_of(1_000_000), plan_of(1_000_000, dimension=300)
    for each, often in ((plan, 1), (wide, wide.measurements)):  # wide rows cannot be kept
        numbers = 1_000_000 * each.domain.dimension
        more = timing.reading(each, 1_000_000, narrowed=True) - timing.reading(each, 1_000_000)
        assert more == pytest.approx(30 * often * numbers)
    assert planned_ms(DEFAULT, wide, 1_000_000, 1.5, narrowed=True) > planned_ms(
        DEFAULT, wide, 1_000_000, 1.5
    )


def test_no_measured_run_takes_much_longer_than_its_estimate() -> None:
    """But for runs that are shorter than any planned time with its margin."""
    plans = [plan_of(*shape) for shape in ((1000, 3), (100_000, 3), (20_000, 10, 20), (50_000, 10, 60))]
    times = [0.1, 0.2, 0.5, 3.0]
    found = calibration.fit(list(zip(plans, times, strict=True)))
    for plan, seconds in zip(plans, times, strict=True):
        used = seconds + calibration.WORKER_SECONDS
        assert 1.2001 * found.seconds(plan, plan.domain.size) >= used or used < 0.5
        assert planned_ms(found, plan, plan.domain.size, 1.5) >= 1200 * used


def test_errors_of_short_runs_leave_estimates_of_long_ones_alone() -> None:
    """What runs below half a second take hardly matters: no planned time is below three quarters."""
    truth = Rates(run=0.02, row=0.0, operation=0.5e-9)
    plans = [plan_of(*shape) for shape in ((1000, 3), (100_000, 3), (1_000_000, 8, 4), (2_000_000, 8, 10))]
    times = [truth.seconds(plan, plan.domain.size) for plan in plans]
    found = calibration.fit([(plan, s * t) for plan, s, t in zip(plans, times, (9, 2, 1, 1), strict=True)])
    large = plan_of(5_000_000)
    assert found.seconds(large, 5_000_000) == pytest.approx(truth.seconds(large, 5_000_000) + 0.15, rel=0.15)


def test_one_slow_run_of_three_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = itertools.cycle([0.2, 9.0, 0.3])
    monkeypatch.setattr(calibration, "run", lambda plan: calibration.Spent(seconds := next(taken), seconds))
    found = calibration.measure(calibration.plans_of("sulq", "means", "dense"), [])
    assert {seconds for _, seconds in found} == {0.3}


def test_solver_is_imported_before_the_first_run_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its import takes seconds, which a worker spends once, at its start."""
    happened: list[str] = []
    monkeypatch.setattr("core.postprocessing.kmeans.load", lambda: happened.append("loaded"))

    def run(plan: Plan) -> calibration.Spent:
        happened.append("run")
        return calibration.Spent(2.0, 2.0)

    monkeypatch.setattr(calibration, "run", run)
    calibration.measure(calibration.plans_of("sulq", "means", "dense")[:1], [])
    assert happened == ["loaded", "run"]


def test_time_that_other_programs_took_does_not_count() -> None:
    assert calibration.Spent(elapsed=2.0, processor=0.5).seconds == 0.5
    assert calibration.Spent(elapsed=0.3, processor=0.5).seconds == 0.3  # in several threads


def test_every_kind_of_records_of_every_algorithm_is_measured() -> None:
    for algorithm in map(registry.get, registry.names()):
        for kind in algorithm.domains:
            shapes = [(algorithm, algorithm.objectives[0], kind, shape) for shape in calibration.SHAPES]
            assert sum(calibration.plan_of(*shape) is not None for shape in shapes) >= 3
    for name in questions.names():
        for _, kind in calibration.variants(name):
            assert len(calibration.plans_of(name, "", kind)) >= 3


def test_job_on_a_table_is_planned_by_what_was_measured_on_tables(small_house: House) -> None:
    stored = Table(declared=(Number(name="age", low=0, high=110),), size=1000)
    plan = registry.plan(stored, Request(3, Budget.of("1"), algorithm="sulq"))
    with small_house.database.write() as session:
        for kind, run in (("dense", 0.2), ("table", 0.7)):
            rates = {"run_seconds": run, "row_seconds": 0.0, "operation_seconds": 0.0}
            key = {"algorithm": "sulq", "objective": "means", "kind": kind}
            session.add(Timing(**key, **rates, measured_at=small_house.clock.now()))
    with small_house.database.read() as session:
        assert timing.rates_of(session, plan).run == 0.7
        assert timing.rates_of(session, plan_of(1000)).run == 0.2


def test_rates_of_compiled_kernels_are_not_used_without_them(small_house: House) -> None:
    rates = Timing(
        algorithm="sulq", objective="means", kind="dense", run_seconds=0.2, row_seconds=0.0,
        operation_seconds=0.0, kernels="other", measured_at=small_house.clock.now(),
    )  # fmt: skip
    with small_house.database.write() as session:
        session.add(rates)
    with small_house.database.read() as session:
        assert timing.rates_of(session, plan_of(1000)) == DEFAULT
    with small_house.database.write() as session:
        session.merge(rates).kernels = NUMPY
    for body in bodies():
        with computed_by(body), small_house.database.read() as session:
            assert timing.rates_of(session, plan_of(1000)).run == 0.2


def test_runs_are_hardly_overestimated_where_none_is_far_underestimated() -> None:
    plans = [plan_of(*shape) for shape in ((1000, 3), (100_000, 3), (20_000, 10, 20), (50_000, 10, 60))]
    times = [0.9 * DEFAULT.seconds(plans[0], 1000)]
    times += [DEFAULT.seconds(plan, plan.domain.size) for plan in plans[1:]]
    found = calibration.fit(list(zip(plans, times, strict=True)))
    for plan, seconds in zip(plans, times, strict=True):
        used = seconds + calibration.WORKER_SECONDS
        assert found.seconds(plan, plan.domain.size) <= 1.06 * max(used, 0.5)


def test_work_on_released_values_is_planned_for_a_rehearsal_too() -> None:
    """What open k derives from the release takes as long after few rows as after many."""
    domain = Dense.box(0.0, 1.0, dimension=2, size=1_000_000)
    budget = Budget.of("1", "0.000001")
    plan, single = (registry.plan(domain, Request(k, budget)) for k in (KRange(1, 30), 30))
    assert timing.operations_of(plan, 1000) > 5 * timing.operations_of(single, 1000)
    assert timing.operations_of(plan, 1_000_000) == plan.work.operations
    assert DEFAULT.seconds(plan, 1000) < DEFAULT.seconds(plan, 1_000_000)


def test_calibration_measures_synthetic_rows_and_plans_follow_it(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "SHAPES", calibration.SHAPES[:2])
    monkeypatch.setattr(calibration, "_RUNS", 1)
    small_house.ready(size=3_000_000)
    with small_house.database.read() as session:
        assert timing.rates_of(session, plan_of(1000)) == DEFAULT
    calibration.calibrate(small_house.database, small_house.clock, ["sulq", "quantiles"])
    with small_house.database.read() as session:
        assert set(session.scalars(select(Timing.kernels))) == {body_in_use()}
        rates = timing.rates_of(session, plan_of(1000))
        domain = Dense.box(0.0, 1.0, dimension=2, size=1000)
        asked = questions.plan(domain, Question("quantiles", Budget.of("1")))
        assert timing.rates_of(session, asked) != DEFAULT
    assert rates != DEFAULT
    request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1"}
    plan = small_house.ada.post("/v1/plans", request).json()
    job = small_house.ada.post("/v1/jobs", request).json()
    assert plan["planned_seconds"] == job["planned_seconds"]
    rehearsal = small_house.ada.post("/v1/plans", {**request, "rehearsal": True}).json()
    assert rehearsal["planned_seconds"] <= plan["planned_seconds"]
