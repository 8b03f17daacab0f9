"""Limits and keys of one analyst hold across datasets, also when everything is asked for at once."""

from __future__ import annotations

from pathlib import Path
from threading import Barrier, Thread

import pytest

from assurance.chaos.invariants import faults
from assurance.chaos.scene import Scene, body, plan
from core.plan import Work
from service import errors
from service.datasets import access
from service.jobs import submit
from service.jobs.limits import Limits
from service.jobs.planned import price
from service.operations.clock import SystemClock

pytestmark = pytest.mark.both_databases

CLIENTS = 8


def submit_at_once(scene: Scene, *, limit: int, key: str | None) -> list[str]:
    """What came of submissions to as many datasets, released together."""
    names = [scene.dataset("sum", "1", caps=("1",)) for _ in range(CLIENTS)]
    limits = Limits(Work(1e14, 2.0**40), limit, 10**9)
    plan("0.1")
    barrier = Barrier(CLIENTS)
    outcomes: list[str] = []

    def attempt(name: str) -> None:
        barrier.wait()
        try:
            with scene.database.write() as session:
                now = SystemClock().now()
                right = access.find(session, name, scene.ada)
                planned = price(session, right, body(name, "0.1"), plan("0.1"), limits)
                submit.reserve_and_enqueue(session, planned, key=key, limits=limits, now=now)
            outcomes.append("accepted")
        except errors.ServiceError as refusal:
            outcomes.append(refusal.slug)

    threads = [Thread(target=attempt, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(outcomes)


def test_analyst_cannot_queue_more_by_asking_on_many_datasets_at_once(
    database_url: str, tmp_path: Path
) -> None:
    scene = Scene(database_url, tmp_path)
    outcomes = submit_at_once(scene, limit=1, key=None)
    assert outcomes == ["accepted", *["too-many-queued"] * (CLIENTS - 1)]
    assert faults(scene.database) == []
    scene.close()


def test_one_key_makes_one_job_among_all_datasets(database_url: str, tmp_path: Path) -> None:
    scene = Scene(database_url, tmp_path)
    outcomes = submit_at_once(scene, limit=100, key="the-same")
    assert outcomes == ["accepted", *["idempotency-mismatch"] * (CLIENTS - 1)]
    assert faults(scene.database) == []
    scene.close()
