"""Sessions: a key exchanged for the cookie of a browser, of which only the SHA-256 is stored.

A session ends when it is ended, when its time is over, and with the key or the person that it came from.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, and_, delete, select
from sqlalchemy.orm import Session

from service.errors import NotFound
from service.operations import audit
from service.operations.tables import ApiKey, BrowserSession, Principal
from service.people import keys, principals
from service.people.authentication import Caller

#: Sessions that one person may have at once; the oldest ends when another one starts.
_MOST = 50


@dataclass(frozen=True)
class StartedSession:
    """A new session with its token, which is sent once and not stored."""

    row: BrowserSession
    token: str


def start(
    session: Session, caller: Caller, *, at: datetime, lifetime: timedelta, remembered: bool
) -> StartedSession:
    """Start a session of a caller with a key; it lasts no longer than the key."""
    key = session.get_one(ApiKey, caller.key_id)
    live = select(BrowserSession.id).join(ApiKey).where(ApiKey.principal_id == caller.id, _is_live(at))
    kept = live.order_by(BrowserSession.id.desc()).limit(_MOST - 1)
    own_keys = select(ApiKey.id).where(ApiKey.principal_id == caller.id)
    session.execute(
        delete(BrowserSession).where(BrowserSession.key_id.in_(own_keys), BrowserSession.id.not_in(kept))
    )
    token = keys.random_token()
    row = BrowserSession(
        key=key,
        handle=keys.handle_of(token) or "",
        digest=keys.digest_of(token),
        remembered=remembered,
        created_at=at,
        expires_at=min(at + lifetime, key.expires_at or datetime.max.replace(tzinfo=at.tzinfo)),
    )
    session.add(row)
    session.flush()
    return StartedSession(row, token)


def end(session: Session, caller: Caller, handle: str, *, at: datetime) -> None:
    """End a session of the caller or of somebody they manage; NotFound when there is none."""
    found = session.execute(
        select(BrowserSession, Principal)
        .join(ApiKey, BrowserSession.key_id == ApiKey.id)
        .join(Principal, ApiKey.principal_id == Principal.id)
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
        select(ApiKey.principal_id, BrowserSession)
        .join(ApiKey, BrowserSession.key_id == ApiKey.id)
        .join(Principal, ApiKey.principal_id == Principal.id)
        .where(Principal.id.in_(principal_ids), Principal.disabled_at.is_(None), _is_live(at))
        .order_by(BrowserSession.id)
    )
    for holder, row in session.execute(query):
        grouped[holder].append(row)
    return grouped


def _is_live(at: datetime) -> ColumnElement[bool]:
    return and_(BrowserSession.expires_at > at, ApiKey.revoked_at.is_(None))
