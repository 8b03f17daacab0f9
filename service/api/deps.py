"""Who is calling, in which role, and where a page begins: dependencies of the routes."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Annotated, Any

from fastapi import Depends, Query, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from service.api.context import Context
from service.auth import Caller
from service.errors import Forbidden, InvalidRequest, Unauthorized

__all__ = [
    "Analyst",
    "Anyone",
    "Curator",
    "Limit",
    "Services",
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


async def _caller(request: Request, credentials: Credentials) -> Caller:
    if credentials is None:
        raise Unauthorized(
            "send your key as `Authorization: Bearer <key>`", headers={"WWW-Authenticate": "Bearer"}
        )
    context: Context = request.app.state.context
    caller = await context.desk.callers.ask(credentials.credentials)
    if caller is None:
        raise Unauthorized(
            "this key is unknown, expired or revoked; ask a curator for a new one",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    return caller


async def _curator(request: Request, credentials: Credentials) -> Caller:
    caller = await _caller(request, credentials)
    if not caller.is_curator:
        raise Forbidden("only curators may do this")
    return caller


async def _analyst(request: Request, credentials: Credentials) -> Caller:
    caller = await _caller(request, credentials)
    if caller.is_curator:
        raise Forbidden("only analysts may do this; use an analyst's key")
    return caller


# Each is one dependency, not a chain of them: resolving them is a good part of what a request costs.
Anyone = Annotated[Caller, Depends(_caller)]
Curator = Annotated[Caller, Depends(_curator)]
Analyst = Annotated[Caller, Depends(_analyst)]
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
