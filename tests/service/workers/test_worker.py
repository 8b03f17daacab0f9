"""Workers announce themselves, refuse what their machine has no memory for, and report lost processes."""

from __future__ import annotations

import io
import json
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from service.operations import machine, metrics, workforce
from service.operations.logs import configure
from service.operations.settings import GIB, MIB, Settings
from service.operations.supervisor import worker_environment
from service.operations.tables import Counter
from service.workers.worker import Heartbeat, Worker
from tests.support.service import House

LARGE = {"dataset": "flowers", "k": 50, "epsilon": "1", "algorithm": "balcan"}


def worker_of(house: House, *, name: str = "worker-other", lost: str = "", **changes: Any) -> Worker:
    settings = house.settings.model_copy(update=changes)
    return Worker(settings, house.database, house.clock, name=name, lost=lost)


def ledger(house: House) -> list[str]:
    items = house.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    return [item["kind"] for item in items]


# --- limits -------------------------------------------------------------------------------------------------


def test_workers_share_the_memory_of_their_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2 * GIB)
    monkeypatch.setattr(machine, "processors", lambda: 4)
    given = worker_environment(Settings(), processes=2)
    assert given["OPENBLAS_NUM_THREADS"] == "2"
    most = int(given["CAIRN_MAX_MEMORY_BYTES"])
    assert 800 * MIB < most < 1 * GIB
    assert int(given["CAIRN_VIEW_CACHE_BYTES"]) == most // 4


def test_workers_leave_memory_to_an_api_in_the_same_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: 2 * GIB)
    alone = int(worker_environment(Settings(), 1)["CAIRN_MAX_MEMORY_BYTES"])
    with_api = int(worker_environment(Settings(api_processes=2), 1, with_api=True)["CAIRN_MAX_MEMORY_BYTES"])
    assert alone - with_api > 400 * MIB


def test_a_setting_below_the_containers_limit_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "memory_bytes", lambda: 64 * GIB)
    given = worker_environment(Settings(), processes=2)
    assert given["CAIRN_MAX_MEMORY_BYTES"] == str(4 * GIB)
    assert given["CAIRN_VIEW_CACHE_BYTES"] == str(384 * MIB)


def test_a_job_beyond_the_memory_of_a_worker_is_refused_by_the_api(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path)) as house:
        house.ready()
        worker_of(house, max_memory_bytes=GIB // 4).announce()
        for path in ("/v1/plans", "/v1/jobs"):
            refused = house.ada.post(path, LARGE)
            assert (refused.status_code, refused.json()["type"]) == (422, "/problems/work-limit")
        assert "reserve" not in ledger(house)


def test_without_workers_the_setting_alone_limits_a_job(small_house: House) -> None:
    small_house.ready()
    assert small_house.ada.post("/v1/plans", LARGE).status_code == 200


def test_a_job_that_a_worker_has_no_memory_for_is_ended_without_a_charge(small_house: House) -> None:
    """It was accepted before that worker came."""
    small_house.ready()
    assert small_house.ada.post("/v1/jobs", LARGE).status_code == 202
    assert worker_of(small_house, max_memory_bytes=GIB // 4).claim() is None
    assert ledger(small_house)[-2:] == ["reserve", "void"]
    assert small_house.ada.get("/v1/jobs/latest").json()["state"] == "failed"


def test_a_job_that_a_limit_ends_is_counted(small_house: House) -> None:
    small_house.ready()
    small_house.submit()
    held = small_house.worker.claim()
    assert held is not None
    small_house.worker.settings = small_house.settings.model_copy(update={"job_seconds": 1e-9})
    Heartbeat(small_house.worker, held).beat()
    with small_house.database.read() as session:
        counted = session.get_one(Counter, (metrics.JOB_LIMITS, "time"))
    assert counted.value == 1


# --- who is at work -----------------------------------------------------------------------------------------


def at_work(house: House) -> list[str]:
    with house.database.read() as session:
        return [record.name for record in workforce.at_work(session, house.clock.now())]


@pytest.mark.both_databases
def test_a_worker_is_at_work_until_it_leaves_or_is_silent_for_a_minute(house: House) -> None:
    first, second = worker_of(house, name="first"), worker_of(house, name="second")
    first.announce()
    second.announce()
    assert at_work(house) == ["first", "second"]
    first.depart()
    assert at_work(house) == ["second"]
    house.clock.move(61)
    assert at_work(house) == []


def test_a_worker_that_waits_for_a_planned_time_is_at_work(small_house: House) -> None:
    worker_of(small_house, name="waiting").announce(silent=600)
    small_house.clock.move(300)
    assert at_work(small_house) == ["waiting"]


# --- lost processes -----------------------------------------------------------------------------------------


def test_a_lost_process_is_counted_and_logged_with_its_job(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(House(sqlite_url, tmp_path, metrics_token="t" * 32)) as house:
        house.ready()
        job = house.submit("0.1", delta="0").json()["id"]
        assert worker_of(house).claim() is not None
        written = io.StringIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stderr", written)
            configure("json", "info")
            checks = iter([True, False])
            worker_of(house, lost="memory").run(alive=lambda: next(checks))
        configure("text", "error")
        lines = [json.loads(line) for line in written.getvalue().splitlines()]
        (lost,) = [line for line in lines if line["event"] == "a worker process was lost"]
        assert (lost["job"], lost["reason"], lost["attempts_left"]) == (job, "memory", 2)
        headers = {"Authorization": "Bearer " + "t" * 32}
        scraped = house.client.request("GET", "/metrics", headers=headers).text
        assert 'cairn_worker_processes_lost_total{reason="memory"} 1.0' in scraped
        assert 'cairn_worker_processes_lost_total{reason="killed"} 0.0' in scraped
