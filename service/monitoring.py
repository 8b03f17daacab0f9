"""Routes for operators: liveness, readiness and metrics."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import structlog
from anyio import to_thread
from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

import migrations
from service.errors import Unavailable
from service.http.context import Context, Services
from service.http.problems import answers
from service.operations.exposition import measure
from service.operations.metrics import count, put_back_requests, take_requests
from service.people.authentication import Monitor

log = structlog.get_logger()

#: Seconds between two writes of the counts of requests.
_STORE_SECONDS = 10.0
router = APIRouter(tags=["operations"])
_OK: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}, "example": "ok\n"}}}
_METRICS: dict[str, Any] = {
    "content": {"text/plain": {"schema": {"type": "string"}, "example": 'cairn_jobs{state="queued"} 0\n'}}
}


@router.get("/healthz", response_class=PlainTextResponse, responses={200: _OK})
async def alive() -> str:
    """The process answers."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse, responses={**answers(anonymous=True), 200: _OK})
def ready(context: Services) -> str:
    """The database answers, its tables are the ones this version needs, and uploads can be written."""
    with context.database.read() as session:
        session.execute(text("SELECT 1"))
        if migrations.is_outdated(session.connection()):
            raise Unavailable("the database's tables are of an earlier version; run `cairn-server migrate`")
    folder = context.settings.spool_directory
    if folder is not None and not os.access(folder, os.W_OK):
        raise Unavailable(f"uploads cannot be written to {folder}; create it, or let the service write to it")
    return "ok\n"


@router.get("/metrics", response_class=PlainTextResponse, responses={**answers(), 200: _METRICS})
def metrics(context: Services, caller: Monitor) -> Response:
    """Prometheus metrics: of all datasets for operators and the scraper, of their own for curators."""
    owner_id = caller.id if caller and caller.is_curator else None
    store_requests(context)
    with context.database.read() as session:
        measured = measure(session, context.clock.now(), owner_id, context.settings.spool_directory)
    return Response(measured, media_type=CONTENT_TYPE_LATEST)


def store_requests(context: Context) -> None:
    """Add the requests that this process has served to those of the others, in the database."""
    taken = take_requests()
    try:
        with context.database.write() as session:
            count(session, taken)
    except SQLAlchemyError:
        put_back_requests(taken)  # until the database is back
        raise


@asynccontextmanager
async def storing_requests(context: Context) -> AsyncIterator[None]:
    """Store the requests that this process serves, every few seconds and at its end."""

    async def store() -> None:
        try:
            await to_thread.run_sync(store_requests, context)
        except SQLAlchemyError as error:
            log.warning("requests cannot be counted", error=type(error).__name__)

    async def keep_storing() -> None:
        while True:
            await asyncio.sleep(_STORE_SECONDS)
            await store()

    task = asyncio.create_task(keep_storing())
    try:
        yield
    finally:
        task.cancel()
        await store()
