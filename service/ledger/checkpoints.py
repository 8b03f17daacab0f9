"""Verify a ledger against jobs and results, and the dataset's audit events, and sign the next checkpoint.

A checkpoint is what a verification without faults ended with, signed by a key that is not in the database:
later ones trust it and read newer entries alone. One that is changed, or signed by anybody else, is a fault.
"""

from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, String, and_, case, func, or_, select, type_coerce
from sqlalchemy.orm import Session

from service.ledger.accounts import lock
from service.ledger.verification import Replay, Verification, verify
from service.operations import audit_chain, canonical
from service.operations.audit_chain import ChainEnd
from service.operations.signing import SigningKeys
from service.operations.states import EntryKind, JobState
from service.operations.tables import Job, LedgerCheckpoint, LedgerEntry, Result

_PURPOSE = "checkpoint"
#: Faults of one kind that are listed.
_MOST_FAULTS = 20


def verify_ledger(
    session: Session, dataset_id: int, keys: SigningKeys, *, whole: bool = False
) -> tuple[Verification, dict[str, Any]]:
    """Verify a dataset's ledger and audit events, and compare the ledger with jobs and results.

    From the last checkpoint on, unless `whole` or no checkpoint is valid. Returns the next one's state too.
    """
    stored = session.get(LedgerCheckpoint, dataset_id)
    distrusted = []
    if stored is not None and not keys.verifies(_PURPOSE, _text(dataset_id, stored.state), stored.signature):
        distrusted = ["the checkpoint is not signed by this service; every entry was read instead"]
        stored = None
    if stored is not None and not _has(session, dataset_id, stored.state):
        distrusted = ["entries that a checkpoint covers are missing or altered"]
        stored = None
    state = None if whole or stored is None else stored.state
    replay = Replay() if state is None else Replay.from_json(state)
    first_job = 0 if state is None else state["jobs"]
    jobs = _settled_jobs(session, dataset_id)
    found = verify(session, dataset_id, replay)
    audited, audit_faults = audit_chain.verify(session, dataset_id, keys, _audited(state))
    found.faults += [*distrusted, *_job_faults(session, dataset_id, first_job, found.since), *audit_faults]
    return found, {**replay.to_json(), "jobs": jobs, "audit": asdict(audited)}


def _audited(state: dict[str, Any] | None) -> ChainEnd:
    """Return how far a checkpoint verified the audit events; those of earlier versions did not."""
    return ChainEnd(**(state or {}).get("audit", {}))


def sign(
    session: Session, dataset_id: int, keys: SigningKeys, state: dict[str, Any], *, at: datetime
) -> None:
    """Store a verification's end as the dataset's checkpoint."""
    lock(session, dataset_id)
    signature = keys.sign(_PURPOSE, _text(dataset_id, state))
    session.merge(LedgerCheckpoint(dataset_id=dataset_id, state=state, signature=signature, at=at))


def _text(dataset_id: int, state: dict[str, Any]) -> str:
    return canonical.text([dataset_id, state])


def _has(session: Session, dataset_id: int, state: dict[str, Any]) -> bool:
    """Return True if the entry with which a checkpoint ends is there."""
    query = select(LedgerEntry.hash).where(
        LedgerEntry.dataset_id == dataset_id, LedgerEntry.sequence == state["entries"]
    )
    return bool(session.scalar(query) == state["head"])


def _settled_jobs(session: Session, dataset_id: int) -> int:
    """Return the number of a job up to which all jobs of the dataset have ended."""
    # Those of all datasets, which are few: the index of states serves it, not that of the dataset's jobs.
    unfinished = select(Job.dataset_id, Job.number).where(Job.state.in_((JobState.QUEUED, JobState.RUNNING)))
    numbers = [row.number for row in session.execute(unfinished) if row.dataset_id == dataset_id]
    if numbers:
        return int(min(numbers)) - 1
    newest = select(Job.number).where(Job.dataset_id == dataset_id).order_by(Job.number.desc()).limit(1)
    return int(session.scalar(newest) or 0)


def _job_faults(session: Session, dataset_id: int, after_job: int, after_entry: int) -> list[str]:
    """Compare jobs after a number with their entries, and entries after another with their jobs.

    A job that was claimed, or has a result, is charged what was planned; one that waits is reserved; any
    other is void. Rehearsals have no entries. What a job costs is paid from the grant that it was made under.
    """
    settled = and_(LedgerEntry.job_id == Job.id, LedgerEntry.kind.in_((EntryKind.CHARGE, EntryKind.VOID)))
    wanted = case(
        (Job.rehearsal, ""),
        (or_(Job.claimed_at.is_not(None), Result.job_id.is_not(None)), EntryKind.CHARGE.value),
        (Job.state == JobState.QUEUED, ""),
        else_=EntryKind.VOID.value,
    )
    had = func.coalesce(type_coerce(LedgerEntry.kind, String), "")
    amounts: ColumnElement[bool] = or_(
        LedgerEntry.loss_units != Job.loss_units, LedgerEntry.delta_units != Job.delta_units
    )
    other_grant = LedgerEntry.grant_id.is_distinct_from(Job.grant_id)
    jobs = (
        select(Job.id, wanted, had)
        .outerjoin(LedgerEntry, settled)
        .outerjoin(Result, Result.job_id == Job.id)
        .where(Job.dataset_id == dataset_id, Job.number > after_job)
        .where(or_(wanted != had, amounts, and_(LedgerEntry.id.is_not(None), other_grant)))
        .order_by(Job.number)
        .limit(_MOST_FAULTS)
    )
    strays = (
        select(LedgerEntry.sequence)
        .outerjoin(Job, and_(Job.id == LedgerEntry.job_id, Job.dataset_id == dataset_id))
        .where(LedgerEntry.dataset_id == dataset_id, LedgerEntry.sequence > after_entry)
        .where(LedgerEntry.job_id.is_not(None), Job.id.is_(None))
        .order_by(LedgerEntry.sequence)
        .limit(_MOST_FAULTS)
    )
    return [
        *(_in_words(job, want, kind) for job, want, kind in session.execute(jobs)),
        *(f"entry {number} is of a job that does not exist" for number in session.scalars(strays)),
    ]


def _in_words(job: str, wanted: str, kind: str) -> str:
    if wanted == kind:
        return f"job {job} was planned at another amount, or under another grant, than its {kind}"
    return f"job {job} should have {f'a {wanted}' if wanted else 'no settlement'} and has {kind or 'none'}"
