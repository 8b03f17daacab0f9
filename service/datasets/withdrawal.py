"""Withdrawal of queued jobs whose dataset is retired, or whose grant is revoked or allows them no more."""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select
from sqlalchemy.orm import Session

from service import ledger
from service.operations import metrics
from service.operations.states import EndReason, JobState
from service.operations.tables import Job


def withdraw(
    session: Session,
    dataset_id: int,
    *,
    grant_id: int | None = None,
    owners: bool = False,
    kept: Collection[str] = (),
    actor: str,
    at: datetime,
) -> int:
    """Cancel the queued jobs of a dataset, of one grant, or the owner's own; the caller holds the account.

    `kept` are kinds of jobs that stay queued. Jobs that a claim has locked are skipped: the claim checks
    dataset and grant once it gets the account.
    """
    query = select(Job).where(Job.dataset_id == dataset_id, Job.state == JobState.QUEUED)
    if grant_id is not None:
        query = query.where(Job.grant_id == grant_id)
    if owners:
        query = query.where(Job.grant_id.is_(None))
    queued = session.scalars(query.order_by(Job.number).with_for_update(skip_locked=True))
    jobs = [job for job in queued if job.kind not in kept]
    for job in jobs:
        if not job.rehearsal:
            accounts = ledger.lock(session, dataset_id, job.grant_id, job.charged_periods)
            ledger.void(session, accounts, job.id, actor=actor, at=at)
        job.end(JobState.CANCELLED, EndReason.WITHDRAWN, at)
    metrics.ended(session, dataset_id, JobState.CANCELLED, times=len(jobs))
    return len(jobs)
