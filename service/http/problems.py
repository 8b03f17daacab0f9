"""RFC 9457 problems: errors as responses, with a stable type and nothing from rows or code."""

import errno
from collections.abc import Mapping, Sequence
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

#: A disk, or what one may write to it, is full.
_FULL = (errno.ENOSPC, errno.EDQUOT)

MEDIA_TYPE = "application/problem+json"
_CORE: dict[type[core_errors.InvalidRequest], type[ServiceError]] = {
    core_errors.EpsilonTooSmall: errors.EpsilonTooSmall,
    core_errors.WorkLimitExceeded: errors.WorkLimit,
    core_errors.UnknownAlgorithm: errors.UnknownAlgorithm,
}
_MOMENT = "must be a moment with its offset from UTC, such as 2026-01-31T08:00:00Z"
#: Faults of single fields by pydantic's type, in words for whoever wrote the request.
_FAULTS_IN_WORDS = {
    "missing": "must be given",
    "extra_forbidden": "must be left out: there is no such field",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "greater_than": "must be greater than {gt}",
    "less_than": "must be less than {lt}",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "float_type": "must be a number",
    "string_type": "must be text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object, sent with `Content-Type: application/json`",
    "literal_error": "must be {expected}",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "too_short": "must have at least {min_length} entries",
    "too_long": "must have at most {max_length} entries",
    "datetime_parsing": _MOMENT,
    "datetime_from_date_parsing": _MOMENT,
    "timezone_aware": _MOMENT,
    "enum": "must be {expected}",
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
_SCHEMA = {"$ref": "#/components/schemas/Problem"}
#: The component that every problem refers to.
PROBLEM: dict[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "An error (RFC 9457); some problems have more fields.",
    "required": ["type", "title", "status", "detail", "next"],
    "properties": {
        "type": {"type": "string", "description": "a relative address under which the problem is explained"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "what is wrong"},
        "next": {"type": "string", "description": "what to do about it"},
        "errors": {
            "type": "array",
            "description": "the places of a request that are wrong",
            "items": {"$ref": "#/components/schemas/Fault"},
        },
    },
    "additionalProperties": True,
}

FAULT: dict[str, Any] = {
    "type": "object",
    "title": "Fault",
    "required": ["where", "problem"],
    "properties": {"where": {"type": "string"}, "problem": {"type": "string"}},
    "additionalProperties": True,
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
        places = _places(error)
        first = _in_words(places[0]) if places else "the request is malformed"
        return respond(errors.InvalidRequest(first, errors=places))

    @app.exception_handler(HTTPException)
    async def routed(_request: Request, error: HTTPException) -> Response:
        return respond(_from_status(error.status_code, error.headers))

    @app.exception_handler(OSError)
    async def disk(_request: Request, error: OSError) -> Response:
        return full_disk(error) if error.errno in _FULL else mistake(error)

    @app.exception_handler(DBAPIError)
    @app.exception_handler(PoolTimeout)
    async def database(_request: Request, error: Exception) -> Response:
        return failure(error)


def failure(error: Exception) -> Response:
    """Respond to an error that is not the caller's: the database is away or busy, or there is a bug."""
    if not isinstance(error, (DBAPIError, PoolTimeout)):
        return mistake(error)
    log.error("the database failed", error=type(error).__name__, detail=str(error)[:500])
    return respond(errors.Unavailable("the database is unavailable or busy", headers={"Retry-After": "2"}))


def full_disk(error: OSError) -> Response:
    """Respond to a file that there is no room for now: uploads are kept on disk while they are read."""
    log.error("the disk for uploads is full", detail=str(error)[:500])
    return respond(
        errors.Unavailable(
            "the service has no room on its disk for this file now; try again later, and tell the operator",
            headers={"Retry-After": "60"},
        )
    )


def mistake(error: Exception) -> Response:
    """Respond to an unexpected error without details, which go to the log."""
    log.error("unexpected error", exc_info=error)
    return respond(
        errors.Unavailable("an unexpected error occurred; the details are in the service's log", status=500)
    )


def _places(error: RequestValidationError) -> list[dict[str, str]]:
    """Each wrong place of a request, once, with what is wrong there."""
    problems: dict[str, list[str]] = {}
    for fault in error.errors()[:20]:
        problems.setdefault(_where(fault, error.body)[:200], []).append(_problem(fault)[:500])
    # A value that fits no branch of a union has a fault for each.
    return [{"where": where, "problem": _either(words)} for where, words in problems.items()]


def _where(fault: Mapping[str, Any], body: Any) -> str:
    """The path to a fault in a request: parts that the body lacks are names of a union's branches."""
    source, *parts = fault["loc"]
    if source != "body":
        return ".".join(map(str, fault["loc"]))
    path = []
    for place, part in enumerate(parts, 1):
        inside = part in body if isinstance(body, dict) else isinstance(body, list) and isinstance(part, int)
        if inside:
            body = body[part]
        if inside or (fault["type"] == "missing" and place == len(parts)):
            path.append(str(part))
    return ".".join(path) or "body"


def _problem(fault: Mapping[str, Any]) -> str:
    context = fault.get("ctx", {})
    if (pattern := context.get("pattern")) in PATTERNS_IN_WORDS:
        return f"must be {PATTERNS_IN_WORDS[pattern]}"
    words = _FAULTS_IN_WORDS.get(fault["type"])
    return words.format(**context) if words else str(fault["msg"])


def _either(problems: Sequence[str]) -> str:
    first, *others = dict.fromkeys(problems)
    return " or ".join([first, *(each.removeprefix("must be ") for each in others)])


def _in_words(place: Mapping[str, str]) -> str:
    name = place["where"].removeprefix("path.").removeprefix("query.").removeprefix("header.")
    if place["problem"].startswith("must "):
        return f"{name} {place['problem']}"
    return place["problem"] if name == "body" else f"{name}: {place['problem']}"


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
