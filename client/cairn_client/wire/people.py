"""Responses about people, keys, sessions and the audit log."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True)
class WhoAmI:
    """Name and role of a key's owner."""

    name: str
    role: str


@dataclass(frozen=True)
class KeyFacts:
    """A key without its secret."""

    id: str
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    datasets: list[str] | None = None
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class NewKey(KeyFacts):
    """A new key, shown only once; its text is not part of `repr`, to keep it out of logs."""

    key: str = field(repr=False)


@dataclass(frozen=True)
class SessionFacts:
    """A browser that is signed in, with a key or by the provider that `issuer` names."""

    id: str
    key: str | None
    created_at: datetime
    expires_at: datetime
    remembered: bool
    current: bool
    issuer: str | None = None
    sign_out_url: str | None = None


@dataclass(frozen=True)
class IdentityFacts:
    """A person's identity at a provider."""

    issuer: str
    subject: str


@dataclass(frozen=True)
class PrincipalFacts:
    """An account; its keys, sessions and identities at providers are listed for its managers."""

    name: str
    role: str
    created_by: str | None
    created_at: datetime
    disabled_at: datetime | None
    keys: list[KeyFacts]
    sessions: list[SessionFacts] = field(default_factory=list)
    #: Made at a first sign-in by a provider, and not enabled yet.
    waits: bool = False
    identities: list[IdentityFacts] = field(default_factory=list)


@dataclass(frozen=True)
class NewPrincipal:
    """A new account with its first key, which is shown only once."""

    name: str
    role: str
    first_key: NewKey


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the audit log."""

    id: int
    at: datetime
    actor: str
    action: str
    dataset: str | None
    words: str
    details: dict[str, Any]
