"""Authentication: the caller of a request, found by key, and the roles that routes require."""

import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import bindparam, select
from sqlalchemy.orm import Session

from service.errors import Forbidden, Unauthorized
from service.http.context import Context, Services
from service.operations.states import Role
from service.operations.tables import ApiKey, Principal
from service.people import keys

_NO_DIGEST = keys.digest_of("")
# Built once: every request needs it.
_BY_HANDLE = (
    select(
        ApiKey.digest,
        ApiKey.revoked_at,
        ApiKey.expires_at,
        Principal.disabled_at,
        Principal.id,
        Principal.name,
        Principal.role,
    )
    .join(Principal, ApiKey.principal_id == Principal.id)
    .where(ApiKey.handle == bindparam("handle"))
)


@dataclass(frozen=True)
class Caller:
    """The principal whose key a request carries."""

    id: int
    name: str
    role: Role

    @property
    def is_curator(self) -> bool:
        """True for the role that may see and manage data."""
        return self.role == Role.CURATOR


def authenticate(session: Session, token: str, now: datetime) -> Caller | None:
    """Return the holder of a key, or None when it is malformed, unknown, expired or revoked."""
    found = session.connection().execute(_BY_HANDLE, {"handle": keys.handle_of(token) or ""}).one_or_none()
    # Compared even when there is nothing to compare with, so that both cases take the same time.
    matches = hmac.compare_digest(keys.digest_of(token), found.digest if found else _NO_DIGEST)
    if found is None or not matches or found.revoked_at or found.disabled_at:
        return None
    if found.expires_at and found.expires_at <= now:
        return None
    return Caller(found.id, found.name, found.role)


def identify(context: Context, header: str | None) -> Caller:
    """Return the caller of an Authorization header, or raise Unauthorized."""
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(
            "send your key as `Authorization: Bearer <key>`", headers={"WWW-Authenticate": "Bearer"}
        )
    with context.database.read() as session:
        caller = authenticate(session, token.strip(), context.clock.now())
    if caller is None:
        raise Unauthorized(
            "this key is unknown, expired or revoked; ask a curator for a new one",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    return caller


Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="A key, as `Authorization: Bearer <key>`")),
]


async def _caller(request: Request, _documented: Credentials) -> Caller:
    """Return the caller whom the middleware identified before it read the body."""
    caller: Caller = request.state.caller
    return caller


Anyone = Annotated[Caller, Depends(_caller)]


async def _curator(caller: Anyone) -> Caller:
    if not caller.is_curator:
        raise Forbidden("only curators may do this")
    return caller


async def _analyst(caller: Anyone) -> Caller:
    if caller.is_curator:
        raise Forbidden("only analysts may do this; use an analyst's key")
    return caller


def _operator(request: Request, context: Services, credentials: Credentials) -> None:
    token = context.settings.scrape_token()
    sent = credentials.credentials.encode("utf-8", "surrogateescape") if credentials else b""
    if token and hmac.compare_digest(token.encode(), sent):
        return
    if not identify(context, request.headers.get("authorization")).is_curator:
        raise Forbidden("metrics are for curators: they tell how long jobs take")


Curator = Annotated[Caller, Depends(_curator)]
Analyst = Annotated[Caller, Depends(_analyst)]
#: A curator, or the metrics scraper with its own token.
Operator = Annotated[None, Depends(_operator)]
