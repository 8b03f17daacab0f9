"""Rehearsals are guests: they give way to real jobs, end at twice their plan, and what they stored goes."""

from __future__ import annotations

import io
import shutil
import signal
import threading
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import func, select

from service.jobs import retention
from service.operations.tables import Result
from service.workers import execution
from service.workers.interruption import Interrupted, Interruption
from service.workers.worker import Heartbeat
from tests.support.service import House


def rehearse(house: House, **body: Any) -> str:
    answer = house.submit(rehearsal=True, **body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def interrupted(house: House, monkeypatch: pytest.MonkeyPatch, job: str) -> None:
    """Run a rehearsal during which a real job is submitted."""
    real = execution.execute

    def slow(claim: Any, *rest: Any) -> Any:
        listen = rest[-1]
        assert house.submit().status_code == 202
        while True:  # until the heartbeat has seen the job
            listen("a step", 1, 2)
            threading.Event().wait(0.01)

    monkeypatch.setattr(execution, "execute", slow)
    claim = house.worker.claim()
    assert claim is not None
    assert claim.job_id == job
    assert not house.worker.carry_out(claim)
    monkeypatch.setattr(execution, "execute", real)


def test_rehearsal_gives_way_to_a_real_job_and_runs_again_later(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready()
    job = rehearse(house)
    interrupted(house, monkeypatch, job)
    first, second = house.worker.claim(), house.worker.claim()
    assert first is not None
    assert not first.rehearsal
    assert second is not None
    assert second.job_id == job
    assert house.worker.carry_out(second)
    house.clock.move(3600)
    assert house.ada.get(f"/v1/jobs/{job}/result").status_code == 200


def test_analyst_is_not_told_that_a_rehearsal_gave_way(
    sqlite_template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its state, phase and times follow its plan, and its end a tick, whether it ran once or twice."""
    told = []
    for side in ("once", "twice"):
        path = tmp_path / f"{side}.sqlite3"
        shutil.copy(sqlite_template, path)
        with closing(House(f"sqlite:///{path}", tmp_path)) as house:
            house.ready()
            job = rehearse(house)
            seen: list[Any] = []

            def look(house: House = house, job: str = job, seen: list[Any] = seen) -> None:
                facts = house.ada.get(f"/v1/jobs/{job}").json()
                result = house.ada.get(f"/v1/jobs/{job}/result").status_code
                seen.append({**facts, "id": "", "links": {}, "plan_digest": "", "result": result})

            if side == "twice":
                interrupted(house, monkeypatch, job)
                assert house.worker.claim() is not None
                look()
                house.clock.move(3.2)
                look()
                assert house.work()
            else:
                claim = house.worker.claim()
                assert claim is not None
                look()
                house.clock.move(3.2)
                look()
                assert house.worker.carry_out(claim)
            for seconds in (0.1, 0.5, 0.3, 0.0):
                look()
                house.clock.move(seconds)
            assert seen[-1]["state"] == "succeeded"
            told.append(seen)
    assert told[0] == told[1]


def test_worker_that_rests_after_a_rehearsal_takes_real_jobs_alone(small_house: House) -> None:
    """Another rehearsal at once would show when the first one ended."""
    small_house.ready()
    rehearse(small_house)
    assert small_house.worker.claim(guests=False) is None
    small_house.submit()
    claim = small_house.worker.claim(guests=False)
    assert claim is not None
    assert not claim.rehearsal


def test_rehearsal_may_run_for_twice_its_plan(small_house: House) -> None:
    small_house.ready()
    rehearse(small_house)
    claim = small_house.worker.claim()
    assert claim is not None
    for seconds, longest in ((0.75, 10.0), (28.0, 56.0), (100.0, 120.0)):
        planned = type(claim)(**{**vars(claim), "planned": timedelta(seconds=seconds)})
        assert Heartbeat(small_house.worker, planned)._longest_seconds() == longest


def test_results_of_rehearsals_go_after_a_day_and_those_of_jobs_stay(small_house: House) -> None:
    small_house.ready(release_ticks=False)
    for rehearsal in (True, False):
        small_house.submit(rehearsal=rehearsal)
        assert small_house.work()
    small_house.clock.move(100)
    job, old = [each["id"] for each in small_house.ada.get("/v1/jobs").json()["items"]]
    with small_house.database.write() as session:
        assert retention.delete_old_rehearsals(session, before=small_house.clock.now()) == 1
        assert session.scalars(select(Result.job_id)).all() == [job]
    gone = small_house.ada.get(f"/v1/jobs/{old}/result")
    assert gone.status_code == 404
    assert "submit the job again" in gone.json()["detail"]


def test_oldest_results_of_rehearsals_make_room_when_another_starts(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path, rehearsal_bytes=20_000)) as house:
        house.ready(release_ticks=False)
        for _ in range(4):
            rehearse(house, k=100)
            assert house.work()
            house.clock.move(10)
        with house.database.read() as session:
            count, size = session.execute(
                select(func.count(), func.sum(Result.stored_bytes)).select_from(Result)
            ).one()
        assert 1 <= count < 4
        assert size < 2 * 20_000
        newest = house.ada.get("/v1/jobs/latest/result", headers={"Accept": "application/x-npy"})
        assert np.load(io.BytesIO(newest.content)).shape == (100, 2)


def _wait_for(interruption: Interruption) -> None:
    with interruption.allowed(True):
        threading.Timer(0, interruption.ask).start()
        threading.Event().wait(60)


def test_interruption_ends_what_allows_it_and_nothing_else() -> None:
    before = signal.getsignal(signal.SIGUSR1)
    interruption = Interruption()
    interruption.ask()  # of a worker without a process of its own: nothing happens
    interruption.install()
    try:
        interruption.ask()
        with interruption.allowed(False):
            interruption.ask()
        with pytest.raises(Interrupted):
            _wait_for(interruption)
    finally:
        signal.signal(signal.SIGUSR1, before)
