"""The queue and the worker: one charge, one result, three attempts, fences, limits, a clean stop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest
from sqlalchemy import func, select

from service.jobs import queue
from service.jobs.claims import Claim
from service.operations.tables import Job, LedgerEntry, Result
from service.workers import execution
from service.workers.worker import Heartbeat, Worker
from tests.support.service import House


def charges(house: House) -> int:
    with house.database.read() as session:
        return session.scalar(select(func.count()).where(LedgerEntry.kind == "charge")) or 0


def results(house: House) -> int:
    with house.database.read() as session:
        return session.scalar(select(func.count()).select_from(Result)) or 0


def the_job(house: House) -> Job:
    with house.database.read() as session:
        return session.scalars(select(Job)).one()


@pytest.fixture
def busy(house: House) -> House:
    """A service with one queued job."""
    house.ready(planned_release=False)
    assert house.submit("0.5").status_code == 202
    return house


@pytest.mark.both_databases
def test_job_is_charged_with_its_claim_before_a_row_is_read(
    busy: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []

    def spy(*_: Any) -> Any:
        seen.append(charges(busy))
        raise RuntimeError("stop here")

    monkeypatch.setattr(execution, "DatabaseSource", spy)
    assert busy.work()
    assert seen == [1]


@pytest.mark.both_databases
def test_lost_worker_is_replaced_under_the_same_charge(busy: House) -> None:
    assert busy.worker.claim() is not None
    assert busy.worker.claim() is None
    busy.clock.move(busy.settings.lease_seconds + 1)
    assert busy.work()
    assert (charges(busy), results(busy), the_job(busy).state) == (1, 1, "succeeded")


@pytest.mark.both_databases
def test_job_is_given_up_after_three_lost_workers(busy: House) -> None:
    for _ in range(queue.MOST_ATTEMPTS):
        assert busy.worker.claim() is not None
        busy.clock.move(busy.settings.lease_seconds + 1)
    assert busy.worker.claim() is None
    assert (the_job(busy).state, charges(busy), results(busy)) == ("failed", 1, 0)
    seen = busy.ada.get("/v1/jobs/latest").json()
    assert (seen["state"], seen["message"]) == ("failed", "the job ended without a result; its charge stands")
    assert "attempt" not in str(seen)


def test_exception_ends_the_job_at_the_first_attempt(busy: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise ZeroDivisionError

    monkeypatch.setattr(execution, "execute", fail)
    assert busy.work()
    assert the_job(busy).state == "failed"
    assert busy.worker.claim() is None


@pytest.mark.both_databases
def test_worker_that_lost_its_lease_stores_nothing(busy: House) -> None:
    first = busy.worker.claim()
    assert first is not None
    busy.clock.move(busy.settings.lease_seconds + 1)
    second = busy.worker.claim()
    assert second is not None
    assert not busy.worker.carry_out(first)
    assert results(busy) == 0
    assert busy.worker.carry_out(second)
    assert not busy.worker.carry_out(first)
    assert (results(busy), charges(busy)) == (1, 1)


@pytest.mark.both_databases
def test_heartbeat_keeps_the_lease(busy: House) -> None:
    held = busy.worker.claim()
    assert held is not None
    heartbeat = Heartbeat(busy.worker, held)
    for _ in range(5):
        busy.clock.move(busy.settings.lease_seconds * 0.8)
        heartbeat.beat()
        assert busy.worker.claim() is None


@pytest.mark.both_databases
def test_stopping_worker_gives_its_job_back_without_counting_an_attempt(
    database_url: str, tmp_path: Path
) -> None:
    house = House(database_url, tmp_path, stop_seconds=0.0)
    house.ready(planned_release=False)
    house.submit()
    for _ in range(queue.MOST_ATTEMPTS + 2):
        held = house.worker.claim()
        assert held is not None
        house.worker.stop.set()
        Heartbeat(house.worker, held).beat()
        assert house.left.pop() == 0
    house.worker.stop.clear()
    assert house.work()
    assert (charges(house), results(house)) == (1, 1)
    house.close()


@pytest.mark.parametrize("limit", [{"job_seconds": 1e-9}, {"max_memory_bytes": 10**9}])
def test_job_beyond_its_limits_is_ended_as_failed(
    sqlite_url: str, tmp_path: Path, limit: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "service.workers.worker._resident_bytes", lambda: 2 * 10**9 if "max_memory_bytes" in limit else 0
    )
    house = House(sqlite_url, tmp_path)
    house.ready()
    house.submit()
    held = house.worker.claim()
    assert held is not None
    house.worker.settings = house.settings.model_copy(update=limit)  # else the job would have been refused
    Heartbeat(house.worker, held).beat()
    assert house.left == [75]
    assert (the_job(house).state, charges(house)) == ("failed", 1)
    assert house.carla.get("/v1/datasets/flowers").json()["overruns"] == 1
    found = house.carla.get("/metrics").text
    assert 'cairn_overruns_total{dataset="flowers",source="limit"} 1.0' in found
    assert 'cairn_overruns_total{dataset="flowers",source=""} 0.0' in found  # no second alert
    house.close()


@pytest.mark.parametrize(
    "limit", [{"job_seconds": 0.5}, {"max_memory_bytes": (512 << 20) + (385 << 20)}], ids=str
)
def test_a_job_that_would_meet_a_limit_is_refused_before_its_charge(
    sqlite_url: str, tmp_path: Path, limit: dict[str, Any]
) -> None:
    with closing(House(sqlite_url, tmp_path, **limit)) as house:
        house.ready()
        for path in ("/v1/plans", "/v1/jobs"):
            request = {"dataset": "flowers", "k": 50, "epsilon": "1", "algorithm": "balcan"}
            refused = house.ada.post(path, request)
            assert (refused.status_code, refused.json()["type"]) == (422, "/problems/work-limit")
        assert house.carla.get("/v1/datasets/flowers/ledger").json()["items"][-1]["kind"] != "reserve"


@pytest.mark.both_databases
def test_racing_workers_claim_each_job_once(house: House) -> None:
    house.ready(planned_release=False)
    for _ in range(6):
        house.submit("0.1", delta="0")
    barrier = Barrier(8)
    claimed: list[str] = []

    def race(number: int) -> None:
        worker = Worker(house.settings, house.database, house.clock, name=f"racer-{number}")
        barrier.wait()
        for _ in range(20):
            held = worker.claim()
            if held is not None:
                claimed.append(held.job_id)

    threads = [Thread(target=race, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(claimed), len(set(claimed)), charges(house)) == (6, 6, 6)
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


@pytest.mark.both_databases
def test_claim_of_a_withdrawn_job_voids_it(house: House) -> None:
    house.ready()
    job = house.submit("0.5").json()
    with (
        house.database.write() as session
    ):  # as when the claim held the job's lock while the grant was withdrawn
        from service.operations.tables import Grant

        session.scalars(select(Grant)).one().revoked_at = house.clock.now()
    assert house.worker.claim() is None
    assert house.carla.get(f"/v1/jobs/{job['id']}").json()["state"] == "cancelled"
    assert charges(house) == 0


def test_chunk_cache_is_bounded_and_private(sqlite_url: str, tmp_path: Path) -> None:
    house = House(sqlite_url, tmp_path, chunk_bytes=4096, cache_bytes=10_000)
    house.ready(rows=5000, planned_release=False)
    house.submit()
    assert house.work()
    cache = house.settings.cache_directory
    files = list(cache.iterdir())
    assert 0 < sum(file.stat().st_size for file in files) <= 10_000
    assert cache.stat().st_mode & 0o077 == 0
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)
    assert the_job(house).state == "succeeded"
    house.close()


def test_damaged_chunk_fails_the_job(busy: House) -> None:
    from service.operations.tables import DatasetChunk

    with busy.database.write() as session:
        chunk = session.scalars(select(DatasetChunk)).first()
        assert chunk is not None
        chunk.payload = bytes(len(chunk.payload))
    assert busy.work()
    assert the_job(busy).state == "failed"


def test_worker_loop_works_until_it_is_told_to_stop(busy: House) -> None:
    worker = busy.worker
    asked = iter([True] * 3)
    worker.run(alive=lambda: next(asked, None) is not None)
    assert the_job(busy).state == "succeeded"
    assert os.getpid() > 0


# --- whose turn it is ---------------------------------------------------------------------------------------


def claimed(house: House) -> str:
    """The analyst and the request's k of the job that a free worker takes."""
    held = house.worker.claim()
    assert held is not None
    with house.database.read() as session:
        job = session.scalars(select(Job).where(Job.id == held.job_id)).one()
        name = {1: "carla", 2: "ada", 3: "ben"}[job.principal_id]
    return f"{name} {'rehearsal ' if held.rehearsal else ''}{job.request['k']}"


@pytest.fixture
def crowded(house: House) -> House:
    """A service whose queue ada has filled, after which ben submits two jobs."""
    house.ready(planned_release=False)
    house.grant("ben")
    for k in range(2, 7):
        assert house.submit("0.01", k=k, delta="0").status_code == 202
    for k in (2, 3):
        assert house.submit("0.01", k=k, delta="0", who=house.ben).status_code == 202
    return house


@pytest.mark.both_databases
def test_free_worker_takes_the_job_of_the_analyst_with_least_recent_work(crowded: House) -> None:
    assert [claimed(crowded) for _ in range(4)] == ["ada 2", "ben 2", "ada 3", "ben 3"]


@pytest.mark.both_databases
def test_small_job_comes_next_however_many_another_analyst_has_queued(house: House) -> None:
    house.ready(planned_release=False)
    house.grant("ben")
    for _ in range(20):
        assert house.submit("0.01", k=3, delta="0").status_code == 202
    assert claimed(house) == "ada 3"
    assert house.submit("0.01", k=2, delta="0", who=house.ben).status_code == 202
    assert claimed(house) == "ben 2"


def test_clock_that_is_set_back_does_not_idle_a_worker(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    small_house.submit()
    worker, pauses = small_house.worker, []

    def wait(pause: float) -> None:
        pauses.append(pause)
        worker.stop.set()

    carry_out = worker.carry_out

    def set_back(claim: Claim) -> bool:
        small_house.clock.step(-3600)
        return carry_out(claim)

    monkeypatch.setattr(worker, "carry_out", set_back)
    monkeypatch.setattr(worker.stop, "wait", wait)
    worker.run()
    with small_house.database.read() as session:
        planned = session.scalars(select(Job)).one().planned
    assert pauses == [planned.total_seconds()]


@pytest.mark.both_databases
def test_recent_work_is_forgotten(crowded: House) -> None:
    assert claimed(crowded) == "ada 2"
    crowded.clock.move(11 * 60)  # the lease has run out too, so the job of number 1 comes first again
    assert claimed(crowded) == "ada 2"


def test_order_does_not_depend_on_how_long_jobs_took(crowded: House) -> None:
    """Work that was planned counts, whether the job has ended or is still at it."""
    assert crowded.work()
    assert [claimed(crowded) for _ in range(3)] == ["ben 2", "ada 3", "ben 3"]


@pytest.mark.both_databases
def test_rehearsals_come_last(house: House) -> None:
    house.ready(planned_release=False)
    house.grant("ben")
    house.submit(k=2, rehearsal=True, who=house.ben)
    for k in (2, 3):
        house.submit("0.01", k=k, delta="0")
    assert [claimed(house) for _ in range(3)] == ["ada 2", "ada 3", "ben rehearsal 2"]


def test_rehearsal_of_too_much_work_is_refused(sqlite_url: str, tmp_path: Path) -> None:
    house = House(sqlite_url, tmp_path, rehearsal_operations=1000.0)
    house.ready()
    answer = house.submit(rehearsal=True)
    assert answer.json()["type"] == "/problems/work-limit"
    assert house.submit().status_code == 202
    house.close()


@pytest.mark.both_databases
def test_queued_jobs_of_a_disabled_analyst_end_void(busy: House) -> None:
    assert busy.carla.delete("/v1/principals/ada").status_code == 204
    assert busy.worker.claim() is None
    assert (the_job(busy).state, the_job(busy).reason, charges(busy)) == ("cancelled", "withdrawn", 0)


# --- ended by the curator -----------------------------------------------------------------------------------


def ended(house: House) -> Any:
    return house.carla.post("/v1/jobs/latest/end")


@pytest.mark.both_databases
def test_curator_ends_a_running_job_whose_charge_stays(busy: House) -> None:
    held = busy.worker.claim()
    assert held is not None
    assert (ended(busy).status_code, ended(busy).status_code) == (200, 409)
    seen = busy.ada.get("/v1/jobs/latest").json()
    assert (seen["state"], seen["message"]) == ("failed", "ended by the dataset's curator; its charge stands")
    assert not busy.worker.carry_out(held)
    assert (charges(busy), results(busy)) == (1, 0)
    (event,) = (e for e in busy.carla.get("/v1/audit").json()["items"] if e["action"] == "end-job")
    assert event["details"]["job"] == held.job_id


def test_curator_ends_a_queued_job_without_a_charge(busy: House) -> None:
    assert ended(busy).status_code == 200
    seen = busy.ada.get("/v1/jobs/latest").json()
    assert (seen["state"], seen["message"]) == (
        "cancelled",
        "ended by the dataset's curator; nothing was charged",
    )
    assert busy.worker.claim() is None
    assert busy.ada.get("/v1/datasets/flowers").json()["budget"]["remaining"]["epsilon"] == "1"


def test_job_that_was_seen_to_end_cannot_be_ended(busy: House) -> None:
    assert busy.work()
    assert ended(busy).json()["type"] == "/problems/not-cancellable"
    assert results(busy) == 1


def test_stopping_worker_leaves_a_job_that_was_ended_at_once(busy: House) -> None:
    held = busy.worker.claim()
    assert held is not None
    assert ended(busy).status_code == 200
    busy.worker.stop.set()
    Heartbeat(busy.worker, held).beat()
    assert busy.left == [0]


def without_end(
    _held: Any, _database: Any, _settings: Any, listen: Callable[[str, int, int], None]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """An execution that takes one step after the other until it is told to stop."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        listen("sums", 1, 1000)
        time.sleep(0.01)
    pytest.fail("the job was not stopped")


def test_worker_stops_when_its_job_was_ended(busy: House, monkeypatch: pytest.MonkeyPatch) -> None:
    held = busy.worker.claim()
    assert held is not None
    assert ended(busy).status_code == 200
    monkeypatch.setattr(execution, "execute", without_end)
    busy.worker.settings = busy.settings.model_copy(update={"lease_seconds": 0.3})
    assert not busy.worker.carry_out(held)


@pytest.mark.parametrize("settings", [{"stop_seconds": 0.0}, {"job_seconds": 1e-9}])
def test_worker_that_may_not_end_its_process_ends_its_job_instead(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]
) -> None:
    with closing(House(sqlite_url, tmp_path, lease_seconds=0.3)) as house:
        house.ready()
        house.submit()
        worker = Worker(house.settings.model_copy(update=settings), house.database, house.clock)
        worker.stop.set()
        held = worker.claim()
        assert held is not None
        monkeypatch.setattr(execution, "execute", without_end)
        assert not worker.carry_out(held)
        given_back = house.worker.claim() is not None
        assert (given_back, the_job(house).state) in [(True, "running"), (False, "failed")]
        assert given_back == ("stop_seconds" in settings)
