"""Retention: forget the plans of jobs that released nothing about rows, after a time that the operator sets.

Cancelled jobs and rehearsals keep their row, request and digest of the plan. The ledger is never touched, nor
is anything of jobs that were charged.
"""

from datetime import datetime

from sqlalchemy import String, cast, or_, select, update

from service.operations import audit
from service.operations.database import Database
from service.operations.states import JobState
from service.operations.tables import Job

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
