"""Who is calling, in which role, and where a page begins: dependencies of the routes."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.api.context import Context
from service.auth import Caller, require_analyst, require_caller
from service.errors import Forbidden, InvalidRequest, Unauthorized

__all__ = [
    "Analyst",
    "AnalystKey",
    "Anyone",
    "Curator",
    "Limit",
    "Services",
    "Unproven",
    "bearer",
    "cursor_from",
    "cursor_to",
    "services",
]

bearer = HTTPBearer(auto_error=False, description="A key, as `Authorization: Bearer <key>`")


async def services(request: Request) -> Context:
    """The parts of this process."""
    context: Context = request.app.state.context
    return context


Services = Annotated[Context, Depends(services)]


Credentials = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer)]


def _token(credentials: HTTPAuthorizationCredentials | None) -> str:
    if credentials is None:
        raise Unauthorized(
            "send your key as `Authorization: Bearer <key>`", headers={"WWW-Authenticate": "Bearer"}
        )
    return credentials.credentials


async def _holder(request: Request, credentials: Credentials) -> Caller | None:
    context: Context = request.app.state.context
    return await context.desk.callers.ask(_token(credentials))


async def _caller(request: Request, credentials: Credentials) -> Caller:
    return require_caller(await _holder(request, credentials))


async def _curator(request: Request, credentials: Credentials) -> Caller:
    caller = require_caller(await _holder(request, credentials))
    if not caller.is_curator:
        raise Forbidden("only curators may do this")
    return caller


async def _analyst(request: Request, credentials: Credentials) -> Caller:
    return require_analyst(await _holder(request, credentials))


@dataclass(frozen=True)
class Unproven:
    """A key that nobody has looked up yet, and where to do it."""

    token: str
    context: Context

    async def prove(self) -> None:
        """Raise unless an analyst holds the key."""
        require_analyst(await self.context.desk.callers.ask(self.token))


class _Unproven(HTTPBearer):
    """Takes the key of a request for a route that checks it by itself, with what else it has to look up."""

    async def __call__(self, request: Request) -> Unproven:  # type: ignore[override]  # more than the text
        found = Unproven(_token(await super().__call__(request)), request.app.state.context)
        request.state.unproven = found
        return found


# Each is one dependency, not a chain of them: resolving them is a good part of what a request costs.
Anyone = Annotated[Caller, Depends(_caller)]
Curator = Annotated[Caller, Depends(_curator)]
Analyst = Annotated[Caller, Depends(_analyst)]
#: An analyst's key that the route itself has checked; where the request is malformed, `StrictRoute` does.
AnalystKey = Annotated[
    Unproven,
    Depends(_Unproven(scheme_name="HTTPBearer", auto_error=False, description=bearer.model.description)),
]
Limit = Annotated[int | None, Query(ge=1, le=500, description="entries on a page")]


def cursor_to(value: Any) -> str:
    """The opaque form of where a page ends."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def cursor_from(text: str | None, kind: type) -> Any:
    """Where a page begins; InvalidRequest when the cursor is not one of ours."""
    if text is None:
        return None
    try:
        value = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError):
        value = None
    if not isinstance(value, kind) or (isinstance(value, int) and not 0 <= value < 2**63):
        raise InvalidRequest("this cursor is not one that a page gave you; begin again without it")
    if isinstance(value, str) and ("\0" in value or len(value) > 200 or not value.isprintable()):
        raise InvalidRequest("this cursor is not one that a page gave you; begin again without it")
    return value
