"""Who is calling: principals, their roles, and keys of which only the SHA-256 is kept.

A key is `cairn_<handle>_<secret>`: the handle finds the row, the secret (256 random bits) is compared
in constant time. Whoever created a principal manages its keys; a curator manages their own too.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import bindparam, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service import audit
from service.db import padded
from service.errors import Forbidden, InvalidRequest, NotFound, Unauthorized
from service.tables import ApiKey, Principal

__all__ = [
    "Caller",
    "IssuedKey",
    "authenticate",
    "authenticate_several",
    "create_principal",
    "has_principals",
    "issue_key",
    "keys_of",
    "principal_named",
    "require_analyst",
    "require_caller",
    "revoke_key",
]

_KEY = re.compile(r"cairn_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")
_NO_DIGEST = hashlib.sha256(b"").hexdigest()
# Put together once: every request needs it.
_KEYS = (
    select(
        ApiKey.handle,
        ApiKey.digest,
        ApiKey.revoked_at,
        ApiKey.expires_at,
        Principal.disabled_at,
        Principal.id,
        Principal.name,
        Principal.role,
    )
    .join(Principal, ApiKey.principal_id == Principal.id)
    .where(ApiKey.handle.in_(bindparam("handles", expanding=True)))
)


@dataclass(frozen=True)
class Caller:
    """Whoever holds the key of a request."""

    id: int
    name: str
    role: str

    @property
    def is_curator(self) -> bool:
        """True for the role that may see and manage data."""
        return self.role == "curator"


@dataclass(frozen=True)
class IssuedKey:
    """A new key with its secret, which is shown once and kept nowhere."""

    row: ApiKey
    text: str


def authenticate(session: Session, token: str, now: datetime) -> Caller | None:
    """The holder of a key, or None when it is malformed, unknown, expired or revoked."""
    return authenticate_several(session, [token], now)[0]


def authenticate_several(session: Session, tokens: Sequence[str], now: datetime) -> list[Caller | None]:
    """The holders of keys, each as `authenticate` would tell, found with one query."""
    handles = [match[1] if (match := _KEY.fullmatch(token)) else "" for token in tokens]
    rows = session.connection().execute(_KEYS, {"handles": padded(handles)})
    found = {row.handle: row for row in rows}
    callers: list[Caller | None] = []
    for token, handle in zip(tokens, handles, strict=True):
        row = found.get(handle)
        # Compared even when there is nothing to compare with, so that both cases take the same time.
        matches = hmac.compare_digest(_digest(token), row.digest if row else _NO_DIGEST)
        valid = row is not None and matches and not row.revoked_at and not row.disabled_at
        if row is None or not valid or (row.expires_at and row.expires_at <= now):
            callers.append(None)
        else:
            callers.append(Caller(row.id, row.name, row.role))
    return callers


def require_caller(found: Caller | None) -> Caller:
    """Whoever a key was found to belong to; Unauthorized when it belongs to nobody any more."""
    if found is None:
        raise Unauthorized(
            "this key is unknown, expired or revoked; ask a curator for a new one",
            headers={"WWW-Authenticate": 'Bearer error="invalid_token"'},
        )
    return found


def require_analyst(found: Caller | None) -> Caller:
    """As `require_caller`; Forbidden for curators."""
    caller = require_caller(found)
    if caller.is_curator:
        raise Forbidden("only analysts may do this; use an analyst's key")
    return caller


def create_principal(session: Session, name: str, role: str, *, by: Caller | None, at: datetime) -> Principal:
    """Make a person or program known; InvalidRequest when the name is taken."""
    principal = Principal(name=name, role=role, created_by=by.id if by else None, created_at=at)
    try:
        with session.begin_nested():
            session.add(principal)
    except IntegrityError as error:
        raise InvalidRequest(f"the name {name} is taken; choose another", status=409) from error
    audit.record(session, "create-principal", actor=by.name if by else name, at=at, principal=name, role=role)
    return principal


def issue_key(
    session: Session,
    principal: Principal,
    *,
    by: str,
    at: datetime,
    label: str = "",
    lifetime: timedelta | None = None,
    text: str | None = None,
) -> IssuedKey:
    """Make a key for a principal, or take the one given as `text`."""
    text = text or f"cairn_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"
    match = _KEY.fullmatch(text)
    if match is None:
        raise InvalidRequest("a key must look like cairn_<8 hex digits>_<43 characters of base64url>")
    key = ApiKey(
        principal_id=principal.id,
        handle=match[1],
        digest=_digest(text),
        label=label,
        created_at=at,
        expires_at=at + lifetime if lifetime else None,
        revoked_at=None,
    )
    session.add(key)
    session.flush()
    audit.record(session, "issue-key", actor=by, at=at, principal=principal.name, key=key.handle)
    return IssuedKey(key, text)


def revoke_key(session: Session, principal: Principal, handle: str, *, by: str, at: datetime) -> None:
    """End a key; NotFound when the principal has none of this handle."""
    key = session.scalars(
        select(ApiKey).where(ApiKey.principal_id == principal.id, ApiKey.handle == handle)
    ).one_or_none()
    if key is None:
        raise NotFound("there is no such key; list the principal's keys to see their ids")
    if key.revoked_at is None:
        key.revoked_at = at
        audit.record(session, "revoke-key", actor=by, at=at, principal=principal.name, key=handle)


def disable(session: Session, principal: Principal, *, by: str, at: datetime) -> None:
    """End a principal: every key stops working, what they did stays on record."""
    if principal.disabled_at is None:
        principal.disabled_at = at
        audit.record(session, "disable-principal", actor=by, at=at, principal=principal.name)


def principal_named(session: Session, name: str) -> Principal:
    """The principal of this name, or NotFound."""
    found = session.scalars(select(Principal).where(Principal.name == name)).one_or_none()
    if found is None:
        raise NotFound(f"there is no principal named {name}")
    return found


def manages(caller: Caller, principal: Principal) -> bool:
    """True when the caller may issue and revoke the principal's keys."""
    return caller.is_curator and (principal.created_by == caller.id or principal.id == caller.id)


def require_manager(caller: Caller, principal: Principal) -> None:
    """Forbidden unless the caller manages the principal."""
    if not manages(caller, principal):
        raise Forbidden("only the curator who created this principal manages it and its keys")


def keys_of(session: Session, principal_ids: list[int]) -> dict[int, list[ApiKey]]:
    """The keys of some principals, oldest first."""
    grouped: dict[int, list[ApiKey]] = {number: [] for number in principal_ids}
    for key in session.scalars(
        select(ApiKey).where(ApiKey.principal_id.in_(principal_ids)).order_by(ApiKey.id)
    ):
        grouped[key.principal_id].append(key)
    return grouped


def has_principals(session: Session) -> bool:
    """False on a database that nobody has used yet."""
    return session.scalar(select(Principal.id).limit(1)) is not None


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
