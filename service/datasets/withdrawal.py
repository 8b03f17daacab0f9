"""Withdrawal of queued jobs whose dataset is retired, or whose grant is revoked or allows them no more.

Also what becomes of requests for access when a dataset is retired or handed over.
"""

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import select, update
from sqlalchemy.orm import Session

from service import ledger
from service.operations import metrics
from service.operations.states import EndReason, JobState, RequestState
from service.operations.tables import AccessRequest, Job


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
            accounts = ledger.lock_paying(session, dataset_id, job.grant_id, job.charged_periods)
            ledger.void(session, accounts, job.id, actor=actor, at=at)
        job.end(JobState.CANCELLED, EndReason.WITHDRAWN, at)
    metrics.ended(session, dataset_id, JobState.CANCELLED, times=len(jobs))
    return len(jobs)


def decline_requests(session: Session, dataset_id: int, *, owner_id: int, at: datetime) -> None:
    """Decline the pending requests on a dataset that is retired; the caller holds the account."""
    pending = (
        AccessRequest.dataset_id == dataset_id,
        AccessRequest.state.in_((RequestState.OPEN, RequestState.PROPOSED)),
    )
    session.execute(
        update(AccessRequest)
        .where(*pending)
        .values(
            state=RequestState.DECLINED, reason="The dataset is retired.", decided_by=owner_id, decided_at=at
        )
    )


def reopen_requests(session: Session, dataset_id: int, *, former_id: int) -> None:
    """Undo what the former owner of a dataset proposed to a second curator; the caller holds the account.

    Requests of others are open again for the new owner.
    """
    proposed = (AccessRequest.dataset_id == dataset_id, AccessRequest.state == RequestState.PROPOSED)
    session.execute(
        update(AccessRequest)
        .where(*proposed, AccessRequest.asked_by == former_id)
        .values(state=RequestState.WITHDRAWN)
    )
    session.execute(
        update(AccessRequest)
        .where(*proposed)
        .values(state=RequestState.OPEN, decided=None, decided_by=None, decided_at=None, reason="")
    )
