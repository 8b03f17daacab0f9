"""Errors become RFC 9457 problems: one shape, a stable type, nothing that came from rows or from code."""

from __future__ import annotations

import json
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

__all__ = ["answers", "install", "mistake", "respond"]

log = structlog.get_logger()

MEDIA_TYPE = "application/problem+json"
_CORE: dict[type[core_errors.InvalidRequest], type[ServiceError]] = {
    core_errors.EpsilonTooSmall: errors.EpsilonTooSmall,
    core_errors.WorkLimitExceeded: errors.WorkLimit,
    core_errors.UnknownAlgorithm: errors.UnknownAlgorithm,
}
_COMMON = ("unauthorized", "forbidden", "not-found", "invalid-request", "too-large", "unavailable")
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
    """A problem on the wire."""
    return JSONResponse(
        problem.body(), status_code=problem.answer_status, headers=problem.headers, media_type=MEDIA_TYPE
    )


def answers(*slugs: str, anonymous: bool = False) -> dict[int | str, dict[str, Any]]:
    """The problems a route may answer with, for OpenAPI."""
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
    """Have every error of the app answered as a problem."""

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
        log.error("the database failed", error=type(error).__name__, detail=str(error)[:500])
        return respond(
            errors.Unavailable("the database is away or busy; try again", headers={"Retry-After": "2"})
        )


def mistake(error: Exception) -> Response:
    """What is told about an error that nobody foresaw: nothing; the log has it."""
    log.error("unexpected error", exc_info=error)
    return respond(errors.Unavailable("the service made a mistake, which is logged", status=500))


def _place(fault: Mapping[str, Any]) -> dict[str, str]:
    where = ".".join(str(part) for part in fault["loc"] if part != "body") or "body"
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
            "this address does not take that method; see /docs", headers=headers, status=405
        )
    if status == HTTPStatus.BAD_REQUEST:
        return errors.InvalidRequest("the body is not valid JSON: " + _JSON_RULES)
    return errors.InvalidRequest("the request cannot be answered", status=status)


_JSON_RULES = "UTF-8, no NaN or Infinity, no key twice, at most 32 levels deep"
_MOST_LEVELS = 32


def strict_json(text: bytes) -> Any:
    """JSON without NaN, infinities, double keys, lone surrogates, zero characters or great depth."""
    try:
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_no_double_keys)
        _check(value, 0)
    except (ValueError, RecursionError) as error:
        raise errors.InvalidRequest("the body is not valid JSON: " + _JSON_RULES) from error
    return value


def _refuse(name: str) -> None:
    raise ValueError(name)


def _no_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _check(value: Any, level: int) -> None:
    if level > _MOST_LEVELS:
        raise ValueError("too deep")
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("zero character")
        value.encode("utf-8")
    elif isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise ValueError("infinite")
    elif isinstance(value, dict):
        for name, each in value.items():
            _check(name, level + 1)
            _check(each, level + 1)
    elif isinstance(value, list):
        for each in value:
            _check(each, level + 1)
