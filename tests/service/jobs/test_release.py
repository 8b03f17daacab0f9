"""Release times: what an analyst sees of a job follows its plan and the clock, not its run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jobs.release import next_tick, release_time
from service.operations.states import JobState
from service.operations.tables import Job
from service.workers import execution
from service.workers.worker import Heartbeat
from tests.support.service import START, House

SPANS = st.timedeltas(timedelta(0), timedelta(days=2))
PLANNED = 6.0


@pytest.fixture(autouse=True)
def six_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan six seconds for every job."""
    monkeypatch.setattr("service.operations.timing.planned_ms", lambda *_, **__: round(PLANNED * 1000))


@given(SPANS)
def test_ticks_are_powers_of_two_of_a_second(elapsed: timedelta) -> None:
    tick = next_tick(elapsed)
    assert elapsed <= tick
    assert tick == timedelta(seconds=1) or tick / 2 < elapsed


@given(SPANS, SPANS)
def test_end_is_shown_at_the_planned_time_or_at_a_tick_after_it(run: timedelta, planned: timedelta) -> None:
    shown = release_time(START, planned, START + run) - START
    assert shown >= run
    assert shown == planned or (run + timedelta(seconds=0.1) > planned and shown == next_tick(shown))


def run_for(house: House, seconds: list[float], monkeypatch: pytest.MonkeyPatch, **request: Any) -> str:
    """A job whose measurements fall on these moments after its claim; returns its address."""
    location: str = house.submit("0.01", delta="0", **request).headers["location"]
    held = house.worker.claim()
    assert held is not None
    start = house.clock.moment
    real: Callable[..., Any] = execution.execute

    def slowly(*arguments: Any) -> Any:
        *rest, listener = arguments
        for number, second in enumerate(seconds):
            house.clock.moment = start + timedelta(seconds=second)
            listener(f"step-{number}", number + 1, len(seconds))
        return real(*rest, lambda *_: None)

    with monkeypatch.context() as patched:
        patched.setattr(execution, "execute", slowly)
        assert house.worker.carry_out(held)
    house.clock.moment = start
    return location


def watch(house: House, job: str, moments: tuple[float, ...]) -> list[Any]:
    """Everything that the analyst is told about a job at these moments, and a submission with its refusal."""
    start, seen = house.clock.moment, []
    for moment in moments:
        house.clock.moment = start + timedelta(seconds=moment)
        answer = house.ada.get(job)
        body = answer.json()
        result = house.ada.get(f"{job}/result")
        cancelled = house.ada.delete(job)
        for state in ("queued", "running", "succeeded", "failed", "cancelled"):
            listed = house.ada.get(f"/v1/jobs?state={state}").json()["items"]
            assert (body["id"] in [each["id"] for each in listed]) == (state == body["state"])
        for each in ("id", "links"):
            body.pop(each)
        told = (body, answer.headers.get("retry-after"), result.status_code, cancelled.status_code)
        seen.append((moment, *told))
    house.clock.moment = start
    return seen


@pytest.mark.both_databases
def test_result_appears_at_the_planned_time_however_short_the_run(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready()
    job = run_for(house, [0.5], monkeypatch)
    seen = watch(house, job, (0.6, 1.0, 2.0, 5.99, 6.0))
    assert [(moment, body["state"], result) for moment, body, _, result, _ in seen] == [
        (0.6, "running", 404),
        (1.0, "running", 404),
        (2.0, "running", 404),
        (5.99, "running", 404),
        (6.0, "succeeded", 200),
    ]
    assert seen[0][1]["due_at"] == seen[-1][1]["finished_at"] == "2030-01-01T09:00:06.000Z"
    assert (seen[0][1]["planned_seconds"], seen[2][2], seen[-1][2]) == (6.0, "4", None)


def test_longer_run_is_shown_at_the_next_tick(small_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    small_house.ready()
    job = run_for(small_house, [6.3], monkeypatch)
    seen = watch(small_house, job, (5.9, 6.0, 7.99, 8.0))
    assert [body["state"] for _, body, *_ in seen] == ["running", "running", "running", "succeeded"]
    assert [body["due_at"] for _, body, *_ in seen] == [
        "2030-01-01T09:00:06.000Z",
        "2030-01-01T09:00:08.000Z",
        "2030-01-01T09:00:08.000Z",
        None,
    ]
    assert seen[-1][1]["finished_at"] == "2030-01-01T09:00:08.000Z"


def test_progress_tells_nothing_of_the_rate_of_the_run(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rate attack: measurements made by a tick used to tell how fast the run was."""
    small_house.ready(budget={"epsilon": "10", "delta": "0.000001"})
    views = []
    for seconds in ([0.1, 0.2, 0.3, 0.4], [1.4, 2.9, 4.4, 5.8]):
        job = run_for(small_house, seconds, monkeypatch)
        views.append(watch(small_house, job, (0.5, 1, 2, 3, 4, 5.5, 6, 9)))
    assert views[0] == views[1]
    for moment, body, *_ in views[0][:6]:
        assert body["progress"]["measured"] == int(body["progress"]["planned"] * moment / PLANNED)
    phases = [body["phase"] for _, body, *_ in views[0]]
    assert phases[0] is not None
    assert phases[-1] is None


def test_quota_does_not_tell_when_a_job_ended(small_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """The quota attack: fill the queue, poll submissions, and see 429 turn into 202 at the true end."""
    limit = small_house.settings.max_queued_jobs
    small_house.ready(budget={"epsilon": "10", "delta": "0.000001"})
    small_house.grant(epsilon="10")
    run_for(small_house, [0.5], monkeypatch)
    for _ in range(limit - 1):
        assert small_house.submit("0.01", delta="0").status_code == 202
    answers = []
    for moment in (0.4, 0.6, 1.0, 2.0, 5.9, 6.0):
        small_house.clock.moment = START + timedelta(seconds=moment)
        answers.append(small_house.submit("0.01", delta="0").status_code)
    assert answers == [429, 429, 429, 429, 429, 202]


@pytest.mark.parametrize("limit", ["time", "memory"])
def test_job_that_was_ended_by_a_limit_is_held_and_so_is_its_worker(
    small_house: House, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    house = small_house
    house.ready()
    job = house.submit().headers["location"]
    held = house.worker.claim()
    assert held is not None
    house.clock.move(2.0)
    Heartbeat(house.worker, held)._end_by_limit(limit)
    assert house.ada.get(job).json()["state"] == "running"
    # Its process ends, and the one that replaces it finds the hold in the database.
    monkeypatch.setattr(house.worker.stop, "wait", house.clock.move)
    house.worker.run(alive=iter([True, False]).__next__)
    assert house.clock.moment == START + timedelta(seconds=PLANNED)
    assert house.ada.get(job).json()["finished_at"] == "2030-01-01T09:00:06.000Z"


@pytest.mark.parametrize("finished", [False, True])
def test_job_looks_ended_from_its_curators_order_on(small_house: House, finished: bool) -> None:
    """It looks the same whether its run was over."""
    house = small_house
    house.ready()
    job = house.submit("0.5").headers["location"]
    held = house.worker.claim()
    assert held is not None
    house.clock.move(0.25)
    if finished:
        assert house.worker.carry_out(held)
    house.clock.move(0.25)
    assert house.carla.post(f"{job}/end").json()["state"] == "failed"
    seen = house.ada.get(job).json()
    assert (seen["state"], seen["finished_at"]) == ("failed", "2030-01-01T09:00:00.500Z")
    assert seen["message"] == "ended by the dataset's curator; its charge stands"
    assert house.ada.get(f"{job}/result").json()["type"] == "/problems/job-failed"


@pytest.mark.parametrize("seconds", [0.1, 2.5, 5.8])
def test_next_job_is_claimed_at_the_planned_time(
    small_house: House, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    house = small_house
    house.ready()
    for _ in range(2):
        house.submit("0.01", delta="0")
    real: Callable[..., Any] = execution.execute

    def slowly(*arguments: Any) -> Any:
        house.clock.move(seconds)
        return real(*arguments)

    monkeypatch.setattr(execution, "execute", slowly)
    monkeypatch.setattr(house.worker.stop, "wait", house.clock.move)
    asked = iter([True] * 3)  # what a lost worker left comes first, then a job each time
    house.worker.run(alive=lambda: next(asked, False))
    claims = [each["claimed_at"] for each in house.ada.get("/v1/jobs").json()["items"]]
    assert claims == ["2030-01-01T09:00:06.000Z", "2030-01-01T09:00:00.000Z"]
    charges = [
        e["at"] for e in house.ada.get("/v1/datasets/flowers/ledger").json()["items"] if e["kind"] == "charge"
    ]
    assert sorted(charges) == sorted(claims)


def test_worker_that_replaces_a_lost_one_takes_its_job_over_first(small_house: House) -> None:
    small_house.ready()
    small_house.grant("ben")
    lost = small_house.submit("0.01", delta="0").json()["id"]
    assert small_house.worker.claim() is not None
    small_house.submit("0.01", delta="0", who=small_house.ben)
    asked = iter([True] * 2)
    small_house.worker.run(alive=lambda: next(asked, False))
    with small_house.database.read() as session:
        assert {job.id: job.state for job in session.query(Job)}[lost] == JobState.SUCCEEDED


def test_owner_sees_at_once_and_so_does_everybody_where_holding_is_off(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    small_house.ready("open", planned_release=False)
    held = run_for(small_house, [0.2], monkeypatch)
    small_house.clock.move(0.3)
    assert small_house.carla.get(held).json()["state"] == "succeeded"
    assert small_house.ada.get(held).json()["state"] == "running"
    at_once = small_house.submit(dataset="open").headers["location"]
    assert small_house.work()
    assert small_house.ada.get(at_once).json()["state"] == "succeeded"


def test_overruns_are_counted_and_shown_to_the_owner_alone(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    for seconds in (5.8, 6.3, 40.0):
        run_for(small_house, [seconds], monkeypatch)
    assert small_house.carla.get("/v1/datasets/flowers").json()["overruns"] == 2
    assert small_house.ada.get("/v1/datasets/flowers").json()["overruns"] is None
    metrics = small_house.carla.get("/metrics").text
    assert 'cairn_overruns_total{dataset="flowers",source=""} 2.0' in metrics


def test_owner_alone_is_told_when_the_declared_size_is_too_small(small_house: House) -> None:
    small_house.ready(rows=200, size=100)
    small_house.ready("enough", rows=200, size=200)
    told = small_house.carla.get("/v1/datasets/flowers").json()["size_warning"]
    assert "200 rows" in told
    assert small_house.ada.get("/v1/datasets/flowers").json()["size_warning"] is None
    assert small_house.carla.get("/v1/datasets/enough").json()["size_warning"] is None
