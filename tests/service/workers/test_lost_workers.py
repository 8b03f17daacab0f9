"""A job whose worker was lost goes on from what it released: nothing that was kept is measured again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import delete, func, select
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from core.coverage.coins import Coins
from core.probe import Probe
from service.jobs import queue
from service.jobs.claims import JobLost
from service.jobs.results import transcripts
from service.operations import database, faults
from service.operations.tables import DatasetChunk, Job, JournalEntry, LedgerEntry
from service.workers.journal import StoredJournal
from tests.support import journals
from tests.support.service import House

#: A clustering in several rounds, one with a coverage loop and public randomness, and a question.
JOBS: dict[str, dict[str, Any]] = {
    "rounds": {"k": 2, "algorithm": "sulq", "options": {"rounds": 3}},
    "coverage": {"k": 2, "algorithm": "chaturvedi"},
    "question": {"kind": "summary"},
}
MESSAGE = "the job ended without a result; its charge stands"


class Death(BaseException):
    """The end of a worker process, as far as its job is concerned."""


@contextmanager
def dying_at(point: str, passes: int = 0) -> Iterator[list[str]]:
    """Die at a fault point after it was passed so often; collects every point that is passed."""
    passed: list[str] = []

    def reach(name: str) -> None:
        passed.append(name)
        if name == point and passed.count(name) > passes:
            raise Death

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(faults, "reach", reach)
        yield passed


def passing() -> AbstractContextManager[list[str]]:
    """Collect the fault points that are passed."""
    return dying_at("")


@pytest.fixture
def busy(house: House) -> House:
    budget = {"epsilon": "1000", "delta": "0.01"}
    house.ready(planned_release=False, budget=budget)
    granted = house.carla.put("/v1/datasets/flowers/grants/ada", budget | {"kinds": ["cluster", "summary"]})
    assert granted.status_code == 200
    return house


def submitted(house: House, job: str = "rounds", **changes: Any) -> str:
    answer = house.ada.post("/v1/jobs", {"dataset": "flowers", "epsilon": "0.5", **JOBS[job], **changes})
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def lose_worker(house: House, point: str, passes: int = 0) -> list[str]:
    """Let a worker take the next job and die; its lease runs out. The points that it passed."""
    with dying_at(point, passes) as passed, pytest.raises(Death):
        house.work()
    house.clock.move(house.settings.lease_seconds + 1)
    return passed


def kept(house: House) -> list[bytes | None]:
    return journals.entries(house.database)


def the_job(house: House, job: str) -> Job:
    with house.database.read() as session:
        return session.scalars(select(Job).where(Job.id == job)).one()


def charges(house: House, job: str) -> int:
    with house.database.read() as session:
        made = select(func.count()).where(LedgerEntry.kind == "charge", LedgerEntry.job_id == job)
        return session.scalar(made) or 0


def assert_goes_on(house: House, job: str) -> list[str]:
    """Let another worker take the job over and end it well; the points that it passed."""
    before = kept(house)
    with passing() as passed:
        assert house.work()
    assert journals.goes_on(before, journals.transcript(house.database, job))
    receipt = house.ada.get(f"/v1/jobs/{job}/receipt").json()
    content = house.ada.get(f"/v1/jobs/{job}/transcript").content
    result = house.ada.get(f"/v1/jobs/{job}/result").json()
    replayed = json.loads(json.dumps(transcripts.replay(receipt, content)))
    assert replayed == {name: result[name] for name in replayed}
    assert (the_job(house, job).state, charges(house, job), kept(house)) == ("succeeded", 1, [])
    return passed


def places(count: int, most: int = 6) -> list[int]:
    """Some of so many places, the first and the last among them."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))})


@pytest.mark.parametrize("point", ["execute.drawn", "execute.kept", "execute.measured"])
@pytest.mark.parametrize("job", JOBS)
def test_each_measurement_is_made_once_wherever_a_worker_is_lost(busy: House, job: str, point: str) -> None:
    """Before a value is kept, in the transaction that keeps it, and after: only what is left is measured."""
    submitted(busy, job)
    with passing() as whole:
        assert busy.work()
    for number in places(whole.count(point)):
        lost = submitted(busy, job)
        first = lose_worker(busy, point, number)
        done = len(journals.releases(kept(busy)))
        second = assert_goes_on(busy, lost)
        assert first.count("execute.drawn") - done <= 1
        assert second.count("execute.drawn") == whole.count("execute.drawn") - done


def test_a_job_goes_on_from_a_worker_that_went_on_itself(busy: House) -> None:
    job = submitted(busy)
    first = lose_worker(busy, "execute.measured", 1)
    second = lose_worker(busy, "execute.measured", 3)
    third = assert_goes_on(busy, job)
    assert [each.count("execute.drawn") for each in (first, second, third)] == [2, 2, 2]


def test_a_coverage_loop_that_was_cut_off_is_made_again_with_other_coins(
    busy: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    toss = Coins.__init__

    def counted(self: Coins, key: bytes, keep: int) -> None:
        toss(self, key, keep)
        made.append(self.name)

    monkeypatch.setattr(Coins, "__init__", counted)
    job = submitted(busy, "coverage")
    lose_worker(busy, "execute.measured", 3)
    assert journals.releases(kept(busy)) == []
    assert_goes_on(busy, job)
    assert len(made) == len(set(made)) == 2


def test_a_worker_that_lost_its_job_keeps_nothing_in_its_journal(busy: House) -> None:
    submitted(busy)
    first = busy.worker.claim()
    busy.clock.move(busy.settings.lease_seconds + 1)
    second = busy.worker.claim()
    assert first is not None
    assert second is not None
    of_first = StoredJournal.open(busy.database, first, 1 << 20)
    of_second = StoredJournal.open(busy.database, second, 1 << 20)
    with pytest.raises(JobLost):
        of_first.seed("shift", lambda: bytes(16))
    assert kept(busy) == []
    assert of_second.seed("shift", lambda: bytes(range(16))) == bytes(range(16))
    assert kept(busy) == [bytes(range(16))]


def test_a_commit_that_was_not_confirmed_is_repeated_without_harm(
    busy: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(busy)
    write = busy.database.write
    unconfirmed: list[int] = []

    @contextmanager
    def losing_answers() -> Iterator[Any]:
        with write() as session:
            yield session
        if len(unconfirmed) < 3:
            unconfirmed.append(1)
            raise OperationalError("COMMIT", {}, Exception("the connection is gone"))

    held = busy.worker.claim()
    assert held is not None
    monkeypatch.setattr(database, "_PAUSE_SECONDS", 0.01)
    stored = StoredJournal.open(busy.database, held, 1 << 20)
    monkeypatch.setattr(busy.database, "write", losing_answers)
    for name in ("rotation", "shift"):
        stored.seed(name, lambda name=name: name.encode())  # type: ignore[misc]  # a lambda's default
    assert kept(busy) == [b"rotation", b"shift"]
    assert (len(unconfirmed), the_job(busy, job).state) == (3, "running")


def assert_fails(house: House, job: str) -> None:
    assert house.work()
    assert (the_job(house, job).state, charges(house, job), kept(house)) == ("failed", 1, [])
    assert house.ada.get(f"/v1/jobs/{job}").json()["message"] == MESSAGE


def test_a_version_that_would_measure_something_else_does_not_go_on(
    busy: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(busy)
    lose_worker(busy, "execute.measured", 2)
    measure = Probe.measure

    def elsewhere(self: Probe, step_name: str, statistic: Any) -> Any:
        moved = statistic if not hasattr(statistic, "view") else move_centres(statistic)
        return measure(self, step_name, moved)

    monkeypatch.setattr(Probe, "measure", elsewhere)
    with passing() as passed:
        assert_fails(busy, job)
    assert "execute.drawn" not in passed


def move_centres(statistic: Any) -> Any:
    view = statistic.view
    return replace(statistic, view=replace(view, centres=view.centres + 1))


def test_a_version_that_would_measure_less_does_not_go_on(
    busy: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submitted(busy)
    lose_worker(busy, "finish.begun")
    kept_on = kept(busy)
    with busy.database.write() as session:
        session.add(JournalEntry(job_id=job, ordinal=len(kept_on), digest="0" * 64, payload=kept_on[-1]))
    assert_fails(busy, job)


def test_what_is_too_long_to_keep_is_not_gone_on_from(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path, transcript_bytes=400)) as short:
        short.ready(planned_release=False)
        unharmed = submitted(short, epsilon="0.1", delta="0")
        assert short.work()
        assert the_job(short, unharmed).state == "succeeded"
        lost = submitted(short, epsilon="0.1", delta="0")
        lose_worker(short, "execute.measured", 4)
        assert [payload is None for payload in kept(short)] == [False] * 3 + [True] * 3
        with passing() as passed:
            assert_fails(short, lost)
        assert "execute.drawn" not in passed


@pytest.mark.parametrize("how", ["exception", "curator", "attempts"])
def test_a_journal_goes_with_its_job(busy: House, how: str) -> None:
    job = submitted(busy)
    lose_worker(busy, "execute.measured", 2)
    assert kept(busy)
    if how == "curator":
        assert busy.carla.post(f"/v1/jobs/{job}/end").status_code == 200
    elif how == "attempts":
        for _ in range(queue.MOST_ATTEMPTS - 1):
            lose_worker(busy, "execute.begun")
        assert busy.worker.claim() is None
    else:
        with busy.database.write() as session:
            session.execute(delete(DatasetChunk))
        assert busy.work()
    assert (the_job(busy, job).state, kept(busy)) == ("failed", [])


def test_a_rehearsal_keeps_no_journal(busy: House) -> None:
    job = submitted(busy, rehearsal=True)
    passed = lose_worker(busy, "execute.measured", 4)
    assert "execute.kept" not in passed
    assert busy.work()
    assert (the_job(busy, job).state, charges(busy, job)) == ("succeeded", 0)


def test_a_job_that_is_taken_over_late_counts_as_an_overrun(small_house: House) -> None:
    small_house.ready()
    job = submitted(small_house)
    with dying_at("execute.measured", 3), pytest.raises(Death):
        small_house.work()
    small_house.clock.move(small_house.settings.lease_seconds + 1)
    running = small_house.ada.get(f"/v1/jobs/{job}").json()
    assert running["state"] == "running"
    assert small_house.work()
    assert small_house.carla.get("/v1/datasets/flowers").json()["overruns"] == 1
    found = the_job(small_house, job)
    assert found.claimed_at is not None
    assert found.released_at is not None
    assert (found.released_at - found.claimed_at).total_seconds() == 32.0


# --- twins --------------------------------------------------------------------------------------------------


def test_a_twin_that_measures_again_is_caught(busy: House, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submitted(busy)
    lose_worker(busy, "execute.measured", 5)

    def forgetful(cls: type[StoredJournal], database: Any, claim: Any, most_bytes: int) -> StoredJournal:
        return cls(database, claim, most_bytes, [])

    monkeypatch.setattr(StoredJournal, "open", classmethod(forgetful))
    monkeypatch.setattr(Session, "merge", lambda *_: None)
    with pytest.raises(AssertionError, match="goes_on"):
        assert_goes_on(busy, job)
