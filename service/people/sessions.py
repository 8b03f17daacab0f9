"""Sessions: browsers signed in with a key or by an identity; only the SHA-256 of a cookie is stored.

A session ends when it is ended, when its time is over, and with the key, identity or person it came from.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, func, select
from sqlalchemy.orm import Session, outerjoin

from service.errors import NotFound
from service.operations import audit
from service.operations.tables import ApiKey, BrowserSession, Identity, Principal
from service.people import keys, principals
from service.people.authentication import Caller

#: Sessions with the key or the identity that each came from.
_SIGN_INS = outerjoin(
    outerjoin(BrowserSession, ApiKey, BrowserSession.key_id == ApiKey.id),
    Identity,
    BrowserSession.identity_id == Identity.id,
)
#: The principal that a session belongs to.
_holder: ColumnElement[int] = func.coalesce(ApiKey.principal_id, Identity.principal_id)
#: Sessions that one person may have at once; the oldest ends when another one starts.
_MOST = 50


@dataclass(frozen=True)
class StartedSession:
    """A new session with its token, which is sent once and not stored."""

    row: BrowserSession
    token: str


def start(
    session: Session, sign_in: ApiKey | Identity, *, at: datetime, lifetime: timedelta, remembered: bool
) -> StartedSession:
    """Start a session of a person who signed in with a key, whose end is its end, or by an identity."""
    key, identity = (sign_in, None) if isinstance(sign_in, ApiKey) else (None, sign_in)
    ends = at + lifetime
    if key is not None and key.expires_at is not None:
        ends = min(ends, key.expires_at)
    _end_oldest(session, sign_in.principal_id, at)
    token = keys.random_token()
    row = BrowserSession(
        key=key,
        identity=identity,
        handle=keys.handle_of(token) or "",
        digest=keys.digest_of(token),
        remembered=remembered,
        created_at=at,
        expires_at=ends,
    )
    session.add(row)
    session.flush()
    return StartedSession(row, token)


def _end_oldest(session: Session, principal_id: int, at: datetime) -> None:
    """Delete the sessions of a person that are over, and the oldest of too many."""
    own = select(BrowserSession.id).select_from(_SIGN_INS).where(_holder == principal_id)
    kept = own.where(_is_live(at)).order_by(BrowserSession.id.desc()).limit(_MOST - 1)
    session.execute(delete(BrowserSession).where(BrowserSession.id.in_(own), BrowserSession.id.not_in(kept)))


def end(session: Session, caller: Caller, handle: str, *, at: datetime) -> None:
    """End a session of the caller or of somebody they manage; NotFound when there is none."""
    found = session.execute(
        select(BrowserSession, Principal)
        .select_from(_SIGN_INS)
        .join(Principal, Principal.id == _holder)
        .where(BrowserSession.handle == handle, _is_live(at))
    ).one_or_none()
    if found is None or not (found[1].id == caller.id or principals.manages(caller, found[1])):
        raise NotFound("there is no such session; list your sessions to see their ids")
    row, holder = found
    session.delete(row)
    if holder.id != caller.id:
        audit.record(
            session, "end-session", actor=caller.name, at=at, principal=holder.name, session_id=handle
        )


def of_principals(
    session: Session, principal_ids: list[int], at: datetime
) -> dict[int, list[BrowserSession]]:
    """Return the sessions of some principals that have not ended, oldest first."""
    grouped: dict[int, list[BrowserSession]] = {number: [] for number in principal_ids}
    query = (
        select(_holder, BrowserSession)
        .select_from(_SIGN_INS)
        .join(Principal, Principal.id == _holder)
        .where(Principal.id.in_(principal_ids), Principal.disabled_at.is_(None), _is_live(at))
        .order_by(BrowserSession.id)
    )
    for holder, row in session.execute(query):
        grouped[holder].append(row)
    return grouped


def _is_live(at: datetime) -> ColumnElement[bool]:
    valid = and_(ApiKey.revoked_at.is_(None), Identity.refused_at.is_(None))
    return and_(BrowserSession.expires_at > at, valid)
