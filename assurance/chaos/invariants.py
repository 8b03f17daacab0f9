"""What must hold of a database at every moment, whoever crashed or raced: the faults found, in words."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.ledger import verification
from service.operations.database import Database
from service.operations.tables import (
    Account,
    Dataset,
    DatasetChunk,
    Job,
    JournalEntry,
    LedgerEntry,
    Period,
    Result,
)

__all__ = ["faults", "unfinished"]

_SETTLED = {
    "queued": ["reserve"],
    "running": ["reserve", "charge"],
    "succeeded": ["reserve", "charge"],
    "cancelled": ["reserve", "void"],
}


def faults(database: Database) -> list[str]:
    """Everything that is wrong; empty when nothing was lost, overspent, charged twice or half stored."""
    with database.read() as session:
        return [
            *_books(session),
            *_overspent(session),
            *_jobs(session),
            *_uploads(session),
            *_periods(session),
        ]


def unfinished(database: Database) -> list[str]:
    """The jobs that have not ended."""
    with database.read() as session:
        return list(session.scalars(select(Job.id).where(Job.state.in_(("queued", "running")))))


def _books(session: Session) -> list[str]:
    """The chain verifies, and balances equal its replay."""
    found = []
    for dataset_id in session.scalars(select(Dataset.id)):
        found += [
            f"dataset {dataset_id}: {fault}" for fault in verification.verify(session, dataset_id).faults
        ]
    return found


def _overspent(session: Session) -> list[str]:
    return [
        f"account {account.id} is overspent"
        for account in session.scalars(select(Account))
        if account.loss_reserved + account.loss_spent > account.loss_total
        or account.delta_reserved + account.delta_spent > account.delta_total
    ]


def _jobs(session: Session) -> list[str]:
    """Each job is charged once or not at all, as its state says, under its own grant if it has one.

    It has a result just when it succeeded.
    """
    moves: dict[str, list[tuple[str, int | None, int, int]]] = defaultdict(list)
    entry = LedgerEntry
    query = select(entry.job_id, entry.kind, entry.grant_id, entry.loss_units, entry.delta_units)
    for job_id, kind, grant, loss, delta in session.execute(query.order_by(entry.sequence)):
        if job_id is not None:
            moves[job_id].append((kind, grant, loss, delta))
    results = set(session.scalars(select(Result.job_id)))
    journals = set(session.scalars(select(JournalEntry.job_id)))
    found = []
    columns = (Job.id, Job.state, Job.reason, Job.rehearsal, Job.grant_id, Job.loss_units, Job.delta_units)
    for job_id, state, reason, rehearsal, grant, loss, delta in session.execute(select(*columns)):
        made = moves.pop(job_id, [])
        expected = [] if rehearsal else _SETTLED.get(state) or _of_failed(reason)
        if made != [(kind, grant, loss, delta) for kind in expected]:
            found.append(f"job {job_id} is {state} ({reason}) with the entries {made}")
        gone = rehearsal and job_id not in results  # deleted after a while
        if (job_id in results) != (state == "succeeded") and not gone:
            found.append(f"job {job_id} is {state}, and its result is {job_id in results}")
        if job_id in journals and state != "running":
            found.append(f"job {job_id} is {state} and has a journal")
    found += [f"job {job_id} is in the ledger alone: it was lost" for job_id in moves]
    return found


def _of_failed(reason: str) -> list[str]:
    return ["reserve", "void"] if reason == "cannot-run" else ["reserve", "charge"]


def _uploads(session: Session) -> list[str]:
    """What is sealed, or a draft with a report, has all of its chunks, whole; anything else has none."""
    chunks: dict[tuple[int, int], list[DatasetChunk]] = defaultdict(list)
    for chunk in session.scalars(select(DatasetChunk).order_by(DatasetChunk.ordinal)):
        chunks[chunk.dataset_id, chunk.period_id].append(chunk)
    periods = session.scalars(select(Period)).all()
    corrected = {period.dataset_id for period in periods if not period.label and period.state == "sealed"}
    places: list[tuple[int, int, Dataset | Period, bool]] = [
        (dataset.id, 0, dataset, dataset.id in corrected) for dataset in session.scalars(select(Dataset))
    ]
    places += [(period.dataset_id, period.id, period, False) for period in periods]
    found = []
    for dataset_id, period_id, rows, replaced in places:
        own, name = chunks.pop((dataset_id, period_id), []), f"period {period_id} of dataset {dataset_id}"
        if rows.state == "retired" or rows.upload is None or replaced:
            found += [f"{name} is {rows.state} and has chunks"] if own else []
            continue
        whole = (
            [chunk.ordinal - own[0].ordinal for chunk in own] == list(range(len(own)))
            and sum(chunk.rows for chunk in own) == rows.upload["rows"]
            and all(hashlib.sha256(chunk.payload).hexdigest() == chunk.digest for chunk in own)
        )
        found += [] if whole else [f"{name} is {rows.state} with half an upload"]
    return found + [f"chunks are left of period {period} of dataset {dataset}" for dataset, period in chunks]


def _periods(session: Session) -> list[str]:
    """One version of a period is sealed, and it has an account where its dataset's periods have accounts."""
    periods = session.scalars(select(Period)).all()
    with_accounts = {each.id for each in session.scalars(select(Dataset)) if each.has_accounts_of_periods}
    opened = {(each.dataset_id, each.period) for each in session.scalars(select(Account))}
    found = []
    for (dataset, label, state), number in Counter((p.dataset_id, p.label, p.state) for p in periods).items():
        if number > 1 and state != "retired":
            found.append(f"{number} versions of {label} in dataset {dataset} are {state}")
        if dataset in with_accounts and state != "draft" and (dataset, label) not in opened:
            found.append(f"{label} in dataset {dataset} is {state} and has no account")
    return found
