"""Authentication: the caller of a request, found by key or session, and the roles that routes require."""

import hmac
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Annotated

import structlog
from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from sqlalchemy import Executable, bindparam, func, literal, null, select
from starlette.requests import HTTPConnection

from service.errors import Forbidden, SignInRefused, Unauthorized
from service.http import cookies
from service.http.context import Context, Services
from service.operations.openid import tokens
from service.operations.openid.providers import Provider
from service.operations.states import Role
from service.operations.tables import ApiKey, BrowserSession, Identity, Principal
from service.people import admission, keys

log = structlog.get_logger()

_NO_DIGEST = keys.digest_of("")
#: Methods that change nothing.
_READING = {"GET", "HEAD"}
# Built once: every request needs one of them.
_PERSON = (Principal.id, Principal.name, Principal.role, Principal.disabled_at, Principal.keys_end_at)
_KEY = (ApiKey.id.label("key_id"), ApiKey.revoked_at, ApiKey.datasets, ApiKey.read_only)
_BY_KEY = (
    select(
        ApiKey.digest,
        ApiKey.expires_at,
        literal(None).label("session"),
        null().label("refused_at"),
        *_KEY,
        *_PERSON,
    )
    .join(Principal, ApiKey.principal_id == Principal.id)
    .where(ApiKey.handle == bindparam("handle"))
)
_BY_SESSION = (
    select(
        BrowserSession.digest,
        BrowserSession.expires_at,  # no later than the key's
        BrowserSession.handle.label("session"),
        Identity.refused_at,
        *_KEY,
        *_PERSON,
    )
    .outerjoin(ApiKey, BrowserSession.key_id == ApiKey.id)
    .outerjoin(Identity, BrowserSession.identity_id == Identity.id)
    .join(Principal, func.coalesce(ApiKey.principal_id, Identity.principal_id) == Principal.id)
    .where(BrowserSession.handle == bindparam("handle"))
)


#: When every grant that has an end has ended.
_AT_THE_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Reached:
    """A dataset or job that a request was about: found for the caller, or named in vain."""

    dataset_id: int | None = None
    dataset: str | None = None
    job: str | None = None


@dataclass(frozen=True)
class Caller:
    """The principal whose key or session cookie a request carries."""

    id: int
    name: str
    role: Role
    #: The key that was sent, or that the session came from; None in a session of an identity.
    key_id: int | None = None
    #: The id of the session, if a cookie was sent instead of a key.
    session: str | None = None
    #: Names of the datasets that the key is limited to; None: all that the principal may use.
    datasets: tuple[str, ...] | None = None
    #: The key makes no request that changes anything.
    read_only: bool = False
    #: When the request came, which decides whether a grant has ended.
    asked_at: datetime = _AT_THE_LATEST
    #: What the request turned out to be about, in the order in which it was looked for.
    reached: list[Reached] = field(default_factory=list, compare=False)

    @property
    def is_curator(self) -> bool:
        """True for the role that may see and manage data."""
        return self.role == Role.CURATOR

    def reaches(self, dataset: str) -> bool:
        """Return True if the key is not limited to other datasets."""
        return self.datasets is None or dataset in self.datasets


def identify(context: Context, connection: HTTPConnection) -> Caller:
    """Return the caller by the Authorization header, else by the cookie; raise Unauthorized for neither."""
    header = connection.headers.get("authorization")
    if header is None and (cookie := cookies.read(connection)) is not None:
        caller = _find(context, _BY_SESSION, cookie)
        if caller is None:
            raise Unauthorized(
                "your session has ended",
                headers={"WWW-Authenticate": "Bearer"},
                next_step="Sign in again.",
            )
        return _within_limits(caller, connection)
    scheme, _, token = (header or "").partition(" ")
    if header is None and "sec-fetch-mode" in connection.headers:  # a browser, which sends no keys
        raise Unauthorized("you are not signed in", next_step="Sign in.")
    if scheme.lower() != "bearer" or not token.strip():
        raise Unauthorized(
            "there is no key in the request",
            headers={"WWW-Authenticate": "Bearer"},
            next_step="Send your key as `Authorization: Bearer <key>`.",
        )
    token = token.strip()
    issuer = tokens.issuer_of(token)
    if issuer is not None:
        return _by_token(context, issuer, token)
    caller = _find(context, _BY_KEY, token)
    if caller is None:
        raise Unauthorized(
            "this key is unknown, expired or revoked",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    return _within_limits(caller, connection)


def _by_token(context: Context, issuer: str, token: str) -> Caller:
    """Return whom an access token of a provider is of; Unauthorized if it does not hold.

    The token names its provider among those of the operator, and decides nothing else.
    """
    now = context.clock.now()
    published = next((each for each in context.providers.values() if each.provider.issuer == issuer), None)
    if published is None or published.provider.audience is None:
        raise _no_token("tokens of this issuer are not taken here")
    provider = published.provider
    try:
        claims = tokens.verify(published, token, audience=published.provider.audience or "", now=now)
    except tokens.TokenRefused as error:
        log.info("token refused", provider=provider.name, reason=str(error))
        raise _no_token(f"this token does not hold: {error}") from error
    if claims.issued_at <= now - timedelta(minutes=context.settings.provider_minutes):
        raise _no_token("this token is too old; ask the provider for a new one")
    return _holder_of(context, provider, claims, now)


def _holder_of(context: Context, provider: Provider, claims: tokens.Claims, now: datetime) -> Caller:
    """Return the caller whom verified claims are of, admitted if they are new here; SignInRefused if not."""
    with context.database.read() as session:
        known = admission.holder(session, claims)
        if known is not None:
            identity, principal = known
            reason = admission.refusal_of(provider, claims, principal)
            if reason is None and identity.refused_at is None and _is_recent(context, identity, now):
                return Caller(principal.id, principal.name, principal.role, asked_at=now)
            if reason is not None and identity.refused_at is not None:
                raise SignInRefused(reason)  # which was recorded the first time
            if identity.refused_at is not None and claims.issued_at < identity.refused_at:
                raise _no_token("you were refused since this token was made; ask the provider for a new one")
    with context.database.write() as session:
        admitted = admission.admit(session, provider, claims, at=now)
        if not isinstance(admitted, admission.Refusal):
            principal = session.get_one(Principal, admitted.principal_id)
            return Caller(principal.id, principal.name, principal.role, asked_at=now)
    raise SignInRefused(admitted.reason)


def _is_recent(context: Context, identity: Identity, now: datetime) -> bool:
    """Return True if the provider has vouched for the person so lately that it need not be noted again."""
    confirmed, lasting = identity.confirmed_at, timedelta(minutes=context.settings.provider_minutes)
    return confirmed is not None and now - confirmed < lasting


def _no_token(words: str) -> Unauthorized:
    return Unauthorized(words, headers={"WWW-Authenticate": 'Bearer error="invalid_token"'})


def _within_limits(caller: Caller, connection: HTTPConnection) -> Caller:
    """Return the caller; Forbidden for a request that their key may not make."""
    if caller.read_only and connection.scope["method"] not in _READING:
        connection.state.caller = caller  # whose refusal is recorded
        raise Forbidden(
            "this key is for reading alone", next_step="Use another key of yours to change something."
        )
    return caller


def _find(context: Context, query: Executable, token: str) -> Caller | None:
    """Return the holder of a key or session, or None when it is malformed, unknown or no longer valid."""
    found = context.database.find_row(query, {"handle": keys.handle_of(token) or ""})
    # Compared even when there is nothing to compare with, so that both cases take the same time.
    matches = hmac.compare_digest(keys.digest_of(token), found.digest if found else _NO_DIGEST)
    if found is None or not matches or found.revoked_at or found.disabled_at or found.refused_at:
        return None
    now = context.clock.now()
    ends = [found.expires_at, found.keys_end_at if found.key_id else None]
    if any(end is not None and end <= now for end in ends):
        return None
    datasets = None if found.datasets is None else tuple(found.datasets)
    return Caller(
        found.id,
        found.name,
        found.role,
        found.key_id,
        found.session,
        datasets,
        bool(found.read_only),
        now,
    )


Credentials = Annotated[
    HTTPAuthorizationCredentials | None,
    Depends(HTTPBearer(auto_error=False, description="A key, as `Authorization: Bearer <key>`")),
]


async def _caller(request: Request, _documented: Credentials) -> Caller:
    """Return the caller whom the middleware identified before it read the body."""
    caller: Caller = request.state.caller
    return caller


def _only(*roles: Role, all_datasets: bool = False) -> Callable[[Caller], Awaitable[Caller]]:
    """Return a dependency that lets these roles in; `all_datasets`: with no key limited to some."""
    named = " and ".join(filter(None, (", ".join(f"{role}s" for role in roles[:-1]), f"{roles[-1]}s")))

    async def check(caller: Anyone) -> Caller:
        if caller.role not in roles:
            raise Forbidden(f"only {named} may do this", next_step="Sign in with such a key.")
        if all_datasets and caller.datasets is not None:
            raise Forbidden(
                "this key is limited to some datasets", next_step="Use another key of yours for this."
            )
        return caller

    return check


#: Everybody who is signed in.
Anyone = Annotated[Caller, Depends(_caller)]
#: Somebody who may own datasets.
Curator = Annotated[Caller, Depends(_only(Role.CURATOR))]
#: A curator with a key that is not limited to datasets.
FreeCurator = Annotated[Caller, Depends(_only(Role.CURATOR, all_datasets=True))]
#: Somebody who may submit jobs and read their results.
User = Annotated[Caller, Depends(_only(Role.CURATOR, Role.ANALYST))]
#: Somebody who may read facts, ledgers and receipts.
Reader = Annotated[Caller, Depends(_only(Role.CURATOR, Role.ANALYST, Role.AUDITOR))]
#: Somebody who may check the books of a dataset.
Overseer = Annotated[Caller, Depends(_only(Role.CURATOR, Role.AUDITOR))]
#: One of them with a key that is not limited to datasets.
FreeOverseer = Annotated[Caller, Depends(_only(Role.CURATOR, Role.AUDITOR, all_datasets=True))]
#: Somebody who may manage people.
Manager = Annotated[Caller, Depends(_only(Role.CURATOR, Role.OPERATOR, all_datasets=True))]
#: Somebody who may read the audit log.
AuditReader = Annotated[Caller, Depends(_only(Role.CURATOR, Role.AUDITOR, Role.OPERATOR, all_datasets=True))]


def _monitor(request: Request, context: Services, credentials: Credentials) -> Caller | None:
    token = context.settings.scrape_token()
    sent = credentials.credentials.encode("utf-8", "surrogateescape") if credentials else b""
    if token and hmac.compare_digest(token.encode(), sent):
        return None
    caller = identify(context, request)
    if caller.role not in (Role.CURATOR, Role.OPERATOR) or caller.datasets is not None:
        raise Forbidden("metrics are for curators and operators: they tell how long jobs take")
    return caller


#: A curator, an operator, or None for the metrics scraper with its own token.
Monitor = Annotated[Caller | None, Depends(_monitor)]
