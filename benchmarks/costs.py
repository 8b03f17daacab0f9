"""The map of costs: what every described call takes of the event loop: `python -m benchmarks costs`.

A service gets 10,000 jobs, and a result and a transcript as long as they may be.
Then every call of the OpenAPI description is made in this process, with the largest page, each format and
the longest bodies, and a question about the longest result. The aim is at most 20 ms of the event loop's
processor time, and 32 MiB of memory. `held_ms` is the longest time, by the clock, without a turn of the event
loop: threads keep it waiting, too.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session

from benchmarks.harness.costs import Call, Cost, Meter, walk
from benchmarks.harness.processes import server
from benchmarks.measuring import RESULTS, print_table, write_csv
from benchmarks.pages import fill, small_dataset
from service.app import create_app
from service.jobs.results import answers
from service.operations.logs import configure
from service.operations.settings import MIB, Settings
from service.operations.tables import Result, StoredAnswer, TranscriptPart

__all__ = ["main"]

_LOOP_SECONDS, _BYTES = 0.020, 32 * MIB
_JOB = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0"}
_COLUMNS = [f"c{number}" for number in range(50)]


def main(
    jobs: Annotated[int, typer.Option(help="Number of jobs in the database.")] = 10_000,
    results: Annotated[Path, typer.Option(help="Folder for the table.")] = RESULTS,
) -> None:
    """Measure what every described call takes of the event loop, and its memory."""
    configure("text", "critical")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        keys, values = _prepare(folder, jobs)
        costs = _walk(folder, keys, values)
    rows = [_row(each) for each in sorted(costs, key=lambda each: -each.loop_seconds)]
    write_csv(results / "costs.csv", rows)
    print_table(f"{len(rows)} requests to {len({each.call.route for each in costs})} calls", rows[:40])
    over = [row for row in rows if row["aim"] != "kept"]
    typer.echo(f"{len(over)} requests exceed {_LOOP_SECONDS * 1000:.0f} ms or {_BYTES >> 20} MiB.")


def _row(cost: Cost) -> dict[str, object]:
    kept = cost.loop_seconds <= _LOOP_SECONDS and cost.bytes_at_once <= _BYTES
    query = "&".join(f"{name}={value}" for name, value in cost.call.query.items())
    return {
        "call": cost.call.route,
        "with": " ".join(filter(None, (query, cost.call.accept, cost.call.what))),
        "status": cost.status,
        "sent_kb": cost.sent_bytes >> 10,
        "loop_ms": round(cost.loop_seconds * 1e3, 1),
        "process_ms": round(cost.process_seconds * 1e3, 1),
        "held_ms": round(cost.held_seconds * 1e3, 1),
        "mib": round(cost.bytes_at_once / MIB, 1),
        "aim": "kept" if kept else "missed",
    }


def _prepare(folder: Path, jobs: int) -> tuple[list[str], dict[str, Any]]:
    """Fill a database; return the keys of a curator and an analyst, and the values of parameters."""
    url = f"sqlite:///{folder / 'cairn.sqlite3'}"
    with server(url, folder, command=("serve", "--workers", "1"), log_level="error") as running:
        carla = running.person(running.bootstrap_key())
        made = carla.call("POST", "/v1/principals", json={"name": "ada", "role": "analyst"}, expect=201)
        ada = running.person(made.json()["first_key"]["key"])
        small_dataset(carla, "flowers", "ada", columns=_COLUMNS)
        job = ada.call("POST", "/v1/jobs", json=_JOB, expect=202).json()["id"]
        ada.wait(job)
        keys = [carla.key, ada.key]
    engine = create_engine(url)
    fill(engine, {job: 100}, range(jobs))
    _enlarge(engine, job)
    engine.dispose()
    shutil.copy(folder / "cairn.sqlite3", folder / "before.sqlite3")
    people = {"analyst": "ada", "name": "flowers", "job_id": job, "slug": "not-found"}
    return keys, {**people, "search": "reform"}


def _enlarge(engine: Engine, job: str) -> None:
    """Give a job a result and a transcript as long as they may be."""
    most = Settings().max_released_values
    with Session(engine) as session, session.begin():
        result = session.get_one(Result, job)
        centres = [[place / 7] * len(_COLUMNS) for place in range(most // len(_COLUMNS))]
        result.body = {**result.body, "centres": centres, "sizes": [1.5] * len(centres)}
        for k, payload in answers.encoded_centres(np.array(centres)).items():
            session.merge(StoredAnswer(job_id=job, k=k, payload=payload))
        parts = range(1, Settings().transcript_bytes // MIB)
        session.add_all(TranscriptPart(job_id=job, ordinal=each, payload=bytes(MIB)) for each in parts)


def _about(job: str) -> list[Call]:
    """Return the plan and the job of a question about the clusters of a job."""
    asked = {"dataset": "flowers", "epsilon": "0.1", "columns": _COLUMNS[:1], "clusterings": [{"job": job}]}
    body = json.dumps({**asked, "kind": "profile", "options": {"bins": 10}}).encode()
    facts: dict[str, Any] = {"content_type": "application/json", "body": body, "what": "about a long result"}
    return [Call("post", f"POST {path}", path, **facts) for path in ("/v1/plans", "/v1/jobs")]


def _walk(folder: Path, keys: list[str], values: dict[str, Any]) -> list[Cost]:
    plenty: dict[str, Any] = {"caller_rate": 1e9, "caller_burst": 1e9, "keyless_rate": 1e9}
    settings = Settings(
        database_url=f"sqlite:///{folder / 'cairn.sqlite3'}",
        signing_key_file=folder / "signing-key.pem",
        **plenty,
    )
    app = create_app(settings)
    database = app.state.context.database

    def restore() -> None:
        database.dispose()
        for left in folder.glob("cairn.sqlite3-*"):
            left.unlink()
        shutil.copy(folder / "before.sqlite3", folder / "cairn.sqlite3")

    with Meter(app) as meter:
        found = list(walk(meter, settings, values, keys, restore, more=_about(values["job_id"])))
    app.state.context.helper.close()
    database.dispose()
    return found
