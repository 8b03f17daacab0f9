"""Verify jobs against the entries that paid for them, and results against their signed receipts."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import Row, Text, cast, func, select
from sqlalchemy.orm import Session

from service.jobs import bindings, release
from service.jobs.results import receipts
from service.operations import canonical
from service.operations.clock import CLOCKS_DIFFER, rfc3339
from service.operations.database import Database
from service.operations.progress import Part, Step
from service.operations.signing import SigningKeys
from service.operations.states import EndReason, EntryKind, JobState
from service.operations.tables import (
    AuditEvent,
    Dataset,
    Job,
    LedgerEntry,
    Result,
    StoredAnswer,
    TranscriptPart,
)

#: Jobs that are read at a time.
_PAGE = 100

Entries = dict[EntryKind, LedgerEntry]


def jobs(database: Database, dataset_id: int, name: str, keys: SigningKeys, now: datetime | None) -> Part:
    """Return the part of a verification that compares the jobs of a dataset with entries and receipts.

    `now`: moments after it are faults; None: they are not looked at.
    """
    return Part(
        key=f"{dataset_id} jobs",
        dataset=name,
        things="jobs",
        size_after=partial(_number_after, database, dataset_id),
        steps_after=partial(_verified, database, dataset_id, keys, now),
    )


def _number_after(database: Database, dataset_id: int, after: int) -> int:
    count = select(func.count()).where(Job.dataset_id == dataset_id, Job.number > after)
    with database.read() as session:
        return session.scalar(count) or 0


def _verified(
    database: Database, dataset_id: int, keys: SigningKeys, now: datetime | None, after: int
) -> Iterator[Step]:
    with database.read() as session:
        failed = _recorded_as_failed(session, dataset_id)
    while True:
        with database.read() as session:
            found = session.scalars(_jobs(dataset_id, after)).all()
            for job, entries in _with_entries(session, found):
                faults = [*_job_faults(session, job, entries), *_result(session, job, entries, keys)]
                faults += _vanished(job, entries.get(EntryKind.CHARGE), failed)
                yield Step(job.number, 1, [*faults, *_future(job, now)])
        if len(found) < _PAGE:
            return
        after = found[-1].number


def _recorded_as_failed(session: Session, dataset_id: int) -> set[str]:
    """Return the jobs of which the audit log says that they ended after their charge, without a result."""
    events = select(AuditEvent.details).where(
        AuditEvent.dataset_id == dataset_id, AuditEvent.action.in_(("fail-job", "end-job"))
    )
    return {details["job"] for details in session.scalars(events)}


def _vanished(job: Job, charged: LedgerEntry | None, failed: set[str]) -> Iterator[str]:
    """Yield why a job that was charged cannot be without a result, although its state says so."""
    if charged is None:
        return
    if job.state in (JobState.QUEUED, JobState.CANCELLED):
        yield f"job {job.id} was charged and is {job.state}"
    elif job.state == JobState.RUNNING and job.lease is None:
        yield f"job {job.id} is running on no worker"
    elif (
        job.state == JobState.FAILED and bindings.failure_is_audited(charged.payload) and job.id not in failed
    ):
        yield f"job {job.id} failed, and the audit log does not say so"


def _future(job: Job, now: datetime | None) -> Iterator[str]:
    """Yield the moments of a job that have not come yet: a clock was, or is, wrong, or they were edited."""
    for name in ("queued_at", "claimed_at", "finished_at", "lease_expires_at"):
        moment = getattr(job, name)
        if now is not None and moment is not None and moment > now + CLOCKS_DIFFER:
            yield f"{name} of job {job.id} lies in the future: {rfc3339(moment)}"


def _jobs(dataset_id: int, after: int) -> Any:
    wanted = select(Job).where(Job.dataset_id == dataset_id, Job.number > after)
    return wanted.order_by(Job.number).limit(_PAGE)


def _with_entries(session: Session, jobs: Sequence[Job]) -> Iterator[tuple[Job, Entries]]:
    of_jobs: dict[str, Entries] = {job.id: {} for job in jobs}
    for entry in session.scalars(select(LedgerEntry).where(LedgerEntry.job_id.in_(of_jobs))):
        of_jobs[str(entry.job_id)][entry.kind] = entry
    return ((job, of_jobs[job.id]) for job in jobs)


def _job_faults(session: Session, job: Job, entries: Entries) -> Iterator[str]:
    """Yield what contradicts a job: its dataset, its entries, and its own columns."""
    dataset = session.get_one(Dataset, job.dataset_id)
    if job.owner_id != (job.principal_id if job.grant_id is None else dataset.owner_id):
        yield f"job {job.id} is listed for somebody who does not own the dataset"
    if (job.reason == EndReason.NONE) == (job.state in (JobState.FAILED, JobState.CANCELLED)):
        yield f"job {job.id} is {job.state}, and the reason of its end contradicts that"
    reserved = entries.get(EntryKind.RESERVE)
    if reserved is not None and reserved.payload is not None:  # those of format 1 are bound to nothing
        yield from _unbound(job, dataset, reserved, entries.get(EntryKind.CHARGE))
        if job.state == JobState.SUCCEEDED and job.released_at != _release_time(job, dataset):
            yield f"the end of job {job.id} is shown at another time than planned"


def _unbound(job: Job, dataset: Dataset, reserved: LedgerEntry, charged: LedgerEntry | None) -> Iterator[str]:
    """Yield differences between a job and what its reservation and its charge are bound to."""
    paid_for = json.loads(reserved.payload or "{}")
    present = bindings.paid_for(job, dataset)
    if job.plan or job.state != JobState.CANCELLED:  # plans of cancelled jobs are deleted after a time
        present["plan"] = canonical.digest(job.plan)
    changed = sorted(name for name in paid_for if paid_for[name] != present.get(name))
    if changed or job.plan_digest != paid_for["plan"] or job.queued_at != reserved.at:
        what = f" ({', '.join(changed)})" if changed else ""
        yield f"job {job.id} is not the one that entry {reserved.sequence} reserved for{what}"
    if charged is not None and not (
        bindings.same(reserved.payload, charged.payload) and charged.at == job.claimed_at
    ):
        yield f"job {job.id} is not the one that entry {charged.sequence} charged"


def _release_time(job: Job, dataset: Dataset) -> datetime | None:
    """Return when the end of a job that succeeded is shown."""
    if job.claimed_at is None or job.finished_at is None or not dataset.planned_release:
        return job.finished_at
    return release.release_time(job.claimed_at, job.planned, job.finished_at)


def _result(session: Session, job: Job, entries: Entries, keys: SigningKeys) -> Iterator[str]:
    """Yield what is wrong with the result of a job and its receipt."""
    query = select(Result.receipt, cast(Result.body, Text).label("body"), Result.created_at)
    found = session.execute(query.where(Result.job_id == job.id)).one_or_none()
    deleted = job.rehearsal and found is None  # results of rehearsals are kept for a day
    if (found is not None) != (job.state == JobState.SUCCEEDED) and not deleted:
        yield f"job {job.id} is {job.state} and has {'no' if found is None else 'a'} result"
    if found is None:
        return
    charged = entries.get(EntryKind.CHARGE)
    if not _is_signed(found.receipt, charged, keys):
        yield f"the receipt of job {job.id} is not signed by a key of this service"
    if found.created_at != job.finished_at:
        yield f"the result of job {job.id} was stored at another time than the job ended"
    named = _contradictions(session, job, charged, found)
    yield from (f"the receipt of job {job.id} names {each}" for each in named)


def _is_signed(receipt: dict[str, Any], charged: LedgerEntry | None, keys: SigningKeys) -> bool:
    """Return True if a key of the service signed a receipt; those of format 1 had no signature."""
    if "signature" not in receipt:
        return receipt["format"] == 1 and (charged is None or charged.payload is None)
    digest = receipts.digest_of(receipt)
    return receipt["digest"] == digest and keys.verifies("receipt", digest, receipt["signature"])


def _contradictions(
    session: Session, job: Job, charged: LedgerEntry | None, found: Row[Any]
) -> Iterator[str]:
    """Yield what a receipt names and the database does not have, or has otherwise."""
    receipt = found.receipt
    if (receipt["job"], receipt["rehearsal"]) != (job.id, job.rehearsal):
        yield "another job"
    if (receipt.get("transcript") or {}).get("sha256") != _transcript(session, job.id):
        yield "another transcript"
    if "released" not in receipt:  # formats 1 to 5
        return
    entry = None if charged is None else {"sequence": charged.sequence, "hash": charged.hash}
    if receipt["charge"] != entry:
        yield "another charge"
    answers = select(StoredAnswer.k, StoredAnswer.payload).where(StoredAnswer.job_id == job.id)
    stored = receipts.digests_of(found.body, {row.k: row.payload for row in session.execute(answers)})
    if receipt["released"]["result"] != stored["result"]:
        yield "another result"
    if receipt["released"]["answers"] != stored["answers"]:
        yield "other answers"


def _transcript(session: Session, job_id: str) -> str | None:
    """Return the SHA-256 of a stored transcript, as it is read: up to the first part that is missing."""
    parts = select(TranscriptPart.ordinal, TranscriptPart.payload).where(TranscriptPart.job_id == job_id)
    ordered = session.execute(parts.order_by(TranscriptPart.ordinal).execution_options(yield_per=1))
    digest, found = hashlib.sha256(), 0
    for ordinal, payload in ordered:
        if ordinal == found:
            digest.update(payload)
            found += 1
    return digest.hexdigest() if found else None
