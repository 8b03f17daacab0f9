"""A sample of the campaign that `make chaos` runs: races, crashes, outages and cuts on both databases."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import func, select

from assurance.chaos.invariants import faults
from assurance.chaos.scene import DELTA, Scene
from benchmarks.harness.processes import ROOT, server
from service.operations.database import Database
from service.operations.states import JobState
from service.operations.tables import Job, LedgerEntry, Result
from tests.support.databases import KINDS


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_lost_or_overspent_in_a_sample_of_the_campaign(kind: str) -> None:
    """In a process of its own, because forking needs one without threads."""
    command = [sys.executable, "-m", "assurance", "chaos", f"sample-{kind}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    injected, raced = re.findall(r"faults injected (\d+), races run (\d+), lost 0, overspent 0", done.stdout)[
        0
    ]
    assert int(injected) >= 20
    assert int(raced) >= 24


def test_service_as_it_is_started_outlives_a_killed_worker(sqlite_url: str, tmp_path: Path) -> None:
    """`cairn-server serve` with one worker that dies when it has claimed; its supervisor starts another."""
    scene = Scene(sqlite_url, tmp_path)
    dataset = scene.dataset("sum", "1", caps=("1",))
    ticket = tmp_path / "ticket"
    ticket.touch()
    command = ("serve", "--workers", "1")
    options = {"test_fault": f"claim.committed:kill:0:{ticket}", "lease_seconds": "1"}
    with server(sqlite_url, tmp_path, command=command, **options) as service:
        ada = service.person(scene.keys[1])
        body = {"dataset": dataset, "k": 2, "algorithm": "sulq", "epsilon": "0.5", "delta": DELTA}
        job = ada.call("POST", "/v1/jobs", json=body, expect=202).json()["id"]
        assert ada.wait(job)["state"] == "succeeded"
    assert not ticket.exists()
    assert faults(scene.database) == []
    with scene.database.read() as session:
        assert session.scalar(select(Job.attempts)) == 2
        assert session.scalar(select(func.count()).where(LedgerEntry.kind == "charge")) == 1
        assert session.scalar(select(func.count()).select_from(Result)) == 1
    scene.close()


def test_invariants_notice_a_job_that_is_charged_twice(database: Database, tmp_path: Path) -> None:
    """The campaign's own eye is tested: each of these would be a fault."""
    scene = Scene(database.url, tmp_path)
    job = scene.queued(scene.dataset("sum", "1", caps=("1",)), "0.5")
    assert faults(database) == []
    with database.write() as session:
        session.scalars(select(Job).where(Job.id == job)).one().state = JobState.SUCCEEDED
    found = faults(database)
    assert any("with the entries" in fault for fault in found)
    assert any("its result is False" in fault for fault in found)
    scene.close()
