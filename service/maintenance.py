"""What operators run on the whole database: export every ledger, and verify all of it after a restore."""

import csv
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from service.datasets import integrity
from service.jobs.results import verification
from service.ledger import checkpoints, heads
from service.operations import audit, audit_chain
from service.operations.clock import CLOCKS_DIFFER, rfc3339
from service.operations.csv_cells import escaped
from service.operations.database import Database
from service.operations.progress import Progress
from service.operations.signing import SigningKeys
from service.operations.tables import Account, AuditEvent, Dataset, LedgerEntry, Population

_COLUMNS = (
    "sequence",
    "at",
    "kind",
    "actor",
    "job",
    "loss_units",
    "delta_units",
    "previous",
    "hash",
    "person_loss_units",
    "person_delta_units",
)
#: Rows in memory at a time.
_ROWS = 1000


def export_ledgers(database: Database, directory: Path) -> int:
    """Write the ledger of each dataset to a CSV file of its name; return how many there are.

    A file is replaced once the new one is whole. A ledger only grows, so the newest file has everything.
    """
    directory.mkdir(parents=True, exist_ok=True)
    with database.read() as session:
        datasets = session.execute(select(Dataset.id, Dataset.name)).all()
        for dataset_id, name in datasets:
            new = directory / f".{name}.csv"
            with new.open("w", newline="") as file:
                table = csv.writer(file, lineterminator="\n")
                table.writerow(_COLUMNS)
                table.writerows(map(escaped, _entries(session, dataset_id)))
                file.flush()
                os.fsync(file.fileno())
            new.replace(directory / f"{name}.csv")
    return len(datasets)


def _entries(session: Session, dataset_id: int) -> Iterator[tuple[object, ...]]:
    columns = LedgerEntry.__table__.columns
    query = select(*columns).where(LedgerEntry.dataset_id == dataset_id).order_by(LedgerEntry.sequence)
    for row in session.connection().execute(query).yield_per(_ROWS):
        amounts = (row.loss_units, row.delta_units)
        of_person = (row.person_loss_units, row.person_delta_units)
        about = (row.sequence, rfc3339(row.at), row.kind, row.actor, row.job_id)
        yield *about, *amounts, row.previous, row.hash, *of_person


def audit_lines(database: Database, dataset: str | None, since: datetime | None) -> Iterator[str]:
    """Yield the events of the audit log in order, each as a line of JSON; the newest ones, of one dataset."""
    query = select(AuditEvent, Dataset.name).outerjoin(Dataset, Dataset.id == AuditEvent.dataset_id)
    if dataset is not None:
        query = query.where(Dataset.name == dataset)
    if since is not None:
        query = query.where(AuditEvent.at >= since)
    with database.read() as session:
        for event, name in session.execute(query.order_by(AuditEvent.id).execution_options(yield_per=_ROWS)):
            described = {
                "at": rfc3339(event.at),
                "actor": event.actor,
                "action": event.action,
                "dataset": name,
                "words": audit.in_words(event.action, event.details),
                "details": event.details,
                "sequence": event.sequence,
                "previous": event.previous,
                "hash": event.hash,
                "salt": event.salt,
            }
            yield json.dumps(described, ensure_ascii=False)


def record_heads(database: Database, keys: SigningKeys, path: Path, now: datetime) -> None:
    """Sign the ends of all chains, once they were verified; earlier ends are not needed any more."""
    with database.read() as session:
        heads.record(path, heads.present(session, now), keys)
    with suppress(PermissionError):  # of a file that may only be appended to
        heads.shorten(path)


def faults(
    database: Database,
    keys: SigningKeys,
    exported: Path | None = None,
    heads_file: Path | None = None,
    *,
    progress: Progress | None = None,
    now: datetime | None = None,
) -> Iterator[str]:
    """Verify every ledger, receipt and audit event; yield what is wrong, each in a sentence.

    `exported` is a folder of `export_ledgers`, whose newest entries must be in the database: those that a
    restored back-up lacks were spent, and would be available again. `heads_file` has signed ends of chains.
    `progress` may have been made by a run that was interrupted: jobs and rows that it verified are not read
    again. `now`: later moments are faults.
    """
    progress = progress or Progress()
    yield from progress.earlier_faults
    with database.read() as session:
        datasets = session.execute(select(Dataset.id, Dataset.name)).all()
    for dataset_id, name in datasets:
        with database.read() as session:  # not kept while jobs are verified: it would be taken for idle
            found, _ = checkpoints.verify_ledger(session, dataset_id, keys, whole=True)
            yield from (f"{name}: {fault}" for fault in found.faults)
            yield from (f"{name}: {fault}" for fault in integrity.faults(session, dataset_id, keys))
        jobs = verification.jobs(database, dataset_id, name, keys, now)
        for part in (jobs, *integrity.payloads(database, dataset_id, name)):
            yield from progress.verify(part)
    with database.read() as session:
        for population in session.scalars(select(Population).order_by(Population.name)):
            found_there = integrity.population_faults(session, population)
            yield from (f"population {population.name}: {fault}" for fault in found_there)
        gone = select(Account.dataset_id).where(Account.dataset_id.not_in(select(Dataset.id))).distinct()
        yield from (f"dataset {number} has a ledger and is missing" for number in session.scalars(gone))
        yield from audit_chain.verify(session, audit_chain.SERVICE, keys, audit_chain.ChainEnd())[1]
        if now is not None:
            yield from _future(session, now)
        if heads_file is not None:
            yield from heads.faults(session, heads_file, keys)
        for path in sorted(exported.glob("*.csv")) if exported else ():
            yield from _missing(session, path)


def _future(session: Session, now: datetime) -> Iterator[str]:
    """Yield a fault if an entry, or an audit event, was recorded at a moment that has not come yet."""
    for model, name in ((LedgerEntry, "entry of a ledger"), (AuditEvent, "audit event")):
        latest = session.scalar(select(func.max(model.at)))
        if latest is not None and latest > now + CLOCKS_DIFFER:
            yield f"an {name} lies in the future: {rfc3339(latest)}"


def _missing(session: Session, path: Path) -> Iterator[str]:
    """Yield a fault if the database lacks the newest entry of an exported ledger."""
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    query = select(LedgerEntry.sequence, LedgerEntry.hash).join(Dataset, Dataset.id == LedgerEntry.dataset_id)
    known = {row.sequence: row.hash for row in session.execute(query.where(Dataset.name == path.stem))}
    missing = [row["sequence"] for row in rows if known.get(int(row["sequence"])) != row["hash"]]
    if missing:
        yield (
            f"{path.stem}: entries {missing[0]} to {missing[-1]} of the exported ledger are not in the "
            "database; what they spent is available again"
        )
