"""Planned times: from public numbers, in quarters of a second, close to what runs need."""

from __future__ import annotations

from core.algorithms import registry
from core.data import Dense
from core.plan import Plan, Request
from core.privacy import Budget
from service.jobs import timing
from service.jobs.timing import DEFAULT, Rates, planned_ms
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


def test_fitted_rates_lie_closely_above_what_was_measured() -> None:
    truth = Rates(run=0.02, row=80e-9, operation=0.4e-9)
    plans = [plan_of(*shape) for shape in ((1000, 3), (100_000, 3), (20_000, 10, 20), (50_000, 10, 60))]
    times = [truth.seconds(plan, plan.domain.size) for plan in plans]
    found = calibration.fit(list(zip(plans, times, strict=True)))
    for plan, seconds in zip(plans, times, strict=True):
        estimate = found.seconds(plan, plan.domain.size) - calibration._WORKER_SECONDS
        assert 0.999 * seconds <= estimate <= 1.001 * seconds


def test_calibration_measures_synthetic_rows_and_plans_follow_it(small_house: House) -> None:
    small_house.ready(size=3_000_000)
    with small_house.database.read() as session:
        assert timing.rates_of(session, plan_of(1000)) == DEFAULT
    calibration.calibrate(small_house.database, small_house.clock, ["sulq"])
    with small_house.database.read() as session:
        rates = timing.rates_of(session, plan_of(1000))
    assert rates != DEFAULT
    request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1"}
    plan = small_house.ada.post("/v1/plans", request).json()
    job = small_house.ada.post("/v1/jobs", request).json()
    assert plan["planned_seconds"] == job["planned_seconds"]
    rehearsal = small_house.ada.post("/v1/plans", {**request, "rehearsal": True}).json()
    assert rehearsal["planned_seconds"] <= plan["planned_seconds"]
