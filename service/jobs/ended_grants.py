"""Queued jobs whose grant has ended: withdrawn by the API processes, every few seconds.

Workers would find them only when they take them. When a worker is free may follow from rows; this does not.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime

import structlog
from anyio import to_thread
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from service import ledger
from service.datasets.withdrawal import withdraw
from service.http.context import Context
from service.operations.database import Database
from service.operations.states import JobState
from service.operations.tables import Grant, Job

log = structlog.get_logger()

#: Seconds between two looks.
_PAUSE_SECONDS = 10.0


def withdraw_jobs(database: Database, now: datetime) -> int:
    """Withdraw the queued jobs whose grant has ended, with their reservations void; return how many."""
    queued = (
        select(Grant.dataset_id, Grant.id)
        .join(Job, Job.grant_id == Grant.id)
        .where(Job.state == JobState.QUEUED, Grant.ends_at <= now)
        .distinct()
    )
    with database.read() as session:
        ended = session.execute(queued).all()
    withdrawn = 0
    for dataset_id, grant_id in ended:
        with database.write() as session:
            ledger.lock(session, dataset_id)
            grant = session.get_one(Grant, grant_id)
            if grant.has_ended(now):  # it may have been renewed meanwhile
                withdrawn += withdraw(session, dataset_id, grant_id=grant_id, actor="service", at=now)
    return withdrawn


@asynccontextmanager
async def withdrawing(context: Context) -> AsyncIterator[None]:
    """Withdraw such jobs while the process runs."""

    async def keep_withdrawing() -> None:
        while True:
            try:
                await to_thread.run_sync(withdraw_jobs, context.database, context.clock.now())
            except SQLAlchemyError as error:
                log.warning("jobs of ended grants cannot be withdrawn", error=type(error).__name__)
            await asyncio.sleep(_PAUSE_SECONDS)

    task = asyncio.create_task(keep_withdrawing())
    try:
        yield
    finally:
        task.cancel()
