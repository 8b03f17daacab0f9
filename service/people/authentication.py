"""Authentication: the caller of a request, found by key, and the roles that routes require."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import select
from sqlalchemy.orm import Session

from service.errors import Forbidden, Unauthorized
from service.http.context import Services
from service.operations.states import Role
from service.operations.tables import ApiKey, Principal
from service.people import keys

__all__ = ["Analyst", "Anyone", "Caller", "Curator", "Operator", "authenticate"]

_NO_DIGEST = keys.digest_of("")


@dataclass(frozen=True)
class Caller:
    """The principal whose key a request carries."""

    id: int
    name: str
    role: str

    @property
    def is_curator(self) -> bool:
        """True for the role that may see and manage data."""
        return self.role == Role.CURATOR


def authenticate(session: Session, token: str, now: datetime) -> Caller | None:
    """Return the holder of a key, or None when it is malformed, unknown, expired or revoked."""
    found = session.execute(
        select(ApiKey, Principal)
        .join(Principal, ApiKey.principal_id == Principal.id)
        .where(ApiKey.handle == (keys.handle_of(token) or ""))
    ).one_or_none()
    key, principal = found or (None, None)
    # Compared even when there is nothing to compare with, so that both cases take the same time.
    matches = hmac.compare_digest(keys.digest_of(token), key.digest if key else _NO_DIGEST)
    if key is None or principal is None or not matches or key.revoked_at or principal.disabled_at:
        return None
    if key.expires_at and key.expires_at <= now:
        return None
    return Caller(principal.id, principal.name, principal.role)


Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="A key, as `Authorization: Bearer <key>`")),
]


def _caller(context: Services, credentials: Credentials) -> Caller:
    if credentials is None:
        raise Unauthorized(
            "send your key as `Authorization: Bearer <key>`", headers={"WWW-Authenticate": "Bearer"}
        )
    with context.database.read() as session:
        caller = authenticate(session, credentials.credentials, context.clock.now())
    if caller is None:
        raise Unauthorized(
            "this key is unknown, expired or revoked; ask a curator for a new one",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    return caller


Anyone = Annotated[Caller, Depends(_caller)]


def _curator(caller: Anyone) -> Caller:
    if not caller.is_curator:
        raise Forbidden("only curators may do this")
    return caller


def _analyst(caller: Anyone) -> Caller:
    if caller.is_curator:
        raise Forbidden("only analysts may do this; use an analyst's key")
    return caller


def _operator(context: Services, credentials: Credentials) -> None:
    token = context.settings.scrape_token()
    sent = credentials.credentials.encode("utf-8", "surrogateescape") if credentials else b""
    if token and hmac.compare_digest(token.encode(), sent):
        return
    if not _caller(context, credentials).is_curator:
        raise Forbidden("metrics are for curators: they tell how long jobs take")


Curator = Annotated[Caller, Depends(_curator)]
Analyst = Annotated[Caller, Depends(_analyst)]
#: A curator, or the metrics scraper with its own token.
Operator = Annotated[None, Depends(_operator)]
