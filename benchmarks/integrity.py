"""How long a verification takes: `python -m benchmarks integrity`.

Builds a ledger of a million entries, with their jobs, and verifies its chain and its balances: whole, and
from a checkpoint on after one more job. Then it verifies some thousand jobs with their receipts and results,
and some chunks of rows, and states the rates. Bars: 60 s whole, 50 ms incremental.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Table, insert, select, update
from sqlalchemy.orm import Session

from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import RemotePerson, server
from benchmarks.measuring import RESULTS, print_table, write_csv
from benchmarks.pages import small_dataset
from service.datasets import integrity
from service.jobs.results import receipts, verification
from service.ledger import checkpoints
from service.ledger.entries import hash_of
from service.operations.database import Database
from service.operations.progress import Part
from service.operations.settings import MIB, Settings
from service.operations.signing import SigningKeys, open_keys
from service.operations.tables import (
    Account,
    DatasetChunk,
    Job,
    LedgerEntry,
    Result,
    StoredAnswer,
    TranscriptPart,
)

__all__ = ["main"]

_JOB = {"dataset": "busy", "k": 2, "algorithm": "sulq", "epsilon": "0.001", "delta": "0"}
#: Rows that are inserted at a time.
_BATCH = 5000
_CHUNKS = 128


def main(
    entries: Annotated[int, typer.Option(help="Entries of the ledger.")] = 1_000_000,
    jobs: Annotated[int, typer.Option(help="Jobs with receipts and results.")] = 5000,
    results: Annotated[Path, typer.Option(help="Folder for the table.")] = RESULTS,
) -> None:
    """Measure verifications on SQLite and on PostgreSQL."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows += _measure("sqlite", f"sqlite:///{folder / 'cairn.sqlite3'}", folder, entries, jobs)
    with tempfile.TemporaryDirectory() as name, closing(Server()) as postgres:
        rows += _measure("postgresql", postgres.url(postgres.create()), Path(name), entries, jobs)
    write_csv(results / "integrity.csv", rows)
    print_table(f"Verification with {entries:,} entries", rows)


def _measure(kind: str, url: str, folder: Path, entries: int, jobs: int) -> Iterator[dict[str, Any]]:
    settings = Settings(database_url=url, signing_key_file=folder / "signing-key.pem")
    keys = open_keys(settings)
    with server(url, folder, command=("serve", "--workers", "1"), log_level="error") as running:
        carla = running.person(running.bootstrap_key())
        small_dataset(carla, "busy", jobs_per_hour=1_000_000)
        _run(carla)
        database = Database(url)
        with database.write() as session:
            _fill(session, keys, entries, jobs)
        with database.read() as session:
            seconds, (found, state) = _timed(lambda: checkpoints.verify_ledger(session, 1, keys, whole=True))
            assert found.faults == [], found.faults[:3]
            yield _row(kind, "chain and balances, whole", found.entries, "entries", seconds)
        with database.write() as session:
            checkpoints.sign(session, 1, keys, state, at=datetime.now(UTC))
        _run(carla)
        with database.read() as session:
            seconds, (found, _) = _timed(lambda: checkpoints.verify_ledger(session, 1, keys))
            assert found.faults == []
            assert found.entries - found.since == 2
            yield _row(kind, "chain and balances, after one more job", 2, "entries", seconds)
    with database.write() as session:
        _add_chunks(session)
    some = verification.jobs(database, 1, "busy", keys, None)
    seconds, verified = _timed(lambda: _walked(some, jobs))
    yield _row(kind, "jobs, signatures and results", verified, "jobs", seconds)
    chunks = next(integrity.payloads(database, 1, "busy"))
    seconds, verified = _timed(lambda: _walked(chunks, _CHUNKS))
    yield _row(kind, "rows", round(verified / 1e9, 2), "GB", seconds)
    database.dispose()


def _run(person: RemotePerson) -> None:
    job = person.call("POST", "/v1/jobs", json=_JOB, expect=202).json()["id"]
    assert person.wait(job)["state"] == "succeeded"


def _walked(part: Part, most: int) -> int:
    """Make the first steps of a part of a verification; return the size of what was verified."""
    steps = list(islice(part.steps_after(0), most))
    faults = [fault for step in steps for fault in step.faults]
    assert faults == [], faults[:3]
    return sum(step.size for step in steps)


def _timed(act: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = act()
    return time.perf_counter() - begun, found


def _row(kind: str, what: str, count: float, unit: str, seconds: float) -> dict[str, Any]:
    rate = round(count / seconds, 2 if unit == "GB" else 0)
    return {
        "database": kind,
        "verified": what,
        "count": count,
        "unit": unit,
        "seconds": round(seconds, 3),
        "per_second": rate,
    }


def _fill(session: Session, keys: SigningKeys, entries: int, jobs: int) -> None:
    """Copy the one job of the dataset, with its entries, so often; the first ones with their results."""
    connection = session.connection()
    job = _values(session, Job)
    reserved, charged = (dict(row) for row in _rows(session, LedgerEntry) if row["job_id"] == job["id"])
    result = _values(session, Result)
    account = session.scalars(select(Account).where(Account.grant_id.is_(None))).one()
    sequence, head = account.entries, account.head
    copies = (entries - sequence) // 2
    entry = _Entry(reserved)
    beside = {model: _rows(session, model) for model in (TranscriptPart, StoredAnswer)}
    models: tuple[Any, ...] = (Job, LedgerEntry, Result, *beside)
    batch: dict[Table, list[dict[str, Any]]] = {_table(model): [] for model in models}
    for number in range(1, copies + 1):
        name = f"{number:08x}-0000-4000-8000-{number:012x}"
        batch[_table(Job)].append({**job, "id": name})
        for kind in (reserved, charged):
            sequence += 1
            place = {"job_id": name, "sequence": sequence, "previous": head}
            entry.__dict__ = {**kind, **place}
            head = hash_of(entry)
            batch[_table(LedgerEntry)].append({**kind, **place, "hash": head})
        if number < jobs:
            receipt = _receipt(result["receipt"], name, {"sequence": sequence, "hash": head}, keys)
            batch[_table(Result)].append({**result, "job_id": name, "receipt": receipt})
            for model, rows in beside.items():
                batch[_table(model)] += [{**row, "job_id": name} for row in rows]
        if number % _BATCH == 0 or number == copies:
            for table, rows in batch.items():
                if rows:
                    connection.execute(insert(table), rows)
                rows.clear()
    spent = copies * reserved["loss_units"]
    values = {"entries": sequence, "head": head, "loss_spent": Account.loss_spent + spent}
    connection.execute(update(Account).where(Account.grant_id.is_(None)).values(values))


def _add_chunks(session: Session) -> None:
    """Add chunks of random bytes; no job can read them."""
    chunk = _values(session, DatasetChunk)
    for ordinal in range(1, _CHUNKS):
        payload = os.urandom(4 * MIB)
        facts = {"ordinal": ordinal, "payload": payload, "digest": sha256(payload).hexdigest()}
        session.connection().execute(insert(_table(DatasetChunk)), {**chunk, **facts})


class _Entry:
    """The columns of an entry, as its hash reads them."""

    def __init__(self, columns: dict[str, Any]):
        self.__dict__ = columns


def _receipt(template: dict[str, Any], job: str, charge: dict[str, Any], keys: SigningKeys) -> dict[str, Any]:
    """Return the receipt of a copy, signed."""
    receipt: dict[str, Any] = json.loads(json.dumps(template)) | {"job": job, "charge": charge}
    receipt["digest"] = receipts.digest_of(receipt)
    return receipt | {"signature": keys.sign("receipt", receipt["digest"])}


def _table(model: Any) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table


def _rows(session: Session, model: Any) -> list[dict[str, Any]]:
    """Return the rows of a table in order, without numbers that the database gives."""
    table = _table(model)
    found = session.execute(select(table).order_by(*table.primary_key)).mappings()
    given = "number" if model is Job else "id"
    return [{name: value for name, value in row.items() if name != given} for row in found]


def _values(session: Session, model: Any) -> dict[str, Any]:
    (row,) = _rows(session, model)
    return row
