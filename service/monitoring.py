"""Routes for operators: liveness, readiness and metrics."""

from typing import Any

from fastapi import APIRouter, Response
from fastapi.responses import PlainTextResponse
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text

import migrations
from service.errors import Unavailable
from service.http.context import Services
from service.http.problems import answers
from service.operations.metrics import measure
from service.people.authentication import Operator

router = APIRouter(tags=["operations"])
_OK: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}, "example": "ok\n"}}}
_METRICS: dict[str, Any] = {
    "content": {"text/plain": {"schema": {"type": "string"}, "example": 'cairn_jobs{state="queued"} 0\n'}}
}


@router.get("/healthz", response_class=PlainTextResponse, responses={200: _OK})
def alive() -> str:
    """The process answers."""
    return "ok\n"


@router.get("/readyz", response_class=PlainTextResponse, responses={**answers(anonymous=True), 200: _OK})
def ready(context: Services) -> str:
    """The database answers and its tables are the ones this version needs."""
    with context.database.read() as session:
        session.execute(text("SELECT 1"))
        if not migrations.is_current(session.connection()):
            raise Unavailable("the database's tables are of another version; run `cairn-server migrate`")
    return "ok\n"


@router.get("/metrics", response_class=PlainTextResponse, responses={**answers(), 200: _METRICS})
def metrics(context: Services, curator: Operator) -> Response:
    """Prometheus metrics: of all datasets for the scraper's token, of a curator's own for the curator."""
    owner_id = curator.id if curator else None
    with context.database.read() as session:
        return Response(measure(session, context.clock.now(), owner_id), media_type=CONTENT_TYPE_LATEST)
