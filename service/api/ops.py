"""Routes for operators and readers: liveness, readiness, metrics, the API page, explanations of problems."""

from __future__ import annotations

import hmac
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse
from fastapi.security import HTTPAuthorizationCredentials
from prometheus_client import CONTENT_TYPE_LATEST
from sqlalchemy import text

import migrations
from service import auth
from service.api import pages
from service.api.context import Context
from service.api.deps import Services, bearer
from service.api.problems import answers
from service.errors import PROBLEMS, Forbidden, NotFound, Unauthorized, Unavailable
from service.metrics import measure

__all__ = ["router"]

router = APIRouter(tags=["operations"])
_OK: dict[str, Any] = {"content": {"text/plain": {"schema": {"type": "string"}, "example": "ok\n"}}}
_PAGE: dict[str, Any] = {
    "content": {"text/html": {"schema": {"type": "string"}, "example": "<!doctype html>"}}
}
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
def metrics(
    context: Services, credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]
) -> Response:
    """Prometheus metrics, for curators and for the scraper's token."""
    _require_operator(context, credentials)
    with context.database.read() as session:
        return Response(measure(session, context.clock.now()), media_type=CONTENT_TYPE_LATEST)


@router.get("/docs", response_class=HTMLResponse, responses={200: _PAGE})
def api_page(request: Request) -> str:
    """Every call of this interface, with examples."""
    return pages.api_page(request.app.openapi())


@router.get("/docs/style.css", include_in_schema=False)
def api_page_style() -> Response:
    """How the pages look."""
    return Response(pages.STYLE, media_type="text/css", headers={"cache-control": "max-age=3600"})


@router.get(
    "/problems/{slug}",
    response_class=HTMLResponse,
    responses={**answers("not-found", anonymous=True), 200: _PAGE},
)
def problem_page(
    slug: Annotated[str, Path(max_length=64, description="last part of a problem's type")],
) -> str:
    """What a problem means, and what to do."""
    if slug not in PROBLEMS:
        raise NotFound("there is no such problem")
    return pages.problem_page(PROBLEMS[slug])


@router.get("/", response_class=HTMLResponse, include_in_schema=False)
def front_page() -> str:
    """Where to go from here."""
    return pages.front_page()


def _require_operator(context: Context, credentials: HTTPAuthorizationCredentials | None) -> None:
    if credentials is None:
        raise Unauthorized("send a curator's key or the scrape token", headers={"WWW-Authenticate": "Bearer"})
    token = context.settings.scrape_token()
    if token and hmac.compare_digest(
        token.encode(), credentials.credentials.encode("utf-8", "surrogateescape")
    ):
        return
    with context.database.read() as session:
        caller = auth.authenticate(session, credentials.credentials, context.clock.now())
    if caller is None:
        raise Unauthorized("this key is unknown, expired or revoked", headers={"WWW-Authenticate": "Bearer"})
    if not caller.is_curator:
        raise Forbidden("metrics are for curators: they tell how long jobs take")
