"""API keys: issue, recognise and revoke; only their SHA-256 is stored.

A key is `cairn_<handle>_<secret>`: the handle finds the row, the secret has 256 random bits.
"""

import hashlib
import re
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.errors import InvalidRequest, NotFound
from service.operations import audit
from service.operations.tables import ApiKey, Principal

_KEY = re.compile(r"cairn_([0-9a-f]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class KeyLimits:
    """What a key is limited to, other than to what its holder may do."""

    lifetime: timedelta | None = None
    #: Names of datasets; None: all.
    datasets: tuple[str, ...] | None = None
    read_only: bool = False


#: A key that does whatever its holder may, until it is revoked.
UNLIMITED = KeyLimits()


@dataclass(frozen=True)
class IssuedKey:
    """A new key with its secret, which is shown once and not stored."""

    row: ApiKey
    text: str


def random_token() -> str:
    """Return a new secret: a handle to find its row by, and 256 random bits."""
    return f"cairn_{secrets.token_hex(4)}_{secrets.token_urlsafe(32)}"


def handle_of(text: str) -> str | None:
    """Return the handle of a key, or None when the text is not shaped like one."""
    match = _KEY.fullmatch(text)
    return match[1] if match else None


def digest_of(text: str) -> str:
    """Return the SHA-256 under which a key is stored."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def issue(
    session: Session,
    principal: Principal,
    *,
    by: str,
    at: datetime,
    label: str = "",
    limits: KeyLimits = UNLIMITED,
    text: str | None = None,
) -> IssuedKey:
    """Issue a key to a principal: a random one, or the one given as `text`."""
    text = text or random_token()
    handle = handle_of(text)
    if handle is None:
        raise InvalidRequest("a key must look like cairn_<8 hex digits>_<43 characters of base64url>")
    key = ApiKey(
        principal_id=principal.id,
        handle=handle,
        digest=digest_of(text),
        label=label,
        created_at=at,
        expires_at=at + limits.lifetime if limits.lifetime else None,
        revoked_at=None,
        datasets=None if limits.datasets is None else list(limits.datasets),
        read_only=limits.read_only,
    )
    session.add(key)
    session.flush()
    audit.record(session, "issue-key", actor=by, at=at, principal=principal.name, key=key.handle)
    return IssuedKey(key, text)


def revoke(session: Session, principal: Principal, handle: str, *, by: str, at: datetime) -> None:
    """Revoke a key; NotFound when the principal has none of this handle."""
    key = session.scalars(
        select(ApiKey).where(ApiKey.principal_id == principal.id, ApiKey.handle == handle)
    ).one_or_none()
    if key is None:
        raise NotFound("there is no such key; list the principal's keys to see their ids")
    if key.revoked_at is None:
        key.revoked_at = at
        audit.record(session, "revoke-key", actor=by, at=at, principal=principal.name, key=handle)


def of_principals(session: Session, principal_ids: list[int]) -> dict[int, list[ApiKey]]:
    """Return the keys of some principals, oldest first."""
    grouped: dict[int, list[ApiKey]] = {number: [] for number in principal_ids}
    query = select(ApiKey).where(ApiKey.principal_id.in_(principal_ids)).order_by(ApiKey.id)
    for key in session.scalars(query):
        grouped[key.principal_id].append(key)
    return grouped
