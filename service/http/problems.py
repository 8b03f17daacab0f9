"""RFC 9457 problems: errors as responses, with a stable type and nothing from rows or code."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.exceptions import HTTPException

from core import errors as core_errors
from service import errors
from service.errors import PROBLEMS, ServiceError
from service.http.wire import PATTERNS_IN_WORDS

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
_CORE: dict[type[core_errors.InvalidRequest], type[ServiceError]] = {
    core_errors.EpsilonTooSmall: errors.EpsilonTooSmall,
    core_errors.WorkLimitExceeded: errors.WorkLimit,
    core_errors.UnknownAlgorithm: errors.UnknownAlgorithm,
}
_COMMON = (
    "unauthorized",
    "forbidden",
    "not-found",
    "invalid-request",
    "too-large",
    "rate-limited",
    "unavailable",
)
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "description": "a relative address under which the problem is explained"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def respond(problem: ServiceError) -> Response:
    """Return the response of a problem."""
    return JSONResponse(
        problem.body(), status_code=problem.answer_status, headers=problem.headers, media_type=MEDIA_TYPE
    )


def answers(*slugs: str, anonymous: bool = False) -> dict[int | str, dict[str, Any]]:
    """Document the problems that a route may respond with, for OpenAPI."""
    documented: dict[int | str, dict[str, Any]] = {}
    for slug in (*slugs, *(("unavailable",) if anonymous else _COMMON)):
        problem = PROBLEMS[slug]
        entry = documented.setdefault(
            problem.status,
            {"description": HTTPStatus(problem.status).phrase, "content": {MEDIA_TYPE: {"schema": _SCHEMA}}},
        )
        examples = entry["content"][MEDIA_TYPE].setdefault("examples", {})
        examples[slug] = {"value": problem((problem.__doc__ or "").split(". ")[0] + ".").body()}
    return documented


def install(app: FastAPI) -> None:
    """Register handlers that turn every error of the app into a problem."""

    @app.exception_handler(ServiceError)
    async def known(_request: Request, error: ServiceError) -> Response:
        return respond(error)

    @app.exception_handler(core_errors.InvalidRequest)
    async def refused_by_core(_request: Request, error: core_errors.InvalidRequest) -> Response:
        kind = _CORE.get(type(error), errors.InvalidRequest)
        where = [{"where": error.parameter or "body", "problem": str(error)}]
        return respond(kind(str(error), errors=where))

    @app.exception_handler(RequestValidationError)
    async def malformed(_request: Request, error: RequestValidationError) -> Response:
        places = [_place(fault) for fault in error.errors()[:20]]
        first = _in_words(places[0]) if places else "the request is malformed"
        return respond(errors.InvalidRequest(first, errors=places))

    @app.exception_handler(HTTPException)
    async def routed(_request: Request, error: HTTPException) -> Response:
        return respond(_from_status(error.status_code, error.headers))

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeout)
    async def database(_request: Request, error: Exception) -> Response:
        return failure(error)


def failure(error: Exception) -> Response:
    """Respond to an error that is not the caller's: the database is away or busy, or there is a bug."""
    if not isinstance(error, (DBAPIError, PoolTimeout)):
        return mistake(error)
    log.error("the database failed", error=type(error).__name__, detail=str(error)[:500])
    return respond(
        errors.Unavailable("the database is unavailable or busy; try again", headers={"Retry-After": "2"})
    )


def mistake(error: Exception) -> Response:
    """Respond to an unexpected error without details, which go to the log."""
    log.error("unexpected error", exc_info=error)
    return respond(
        errors.Unavailable("an unexpected error occurred; the details are in the service's log", status=500)
    )


def _place(fault: Mapping[str, Any]) -> dict[str, str]:
    # A tag of a union, which begins with a colon, is no part of the request.
    parts = [str(part) for part in fault["loc"] if part != "body"]
    where = ".".join(part for part in parts if not part.startswith(":")) or "body"
    words = PATTERNS_IN_WORDS.get(fault.get("ctx", {}).get("pattern", ""))
    return {"where": where[:200], "problem": f"must be {words}" if words else str(fault["msg"])[:500]}


def _in_words(place: Mapping[str, str]) -> str:
    name = place["where"].removeprefix("path.").removeprefix("query.").removeprefix("header.")
    return f"{name}: {place['problem']}"


def _from_status(status: int, headers: Mapping[str, str] | None) -> ServiceError:
    if status == HTTPStatus.NOT_FOUND:
        return errors.NotFound("there is nothing at this address; see /docs")
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        return errors.InvalidRequest(
            "this address does not support that method; see /docs", headers=headers, status=405
        )
    if status == HTTPStatus.BAD_REQUEST:
        return errors.InvalidRequest("the body is not valid JSON")
    return errors.InvalidRequest("the request cannot be answered", status=status)
