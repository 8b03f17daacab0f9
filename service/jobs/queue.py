"""The queue of jobs: enqueue, claim, beat, finish, give back, withdraw.

Locks are taken in one order, a job's row before its dataset's account; a transaction that holds an account
and wants jobs skips those that are locked, and the claim that holds them checks again what is allowed.

    queued --claim--> running --finish--> succeeded | failed
       |                 +--gives way (a rehearsal)--> running again, later
       |                 +--lease runs out--> running again (at most 3 attempts in all), else failed
       |                 +--end--> failed, at the curator's order
       +--cancel, withdraw, grant ends, cannot run--> cancelled | failed, with the reservation void

What is allowed is decided when a job is reserved and again when it is claimed. A grant that ends later stops
nothing; a person whom a provider no longer lets in submits nothing more, and the jobs of before go on.
"""

import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, bindparam, case, delete, func, or_, select, true, update
from sqlalchemy.orm import Session

from core.data import domain_from_json
from service import ledger
from service.datasets import access, working_bounds
from service.datasets.periods import selection
from service.jobs import bindings, release
from service.jobs.claims import Claim, JobLost, Outcome, StoredPlan
from service.jobs.results import answers, transcripts
from service.ledger.units import Cost
from service.operations import audit, faults, metrics
from service.operations.states import EndReason, JobState
from service.operations.tables import Dataset, Job, JournalEntry, Result, StoredAnswer, TranscriptPart

MOST_ATTEMPTS = 3
#: Work of jobs that were claimed longer ago does not count against their analyst.
_LATELY = timedelta(minutes=10)
_INSTANT = timedelta(microseconds=1)
# Built once: every measurement needs it.
_LOCK_HELD = (
    select(Job.number)
    .where(Job.id == bindparam("job"), Job.state == JobState.RUNNING, Job.lease == bindparam("lease"))
    .with_for_update(key_share=True)
)


#: Tells whether this version of the software can run a stored plan.
CanRun = Callable[[StoredPlan], bool]


def claim(
    session: Session,
    *,
    worker: str,
    now: datetime,
    lease: timedelta,
    can_run: CanRun,
    guests: bool = True,
) -> Claim | None:
    """Take the job whose turn it is, and charge it in the same transaction; None if no job waits.

    Next is the analyst with the least planned work among the jobs claimed lately, oldest job first;
    rehearsals come last, and not at all without `guests`. Planned work is public: how long jobs really took
    must not show in the order.

    A queued job is charged here, before any row is read. A job whose worker was lost is taken over under
    the charge it has, first of all by the process that replaces its own, and goes on from its journal. One
    that cannot run any more is ended instead.
    """
    recent = (
        select(Job.principal_id, func.sum(Job.operations).label("operations"))
        .where(Job.claimed_at > now - _LATELY)
        .group_by(Job.principal_id)
        .subquery()
    )
    job = session.scalars(
        select(Job)
        .where(_claimable(now), true() if guests else Job.rehearsal.is_(False))
        .outerjoin(recent, recent.c.principal_id == Job.principal_id)
        .order_by(
            case((Job.worker == worker, 0), else_=1),
            Job.rehearsal,
            func.coalesce(recent.c.operations, 0),
            Job.number,
        )
        .limit(1)
        .with_for_update(skip_locked=True, of=Job)
    ).one_or_none()
    if job is None:
        return None
    faults.reach("claim.locked")
    dataset = session.get_one(Dataset, job.dataset_id)
    digest = job.plan.get("inputs", {}).get("domain", {}).get("digest", "")
    periods = selection.read_by(job)
    named = working_bounds.domain_named(session, dataset, periods.bounds if periods else digest)
    stored = StoredPlan(job.plan, periods.domain(domain_from_json(named)).to_json() if periods else named)
    if job.state == JobState.RUNNING:
        if job.attempts >= MOST_ATTEMPTS:
            _empty_journal(session, job.id)
            job.end(JobState.FAILED, EndReason.LOST, now, _released_at(job, dataset, now))
            if not job.rehearsal:
                _record_failure(session, dataset.id, job.id, now)
            metrics.ended(session, dataset.id, job.state)
            return None
    elif not _charge(session, job, worker=worker, now=now, understood=can_run(stored)):
        return None
    elif not job.rehearsal:  # no other version can be sealed while the account is locked
        periods = selection.present(session, dataset, periods, digest)
        job.periods = periods.to_json() if periods else None
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
        job_id=job.id,
        lease=job.lease,
        dataset_id=job.dataset_id,
        principal_id=job.principal_id,
        rehearsal=job.rehearsal,
        request=job.request,
        cost=Cost(job.loss_units, job.delta_units),
        queued_at=job.queued_at,
        claimed_at=job.claimed_at,
        planned=job.planned,
        held=dataset.planned_release,
        stored=stored,
        charge=ledger.charge_of(session, job.id),
        periods=periods,
    )


def _claimable(now: datetime) -> ColumnElement[bool]:
    return or_(Job.state == JobState.QUEUED, (Job.state == JobState.RUNNING) & (Job.lease_expires_at < now))


def real_job_waits(session: Session, now: datetime) -> bool:
    """Return True if a job other than a rehearsal waits for a worker."""
    waiting = select(Job.number).where(_claimable(now), Job.rehearsal.is_(False)).limit(1)
    return session.scalars(waiting).one_or_none() is not None


def _charge(session: Session, job: Job, *, worker: str, now: datetime, understood: bool) -> bool:
    """Charge a queued job, or end it with its reservation void when it may not or cannot run."""
    accounts = None if job.rehearsal else _accounts(session, job)
    allowed = access.is_open(session, job.dataset_id, job.grant_id, job.kind, now)
    if allowed and understood:
        if accounts is not None:
            ledger.charge(session, accounts, job.id, bindings.AT_CHARGE, actor=worker, at=now)
        return True
    if accounts is not None:
        ledger.void(session, accounts, job.id, actor=worker, at=now)
    if allowed:
        job.end(JobState.FAILED, EndReason.CANNOT_RUN, now)
    else:
        job.end(JobState.CANCELLED, EndReason.WITHDRAWN, now)
    metrics.ended(session, job.dataset_id, job.state)
    return False


def require_held(session: Session, claim: Claim) -> None:
    """Lock a job until the transaction ends; JobLost when it is no longer this worker's."""
    held = session.connection().execute(_LOCK_HELD, {"job": claim.job_id, "lease": claim.lease})
    if held.one_or_none() is None:
        raise JobLost


def beat(session: Session, claim: Claim, *, now: datetime, lease: timedelta) -> bool:
    """Renew a lease; False when the job is no longer this worker's."""
    return _update(session, claim, {"lease_expires_at": now + lease})


def finish(
    session: Session,
    claim: Claim,
    *,
    now: datetime,
    result: Outcome | None,
    by_limit: bool = False,
) -> bool:
    """End a job, with its result or without; False when it is no longer this worker's: nothing is stored.

    A job that a limit on time or memory ended counts as an overrun, however early that was.
    """
    state = JobState.SUCCEEDED if result else JobState.FAILED
    values: dict[str, Any] = {
        "state": state,
        "reason": EndReason.NONE if result else EndReason.ERROR,
        "finished_at": now,
        "released_at": claim.released_at(now),
        "lease": None,
        "lease_expires_at": None,
    }
    if not _update(session, claim, values):
        return False
    faults.reach("finish.updated")
    _empty_journal(session, claim.job_id)
    if result:
        stored = {"body": result.body, "receipt": result.receipt, "created_at": now}
        stored_bytes = result.stored_bytes if claim.rehearsal else 0
        session.add(Result(job_id=claim.job_id, stored_bytes=stored_bytes, **stored))
        transcripts.store(session, claim.job_id, result.transcript)
        answers.store(session, claim.job_id, result.answers)
    elif not claim.rehearsal:
        _record_failure(session, claim.dataset_id, claim.job_id, now)
    faults.reach("finish.stored")
    metrics.ended(session, claim.dataset_id, state)
    late = claim.held and values["released_at"] > claim.claimed_at + claim.planned
    if (late or by_limit) and not claim.rehearsal:
        metrics.overran(session, claim.dataset_id, by_limit=by_limit)
    return True


def _record_failure(session: Session, dataset_id: int, job_id: str, now: datetime) -> None:
    """Record that a charged job has no result: it could also have been deleted."""
    about: dict[str, Any] = {"dataset_id": dataset_id, "job": job_id}
    audit.record(session, "fail-job", actor="cairn", at=now, changes_facts=False, **about)


def end(session: Session, job: Job, dataset: Dataset, *, actor: str, now: datetime) -> bool:
    """End a job for good, at its dataset's curator's order; False when its analyst has seen it end.

    A claimed job keeps its charge. It is shown as ended from now on, and a result that is stored and waits
    for its time is deleted: whether it appeared would reveal how long the job ran. Its worker waits for that
    time.
    """
    locked = _lock(session, job)
    if release.state_at(locked, now, held=True).finished_at is not None:
        return False
    before = locked.state
    if locked.state == JobState.QUEUED:
        _void(session, locked, actor=actor, now=now)
        locked.end(JobState.CANCELLED, EndReason.ENDED, now)
    else:
        for stored in (StoredAnswer, TranscriptPart, JournalEntry, Result):
            session.execute(delete(stored).where(stored.job_id == locked.id))
        locked.end(JobState.FAILED, EndReason.ENDED, now)
    metrics.ended(session, dataset.id, locked.state, before=before)
    audit.record(
        session,
        "end-job",
        actor=actor,
        at=now,
        dataset_id=dataset.id,
        changes_facts=False,
        job=locked.id,
    )
    return True


def _released_at(job: Job, dataset: Dataset, ended_at: datetime) -> datetime:
    assert job.claimed_at is not None, "a job that ends after its claim"
    return (
        release.release_time(job.claimed_at, job.planned, ended_at) if dataset.planned_release else ended_at
    )


def resume(session: Session, worker: str, *, now: datetime) -> datetime | None:
    """Return until when the newest job of a worker keeps it busy, whose process was lost; None if it is free.

    A job that its process did not end is left to be claimed again, by this worker before anything else.
    """
    newest = select(Job).where(Job.worker == worker).order_by(Job.claimed_at.desc()).limit(1)
    job = session.scalars(newest.with_for_update()).one_or_none()
    if job is None:
        return None
    if job.state == JobState.RUNNING:
        job.lease_expires_at = now - _INSTANT
        return None
    if job.rehearsal or job.released_at is None or job.claimed_at is None:
        return None
    return min(job.released_at, now + (job.released_at - job.claimed_at))  # whatever the clock did meanwhile


def give_back(session: Session, claim: Claim, *, now: datetime) -> bool:
    """Give a job back: its worker stops, or a rehearsal gives way. This does not count as an attempt."""
    return _update(
        session,
        claim,
        {"lease_expires_at": now - _INSTANT, "attempts": Job.attempts - 1, "worker": None},
    )


def _empty_journal(session: Session, job_id: str) -> None:
    """Delete what a job kept for a worker that takes it over: the job has ended."""
    session.execute(delete(JournalEntry).where(JournalEntry.job_id == job_id))


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
    metrics.ended(session, locked.dataset_id, locked.state)
    return True


def _lock(session: Session, job: Job) -> Job:
    locked = select(Job).where(Job.id == job.id).with_for_update()
    return session.scalars(locked.execution_options(populate_existing=True)).one()


def _void(session: Session, job: Job, *, actor: str, now: datetime) -> None:
    if not job.rehearsal:
        ledger.void(session, _accounts(session, job), job.id, actor=actor, at=now)


def _accounts(session: Session, job: Job) -> ledger.Accounts:
    """Lock the accounts that a job is paid from."""
    return ledger.lock_paying(session, job.dataset_id, job.grant_id, job.charged_periods)
