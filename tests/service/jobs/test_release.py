"""The release ticks: news of a running job comes 1, 2, 4, 8, ... seconds after its claim, and not between."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.jobs import execution
from service.jobs.release import Progress, last_tick, next_tick, visible_progress
from tests.support.service import House

SPANS = st.timedeltas(timedelta(0), timedelta(days=2))


@given(SPANS)
def test_ticks_enclose_every_moment(elapsed: timedelta) -> None:
    assert last_tick(elapsed) <= elapsed <= next_tick(elapsed)
    assert next_tick(elapsed) in (last_tick(elapsed), last_tick(elapsed) * 2, timedelta(seconds=1))


@given(SPANS, SPANS)
def test_what_happened_after_the_last_tick_is_not_seen(happened: timedelta, looked: timedelta) -> None:
    progress = Progress()
    progress.note(happened, "sums", 1, 2)
    visible = visible_progress(progress.to_json(), looked) is not None
    assert visible == (happened <= last_tick(looked) and last_tick(looked) > timedelta(0))


def run_for(house: House, seconds: list[float], monkeypatch: pytest.MonkeyPatch) -> str:
    """A job whose measurements fall on these moments after its claim; returns its address."""
    location: str = house.submit(delta="0").headers["location"]
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

    monkeypatch.setattr(execution, "execute", slowly)
    assert house.worker.carry_out(held)
    house.clock.moment = start
    return location


def test_analyst_sees_progress_and_result_on_ticks_only(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready()
    job = run_for(house, [0.5, 1.5, 3.0, 5.3], monkeypatch)
    seen = []
    for moment in (0.9, 1.0, 1.9, 2.0, 3.9, 4.0, 5.4, 7.99, 8.0):
        house.clock.moment = house.clock.moment.replace(minute=0, second=0, microsecond=0) + timedelta(
            seconds=moment
        )
        answer = house.ada.get(job).json()
        result = house.ada.get(f"{job}/result").status_code
        seen.append((moment, answer["state"], answer["phase"], result))
    assert seen == [
        (0.9, "running", None, 404),
        (1.0, "running", "step-0", 404),
        (1.9, "running", "step-0", 404),
        (2.0, "running", "step-1", 404),
        (3.9, "running", "step-1", 404),
        (4.0, "running", "step-2", 404),
        (5.4, "running", "step-2", 404),
        (7.99, "running", "step-2", 404),
        (8.0, "succeeded", None, 200),
    ]
    assert answer["finished_at"] == "2030-01-01T09:00:08.000Z"


def test_runs_of_different_length_between_two_ticks_look_the_same(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    views = []
    for seconds in ([2.1], [3.9]):
        job = run_for(small_house, seconds, monkeypatch)
        start = small_house.clock.moment
        view = []
        for moment in (1, 2, 3, 3.95, 4, 6):
            small_house.clock.moment = start + timedelta(seconds=moment)
            answer = small_house.ada.get(job)
            body = answer.json()
            body.pop("id"), body.pop("links"), body.pop("queued_at"), body.pop("claimed_at")
            finished = body.pop("finished_at")
            view.append((body, finished and finished[-6:], answer.headers.get("retry-after")))
        views.append(view)
        small_house.clock.moment = start
        monkeypatch.undo()
    assert views[0] == views[1]


def test_retry_after_leads_to_the_next_tick(small_house: House) -> None:
    small_house.ready()
    job = small_house.submit().headers["location"]
    assert small_house.ada.get(job).headers["retry-after"] == "1"
    assert small_house.worker.claim() is not None
    small_house.clock.move(4.2)
    assert small_house.ada.get(job).headers["retry-after"] == "4"


def test_owner_sees_at_once_and_so_does_everybody_where_ticks_are_off(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    small_house.ready("open", release_ticks=False)
    ticked = run_for(small_house, [0.2], monkeypatch)
    small_house.clock.move(0.3)
    assert small_house.carla.get(ticked).json()["state"] == "succeeded"
    assert small_house.ada.get(ticked).json()["state"] == "running"
    monkeypatch.undo()
    at_once = small_house.submit(dataset="open").headers["location"]
    assert small_house.work()
    assert small_house.ada.get(at_once).json()["state"] == "succeeded"


def test_worker_waits_for_the_tick_before_it_takes_the_next_job(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    waited: list[float] = []
    small_house.submit()
    held = small_house.worker.claim()
    assert held is not None
    small_house.clock.move(2.5)
    monkeypatch.setattr(small_house.worker.stop, "wait", waited.append)
    small_house.worker._wait_for_tick(held)
    assert waited == [1.5]
