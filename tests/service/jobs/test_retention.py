"""Plans of cancelled jobs and rehearsals are forgotten after a time; everything that was charged stays."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from sqlalchemy import select

from service.jobs import retention
from service.operations.tables import Job
from tests.support.service import START, House

DAY = 24 * 3600.0


@pytest.fixture
def used(house: House) -> dict[str, str]:
    """A job of each fate, all ended on the first day but for the last two; their ids."""
    house.ready(planned_release=False)
    charged = house.submit("0.1").json()["id"]
    assert house.work()
    rehearsed = house.submit("0.1", rehearsal=True).json()["id"]
    assert house.work()
    cancelled = house.submit("0.1", delta="0").json()["id"]
    house.ada.delete(f"/v1/jobs/{cancelled}")
    waiting = house.submit("0.1", delta="0").json()["id"]
    house.clock.move(10 * DAY)
    recent = house.submit("0.1", delta="0").json()["id"]
    house.ada.delete(f"/v1/jobs/{recent}")
    ids = (charged, rehearsed, cancelled, waiting, recent)
    return dict(zip(("charged", "rehearsed", "cancelled", "waiting", "recent"), ids, strict=True))


def plans(house: House) -> dict[str, bool]:
    with house.database.read() as session:
        return {job: bool(plan) for job, plan in session.execute(select(Job.id, Job.plan))}


@pytest.mark.both_databases
def test_old_plans_of_cancelled_jobs_and_rehearsals_go_and_all_else_stays(
    house: House, used: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_BATCH", 1)
    before = {name: house.ada.get(f"/v1/jobs/{job}").json() for name, job in used.items()}
    now = house.clock.now()
    assert retention.prune(house.database, before=START + timedelta(days=5), now=now) == 2
    kept = plans(house)
    assert {name for name, job in used.items() if not kept[job]} == {"rehearsed", "cancelled"}
    assert retention.prune(house.database, before=START + timedelta(days=5), now=now) == 0
    assert {name: house.ada.get(f"/v1/jobs/{job}").json() for name, job in used.items()} == before
    for name in ("charged", "rehearsed"):
        assert house.ada.get(f"/v1/jobs/{used[name]}/result").status_code == 200
        assert house.ada.get(f"/v1/jobs/{used[name]}/receipt").status_code == 200
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]
    assert house.work()  # the one that waited still has its plan
    actions = [each["action"] for each in house.carla.get("/v1/audit").json()["items"]]
    assert actions.count("prune") == 1


def test_the_command_needs_a_number_of_days_for_plans(small_house: House) -> None:
    small_house.ready()
    settings = {"CAIRN_DATABASE_URL": small_house.settings.database_url}
    command = [sys.executable, "-m", "service.cli", "prune"]
    idle = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    assert "CAIRN_RETENTION_DAYS" in idle.stderr
    done = subprocess.run([*command, "--days", "1"], env=settings, capture_output=True, text=True, check=True)
    assert "plans of 0 jobs" in done.stdout
