"""Long rehearsals keep the one worker of a real service busy while another analyst submits real jobs.

Every real job must start within two seconds, and what rehearsals store must stay within its limit.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from sqlalchemy import create_engine, func, select

from assurance.chaos.stage import Stage, Tally
from benchmarks.harness.processes import RemotePerson, server
from benchmarks.pages import small_dataset
from service.operations.tables import Result

__all__ = ["keep_a_worker_busy"]

_REHEARSALS, _JOBS = 4, 2
_MOST_START_SECONDS = 2.0
#: The shortest plan of a rehearsal that is long, and how many rounds are tried for it.
_LONG_SECONDS, _ROUNDS = 28.0, (5, 10, 20, 40, 80)
_COLUMNS = [f"c{number}" for number in range(50)]
_REHEARSAL: dict[str, Any] = {
    "dataset": "theirs",
    "k": 10_000,
    "algorithm": "sulq",
    "epsilon": "1",
    "delta": "0",
    "rehearsal": True,
}
_JOB = {"dataset": "ours", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0"}
#: What rehearsals may store: less than two of their results.
_STORED_BYTES = 16 << 20


def keep_a_worker_busy(stage: Stage, tally: Tally) -> str:
    """Rehearse four times at length, and submit two jobs meanwhile; return a line of figures."""
    url = stage.database()
    limits = {"rehearsal_bytes": str(_STORED_BYTES), "log_level": "error"}
    with server(url, stage.folder, command=("serve", "--workers", "1"), **limits) as running:
        carla = running.person(running.bootstrap_key())
        ada, mal = (running.person(_key(carla, name)) for name in ("ada", "mal"))
        small_dataset(carla, "ours", "ada")
        small_dataset(carla, "theirs", "mal", columns=_COLUMNS)
        body, planned = _long(mal)
        rehearsals = [
            mal.call("POST", "/v1/jobs", json=body, expect=202).json()["id"] for _ in range(_REHEARSALS)
        ]
        waits = []
        for _ in range(_JOBS):
            _until_one_runs(mal, rehearsals)
            waits.append(_start_seconds(ada))
        ended = [mal.wait(job)["state"] for job in rehearsals]
    engine = create_engine(url)
    with engine.connect() as connection:
        largest, stored = connection.execute(
            select(func.max(Result.stored_bytes), func.sum(Result.stored_bytes))
        ).one()
    engine.dispose()
    line = (
        f"  {stage.kind}: {_REHEARSALS} rehearsals planned at {planned:.0f} s ({', '.join(ended)}); "
        f"jobs start after {' and '.join(f'{each:.1f} s' for each in waits)}; "
        f"rehearsals store {int(stored) / 1e6:.0f} MB"
    )
    tally.add("jobs submitted beside long rehearsals", _JOBS)
    late = [each for each in waits if each > _MOST_START_SECONDS]
    tally.check(not late, f"guests: a job waits for {late} s while a worker rehearses")
    # The newest is not counted, nor one that was not shown when that started.
    tally.check(stored <= _STORED_BYTES + 2 * largest, f"guests: rehearsals store {stored} bytes")
    return line


def _key(carla: RemotePerson, name: str) -> str:
    made = carla.call("POST", "/v1/principals", json={"name": name, "role": "analyst"}, expect=201)
    return str(made.json()["first_key"]["key"])


def _long(person: RemotePerson) -> tuple[dict[str, Any], float]:
    """Return a rehearsal that is planned to take long, and its planned seconds."""
    planned = 0.0
    for rounds in _ROUNDS:
        body = {**_REHEARSAL, "options": {"rounds": rounds}}
        plan = person.call("POST", "/v1/plans", json=body, expect=200).json()
        planned = plan["planned_seconds"]
        if planned >= _LONG_SECONDS:
            return body, planned
    return body, planned


def _until_one_runs(person: RemotePerson, jobs: list[str]) -> None:
    """Wait until a rehearsal has run for a moment: not only has it been claimed."""
    while not any(person.call("GET", f"/v1/jobs/{job}").json()["state"] == "running" for job in jobs):
        time.sleep(0.2)
    time.sleep(3)


def _start_seconds(person: RemotePerson) -> float:
    """Return how long a job waits for the worker."""
    job = person.call("POST", "/v1/jobs", json=_JOB, expect=202).json()["id"]
    facts = person.wait(job)
    queued, claimed = (datetime.fromisoformat(facts[name]) for name in ("queued_at", "claimed_at"))
    return (claimed - queued).total_seconds()
