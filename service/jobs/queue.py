"""The queue of jobs: enqueue, claim, beat, finish, give back, withdraw.

Locks are taken in one order, a job's row before its dataset's account; whoever holds an account and
wants jobs skips those that are locked, and the claim that holds them looks again at what is allowed.

    queued --claim--> running --finish--> succeeded | failed
       |                 +--lease runs out--> running again (at most 3 attempts in all), else failed
       |                 +--end--> failed, at the curator's order
       +--cancel, withdraw, cannot run--> cancelled | failed, with the reservation void
"""

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import delete, func, or_, select, update
from sqlalchemy.orm import Session

from service import ledger
from service.datasets import access
from service.jobs import release
from service.operations import audit, faults, metrics
from service.operations.states import EndReason, JobState
from service.operations.tables import Dataset, Job, Result

MOST_ATTEMPTS = 3
#: Work of jobs that were claimed longer ago does not count against their analyst.
_LATELY = timedelta(minutes=10)


@dataclass(frozen=True)
class Claim:
    """A worker's hold on a job; `lease` fences it off from whoever held the job before."""

    job_id: str
    lease: str
    dataset_id: int
    rehearsal: bool
    claimed_at: datetime
    release_ticks: bool
    plan: dict[str, Any]
    domain: dict[str, Any]
    request: dict[str, Any]


def claim(
    session: Session,
    *,
    worker: str,
    now: datetime,
    lease: timedelta,
    can_run: Callable[[dict[str, Any], dict[str, Any]], bool],
) -> Claim | None:
    """Take the job whose turn it is, and charge it in the same transaction; None when there is none.

    Next is the analyst with the least planned work among the jobs claimed lately, oldest job first;
    rehearsals come last. Planned work is public: how long jobs really took must not show in the order.

    A queued job is charged here, before any row is read. A job whose worker was lost is taken over under
    the charge it has. One that cannot run any more is ended instead.
    """
    recent = (
        select(Job.principal_id, func.sum(Job.operations).label("operations"))
        .where(Job.claimed_at > now - _LATELY)
        .group_by(Job.principal_id)
        .subquery()
    )
    job = session.scalars(
        select(Job)
        .where(
            or_(Job.state == JobState.QUEUED, (Job.state == JobState.RUNNING) & (Job.lease_expires_at < now))
        )
        .outerjoin(recent, recent.c.principal_id == Job.principal_id)
        .order_by(Job.rehearsal, func.coalesce(recent.c.operations, 0), Job.number)
        .limit(1)
        .with_for_update(skip_locked=True, of=Job)
    ).one_or_none()
    if job is None:
        return None
    faults.reach("claim.locked")
    dataset = session.get_one(Dataset, job.dataset_id)
    if job.state == JobState.RUNNING:
        if job.attempts >= MOST_ATTEMPTS:
            job.end(JobState.FAILED, EndReason.LOST, now)
            return None
    elif not _charge(session, job, dataset, worker=worker, now=now, can_run=can_run):
        return None
    job.state = JobState.RUNNING
    job.attempts += 1
    job.worker = worker
    job.lease = str(uuid.uuid4())
    job.lease_expires_at = now + lease
    if job.claimed_at is None:
        job.claimed_at = now
        metrics.claimed(session, now - job.queued_at)
    session.flush()
    faults.reach("claim.charged")
    return Claim(
        job.id,
        job.lease,
        job.dataset_id,
        job.rehearsal,
        job.claimed_at,
        dataset.release_ticks,
        job.plan,
        dataset.domain,
        job.request,
    )


def _charge(
    session: Session,
    job: Job,
    dataset: Dataset,
    *,
    worker: str,
    now: datetime,
    can_run: Callable[[dict[str, Any], dict[str, Any]], bool],
) -> bool:
    """Charge a queued job, or end it with its reservation void when it may not run."""
    understood = can_run(job.plan, dataset.domain)  # before the accounts are locked
    accounts = None if job.rehearsal else ledger.lock(session, job.dataset_id, job.grant_id)
    allowed = access.is_open(session, job.grant_id)
    if allowed and understood:
        if accounts is not None:
            ledger.charge(session, accounts, job.id, actor=worker, at=now)
        return True
    if accounts is not None:
        ledger.void(session, accounts, job.id, actor=worker, at=now)
    if allowed:
        job.end(JobState.FAILED, EndReason.CANNOT_RUN, now)
    else:
        job.end(JobState.CANCELLED, EndReason.WITHDRAWN, now)
    return False


def beat(
    session: Session, claim: Claim, *, now: datetime, lease: timedelta, progress: dict[str, Any] | None
) -> bool:
    """Renew a lease; False when the job is no longer this worker's."""
    values: dict[str, Any] = {"lease_expires_at": now + lease}
    if progress is not None:
        values["progress"] = progress
    return _update(session, claim, values)


def finish(
    session: Session,
    claim: Claim,
    *,
    now: datetime,
    result: tuple[dict[str, Any], dict[str, Any]] | None,
    progress: dict[str, Any] | None = None,
) -> bool:
    """End a job, with its result or without; False when it is no longer this worker's: nothing is stored."""
    state = JobState.SUCCEEDED if result else JobState.FAILED
    values: dict[str, Any] = {
        "state": state,
        "reason": EndReason.NONE if result else EndReason.ERROR,
        "finished_at": now,
        "lease": None,
        "lease_expires_at": None,
    }
    if progress is not None:
        values["progress"] = progress
    if not _update(session, claim, values):
        return False
    faults.reach("finish.updated")
    if result:
        body, receipt = result
        session.add(Result(job_id=claim.job_id, body=body, receipt=receipt, created_at=now))
        session.flush()
    faults.reach("finish.stored")
    return True


def end(session: Session, job: Job, dataset: Dataset, *, actor: str, now: datetime) -> bool:
    """End a job for good, at its dataset's curator's order; False when its analyst has seen it end.

    A claimed job keeps its charge. A result that is stored and waits for its time is deleted: whether it
    appeared would tell how long the job ran.
    """
    locked = _lock(session, job)
    over = release.state_at(locked, now, ticked=dataset.release_ticks).finished_at is not None
    if over:
        return False
    if locked.state == JobState.QUEUED:
        _void(session, locked, actor=actor, now=now)
        locked.end(JobState.CANCELLED, EndReason.ENDED, now)
    else:
        session.execute(delete(Result).where(Result.job_id == locked.id))
        locked.end(JobState.FAILED, EndReason.ENDED, now)
    audit.record(session, "end-job", actor=actor, at=now, dataset_id=dataset.id, job=locked.id)
    return True


def give_back(session: Session, claim: Claim, *, now: datetime) -> bool:
    """Let go of a job because the worker is told to stop; this does not count as an attempt."""
    return _update(
        session, claim, {"lease_expires_at": now - timedelta(seconds=1), "attempts": Job.attempts - 1}
    )


def _update(session: Session, claim: Claim, values: dict[str, Any]) -> bool:
    changed = session.execute(
        update(Job)
        .where(Job.id == claim.job_id, Job.state == JobState.RUNNING, Job.lease == claim.lease)
        .values(**values)
        .returning(Job.id)
    )
    return changed.one_or_none() is not None


def cancel(session: Session, job: Job, *, actor: str, now: datetime) -> bool:
    """Cancel a queued job and void its reservation; False when it was claimed or has ended."""
    locked = _lock(session, job)
    if locked.state != JobState.QUEUED:
        return False
    _void(session, locked, actor=actor, now=now)
    faults.reach("cancel.voided")
    locked.end(JobState.CANCELLED, EndReason.CANCELLED, now)
    return True


def _lock(session: Session, job: Job) -> Job:
    locked = select(Job).where(Job.id == job.id).with_for_update()
    return session.scalars(locked.execution_options(populate_existing=True)).one()


def _void(session: Session, job: Job, *, actor: str, now: datetime) -> None:
    if not job.rehearsal:
        accounts = ledger.lock(session, job.dataset_id, job.grant_id)
        ledger.void(session, accounts, job.id, actor=actor, at=now)
