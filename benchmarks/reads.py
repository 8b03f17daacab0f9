"""What the record of who read what costs: `python -m benchmarks reads`.

Results are read from an app in this process on a durable PostgreSQL, in turns with and without the record, by
several readers at once. Requests pass no HTTP server, whose cost would make the difference look smaller.
Processor time of app and database counts, which is steadier than the clock. Then every reading must have its
event, and the chain of the audit log must hold.
"""

from __future__ import annotations

import asyncio
import itertools
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import psutil
import typer
from anyio import to_thread
from fastapi import FastAPI
from sqlalchemy import func, select

from benchmarks.harness.costs import Call, answer
from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import server
from benchmarks.measuring import RESULTS, print_table, write_csv
from benchmarks.pages import small_dataset
from service.app import create_app
from service.operations import audit_chain
from service.operations.audit_chain import ChainEnd
from service.operations.logs import configure
from service.operations.settings import Settings
from service.operations.tables import AuditEvent
from service.people.access_events import AccessEvents

__all__ = ["main"]

_JOB = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0"}


@dataclass
class Side:
    """Readings with the record, or without: how many, and what they took in all."""

    readings: int = 0
    seconds: float = 0.0
    processor_seconds: float = 0.0

    def row(self, what: str, other: Side) -> dict[str, object]:
        each, of_other = self.processor_seconds / self.readings, other.processor_seconds / other.readings
        return {
            "what": what,
            "readings": self.readings,
            "per_second": round(self.readings / self.seconds),
            "processor_ms": round(each * 1000, 3),
            "throughput_ratio": round(of_other / each, 3),
        }


def main(
    readings: Annotated[int, typer.Option(help="Readings with the record; as many without.")] = 10_000,
    readers: Annotated[int, typer.Option(help="Readings at a time.")] = 8,
    turns: Annotated[int, typer.Option(help="Turns of each side.")] = 10,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure readings of a result with and without their record; prints a table and keeps it as CSV."""
    configure("text", "critical")
    postgres = Server(durable=True)
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-reads-") as name:
            url, folder = postgres.url(postgres.create()), Path(name)
            key, job = _prepare(url, folder)
            plenty: dict[str, Any] = {
                "caller_rate": 1e9,
                "caller_burst": 1e9,
                "caller_requests_at_once": 1000,
            }
            app = create_app(
                Settings(database_url=url, signing_key_file=folder / "signing-key.pem", **plenty)
            )
            reading = _Reading(app, Call("get", "", f"/v1/jobs/{job}/result"), key, postgres.pid)
            sides = asyncio.run(reading.in_turns(readings // turns, readers, turns))
            _check(app, sides[0].readings)
            app.state.context.helper.close()
            app.state.context.database.dispose()
    finally:
        postgres.close()
    recorded, unrecorded = sides
    rows = [recorded.row("recorded", unrecorded), unrecorded.row("not recorded", unrecorded)]
    write_csv(results / "reads.csv", rows)
    print_table(f"readings of a result, {readers} at a time, PostgreSQL", rows)


def _prepare(url: str, folder: Path) -> tuple[str, str]:
    """A finished job; return the key of its analyst, and its id."""
    with server(url, folder, command=("serve", "--workers", "1"), log_level="error") as running:
        carla = running.person(running.bootstrap_key())
        made = carla.call("POST", "/v1/principals", json={"name": "ada", "role": "analyst"}, expect=201)
        ada = running.person(made.json()["first_key"]["key"])
        small_dataset(carla, "flowers", "ada")
        job: str = ada.call("POST", "/v1/jobs", json=_JOB, expect=202).json()["id"]
        ada.wait(job)
        return ada.key, job


class _Reading:
    """One call, made over and over, with the processor time that app and database take for it."""

    def __init__(self, app: FastAPI, call: Call, key: str, database_pid: int):
        self._app, self._call, self._key = app, call, key
        self._database = psutil.Process(database_pid)

    async def in_turns(self, count: int, readers: int, turns: int) -> tuple[Side, Side]:
        """Read so often in each turn; return the side with the record, and the one without."""
        recorded, unrecorded = Side(), Side()
        async with self._app.router.lifespan_context(self._app):
            with patch.object(AccessEvents, "note", _nothing):
                await self._read(count, readers)  # warm
            for _ in range(turns):
                with self._measured(recorded, count):
                    await self._read(count, readers)
                    await to_thread.run_sync(self._app.state.context.audit_batches.write)
                with patch.object(AccessEvents, "note", _nothing), self._measured(unrecorded, count):
                    await self._read(count, readers)
        return recorded, unrecorded

    async def _read(self, count: int, readers: int) -> None:
        numbers = itertools.count()

        async def keep_reading() -> None:
            while next(numbers) < count:
                status, _ = await answer(self._app, self._call, self._key)
                assert status == 200, status

        await asyncio.gather(*(keep_reading() for _ in range(readers)))

    @contextmanager
    def _measured(self, side: Side, count: int) -> Iterator[None]:
        began, used = time.perf_counter(), self._processor_seconds()
        yield
        side.readings += count
        side.seconds += time.perf_counter() - began
        side.processor_seconds += self._processor_seconds() - used

    def _processor_seconds(self) -> float:
        """Processor time of this process and of the database's, which keep their connections."""
        each = (process.cpu_times() for process in (self._database, *self._database.children(recursive=True)))
        return time.process_time() + sum(times.user + times.system for times in each)


def _nothing(*_: object) -> None:
    """Record nothing."""


def _check(app: FastAPI, readings: int) -> None:
    """Every reading has its event, and the chain holds."""
    context = app.state.context
    with context.database.read() as session:
        events = (AuditEvent.action == "read-result", AuditEvent.actor == "ada")
        found, dataset = session.execute(
            select(func.count(), func.max(AuditEvent.dataset_id)).where(*events)
        ).one()
        _, faults = audit_chain.verify(session, dataset, context.signing_keys, ChainEnd())
    assert (found, faults) == (readings, []), (found, readings, faults)
    typer.echo(f"{found} readings have {found} events, and the chain of the audit log holds.")
