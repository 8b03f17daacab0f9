"""Retention: forget what jobs left that released nothing about rows, after times that the operator sets.

Plans of cancelled jobs and of rehearsals go, and results of rehearsals: after a time, or when their analyst
has many. The jobs keep their row, request and digest of the plan. The ledger is never touched, and of jobs
that were charged nothing is deleted.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import String, cast, delete, or_, select, text, update
from sqlalchemy.orm import Session

from service.operations import audit
from service.operations.database import Database
from service.operations.states import JobState
from service.operations.tables import Job, Result, StoredAnswer, TranscriptPart

#: Jobs in one transaction, so that nobody waits long for a lock.
_BATCH = 500
_ENDED = (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


def prune(database: Database, *, before: datetime, now: datetime) -> int:
    """Delete the plans of cancelled jobs and of rehearsals that ended before a moment; return how many."""
    old = (
        select(Job.number)
        .where(or_(Job.state == JobState.CANCELLED, Job.rehearsal & Job.state.in_(_ENDED)))
        .where(Job.finished_at < before, cast(Job.plan, String) != "{}")
        .limit(_BATCH)
    )
    pruned = 0
    while True:
        with database.write() as session:
            changed = session.execute(
                update(Job)
                .where(Job.number.in_(old.scalar_subquery()))
                .values(plan={})
                .returning(Job.number),
                execution_options={"synchronize_session": False},
            )
            count = len(changed.all())
            pruned += count
            if not count:
                if pruned:
                    audit.record(session, "prune", actor="operator", at=now, changes_facts=False, jobs=pruned)
                return pruned


def delete_old_rehearsals(session: Session, *, before: datetime) -> int:
    """Delete results of rehearsals that were shown before a moment; return how many: few at a time."""
    old = (
        select(Result.job_id)
        .join(Job, Job.id == Result.job_id)
        .where(Job.rehearsal, Job.released_at < before)
        .limit(_BATCH)
    )
    found = session.scalars(old).all()
    _delete_results(session, found)
    return len(found)


def make_room(session: Session, analyst: int, *, most_bytes: int, now: datetime) -> None:
    """Delete the oldest results of an analyst's rehearsals, down to a number of bytes.

    For the start of their next rehearsal. What is not shown yet is not counted: it would show when it ended.
    """
    shown = (
        select(Result.job_id, Result.stored_bytes)
        .join(Job, Job.id == Result.job_id)
        .where(Job.principal_id == analyst, text("jobs.rehearsal"), Job.released_at <= now)
        .order_by(Job.number.desc())
    )
    kept, surplus = 0, []
    for job_id, size in session.execute(shown):
        kept += size
        if kept > most_bytes:
            surplus.append(job_id)
    _delete_results(session, surplus)


def _delete_results(session: Session, jobs: Sequence[str]) -> None:
    for stored in (StoredAnswer, TranscriptPart, Result):
        session.execute(delete(stored).where(stored.job_id.in_(jobs)))
