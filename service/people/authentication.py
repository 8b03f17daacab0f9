"""Authentication: the caller of a request, found by key or session, and the roles that routes require."""

import hmac
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Executable, bindparam, literal, select
from starlette.requests import HTTPConnection

from service.errors import Forbidden, Unauthorized
from service.http import cookies
from service.http.context import Context, Services
from service.operations.states import Role
from service.operations.tables import ApiKey, BrowserSession, Principal
from service.people import keys

_NO_DIGEST = keys.digest_of("")
# Built once: every request needs one of them.
_HOLDER = (ApiKey.id.label("key_id"), ApiKey.revoked_at, Principal.disabled_at)
_PERSON = (Principal.id, Principal.name, Principal.role)
_BY_KEY = (
    select(ApiKey.digest, ApiKey.expires_at, literal(None).label("session"), *_HOLDER, *_PERSON)
    .join(Principal, ApiKey.principal_id == Principal.id)
    .where(ApiKey.handle == bindparam("handle"))
)
_BY_SESSION = (
    select(
        BrowserSession.digest,
        BrowserSession.expires_at,  # no later than the key's
        BrowserSession.handle.label("session"),
        *_HOLDER,
        *_PERSON,
    )
    .join(ApiKey, BrowserSession.key_id == ApiKey.id)
    .join(Principal, ApiKey.principal_id == Principal.id)
    .where(BrowserSession.handle == bindparam("handle"))
)


@dataclass(frozen=True)
class Caller:
    """The principal whose key or session cookie a request carries."""

    id: int
    name: str
    role: Role
    #: The key that was sent, or that the session came from.
    key_id: int | None = None
    #: The id of the session, if a cookie was sent instead of a key.
    session: str | None = None

    @property
    def is_curator(self) -> bool:
        """True for the role that may see and manage data."""
        return self.role == Role.CURATOR


def identify(context: Context, connection: HTTPConnection) -> Caller:
    """Return the caller by the Authorization header, else by the cookie; raise Unauthorized for neither."""
    header = connection.headers.get("authorization")
    if header is None and (cookie := cookies.read(connection)) is not None:
        caller = _find(context, _BY_SESSION, cookie)
        if caller is None:
            raise Unauthorized(
                "your session has ended; sign in again", headers={"WWW-Authenticate": "Bearer"}
            )
        return caller
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(
            "send your key as `Authorization: Bearer <key>`", headers={"WWW-Authenticate": "Bearer"}
        )
    caller = _find(context, _BY_KEY, token.strip())
    if caller is None:
        raise Unauthorized(
            "this key is unknown, expired or revoked; ask a curator for a new one",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    return caller


def _find(context: Context, query: Executable, token: str) -> Caller | None:
    """Return the holder of a key or session, or None when it is malformed, unknown or no longer valid."""
    found = context.database.find_row(query, {"handle": keys.handle_of(token) or ""})
    # Compared even when there is nothing to compare with, so that both cases take the same time.
    matches = hmac.compare_digest(keys.digest_of(token), found.digest if found else _NO_DIGEST)
    if found is None or not matches or found.revoked_at or found.disabled_at:
        return None
    if found.expires_at and found.expires_at <= context.clock.now():
        return None
    return Caller(found.id, found.name, found.role, found.key_id, found.session)


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


def _operator(request: Request, context: Services, credentials: Credentials) -> Caller | None:
    token = context.settings.scrape_token()
    sent = credentials.credentials.encode("utf-8", "surrogateescape") if credentials else b""
    if token and hmac.compare_digest(token.encode(), sent):
        return None
    caller = identify(context, request)
    if not caller.is_curator:
        raise Forbidden("metrics are for curators: they tell how long jobs take")
    return caller


Curator = Annotated[Caller, Depends(_curator)]
#: A curator, or None for the metrics scraper with its own token.
Operator = Annotated[Caller | None, Depends(_operator)]
