"""Steps of the clock during a job change neither when its end is shown nor how long its worker is held."""

from __future__ import annotations

from datetime import timedelta

import pytest

from service.jobs import queue
from service.operations.tables import Job
from service.workers import execution
from tests.support.service import House

STEPS = [sign * seconds for seconds in (1, 3600, 86_400) for sign in (1, -1)]


def waits(house: House, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Collect the pauses of the worker, which do not really pass."""
    seen: list[float] = []
    monkeypatch.setattr(house.worker.stop, "wait", seen.append)
    return seen


@pytest.mark.parametrize("seconds", STEPS)
@pytest.mark.parametrize("point", ["run", "hold"])
def test_a_step_changes_neither_release_nor_hold(
    small_house: House, monkeypatch: pytest.MonkeyPatch, point: str, seconds: int
) -> None:
    house = small_house
    house.ready()
    house.submit("0.1", delta="0")
    claim = house.worker.claim()
    assert claim is not None
    run = execution.execute

    def stepping(*arguments: object) -> object:
        house.clock.step(seconds)
        return run(*arguments)  # type: ignore[arg-type]

    if point == "run":
        monkeypatch.setattr(execution, "execute", stepping)
    assert house.worker.carry_out(claim)
    if point == "hold":
        house.clock.step(seconds)
    seen = waits(house, monkeypatch)
    house.worker._hold(claim)
    with house.database.read() as session:
        job = session.query(Job).one()
        assert job.released_at == claim.claimed_at + claim.planned
        assert job.finished_at == claim.claimed_at
    assert seen == [claim.planned.total_seconds()]


@pytest.mark.parametrize("seconds", STEPS)
def test_a_process_that_replaces_a_lost_one_is_held_no_longer_than_planned(
    small_house: House, seconds: int
) -> None:
    house = small_house
    house.ready()
    house.submit("0.1", delta="0")
    claim = house.worker.claim()
    assert claim is not None
    assert house.worker.carry_out(claim)
    house.clock.step(seconds)
    now = house.clock.now()
    with house.database.write() as session:
        held_until = queue.resume(session, house.worker.name, now=now)
    assert held_until is not None
    assert held_until <= now + max(claim.planned, timedelta(0))
