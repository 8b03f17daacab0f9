"""Wire types of principals, keys and the audit log."""

from typing import Any, Literal

from pydantic import Field

from service.http.wire import Answer, Body, Moment, Name, Page, Words, example, page_example

Role = Literal["curator", "analyst", "auditor", "operator"]
_KEY_FACTS: dict[str, Any] = {
    "id": "3f9c1a2b",
    "label": "laptop",
    "created_at": "2030-01-01T09:00:00.000Z",
    "expires_at": None,
    "revoked_at": None,
    "datasets": None,
    "read_only": False,
}
_KEY = {"key": "cairn_3f9c1a2b_kT0aGPrgx3k8W9hXx7nD1Zb2ZJm4nQ6s5vYcR8tUeLw", **_KEY_FACTS}
_SESSION: dict[str, Any] = {
    "id": "91b0c2d4",
    "key": "3f9c1a2b",
    "issuer": None,
    "created_at": "2030-01-01T09:00:00.000Z",
    "expires_at": "2030-01-01T21:00:00.000Z",
    "remembered": False,
    "current": True,
    "sign_out_url": None,
}
_PRINCIPAL = {
    "name": "ada",
    "role": "analyst",
    "created_by": "curator",
    "created_at": "2030-01-01T09:00:00.000Z",
    "disabled_at": None,
    "waits": False,
    "identities": [{"issuer": "https://login.example.org", "subject": "248289761001"}],
    "keys": [_KEY_FACTS],
    "sessions": [_SESSION],
}


class PrincipalBody(Body, json_schema_extra=example({"name": "ada", "role": "analyst"})):
    """A new person or program."""

    name: Name
    role: Role


_IDENTITY = {"provider": "uni", "subject": "248289761001"}


class IdentityBody(Body, json_schema_extra=example(_IDENTITY)):
    """A person's identity at a provider."""

    provider: Name
    subject: Words = Field(min_length=1, max_length=255, description="the person's `sub` at the provider")


class KeyBody(Body, json_schema_extra=example({"label": "laptop", "expires_in_days": 90})):
    """A new key."""

    label: Words = Field(default="", max_length=64)
    expires_in_days: int | None = Field(default=None, ge=1, le=3650)
    datasets: list[Name] | None = Field(
        default=None, max_length=100, description="datasets that it is limited to; null: all"
    )
    read_only: bool = Field(default=False, description="it makes `GET` requests alone")


class KeyFacts(Answer, json_schema_extra=example(_KEY_FACTS)):
    """A key without its secret."""

    id: str
    label: str
    created_at: Moment
    expires_at: Moment | None
    revoked_at: Moment | None
    datasets: list[str] | None = Field(description="datasets that it is limited to; null: all")
    read_only: bool = Field(description="it makes `GET` requests alone")


class NewKey(KeyFacts, json_schema_extra=example(_KEY)):
    """A key, shown this once."""

    key: str


class SessionBody(Body, json_schema_extra=example({"remember": False})):
    """A sign-in with a browser."""

    remember: bool = Field(default=False, description="stay signed in after the browser is closed")


class SessionFacts(Answer, json_schema_extra=example(_SESSION)):
    """A browser that is signed in."""

    id: str
    key: str | None = Field(description="id of the key that it signed in with")
    issuer: str | None = Field(description="the provider that it signed in by, if not with a key")
    created_at: Moment
    expires_at: Moment
    remembered: bool = Field(description="kept after the browser is closed")
    current: bool = Field(description="this request carries its cookie")
    sign_out_url: str | None = Field(
        default=None, description="of the current session: where to sign out of the provider, too"
    )


class SessionPage(Page[SessionFacts], json_schema_extra=page_example(_SESSION)):
    """Your sessions, oldest first, on one page."""


class IdentityFacts(Answer):
    """A person's identity at a provider."""

    issuer: str
    subject: str


class PrincipalFacts(Answer, json_schema_extra=example(_PRINCIPAL)):
    """A person or program; keys, sessions and identities are listed to those who manage them."""

    name: str
    role: Role
    created_by: str | None
    created_at: Moment
    disabled_at: Moment | None
    waits: bool = Field(description="made at a first sign-in by a provider, and not enabled yet")
    identities: list[IdentityFacts] = Field(description="by which the person can sign in")
    keys: list[KeyFacts]
    sessions: list[SessionFacts]


_NEW = {"name": "ada", "role": "analyst", "first_key": _KEY}


class NewPrincipal(Answer, json_schema_extra=example(_NEW)):
    """A new person or program with a first key, shown this once."""

    name: str
    role: Role
    first_key: NewKey


class PrincipalPage(Page[PrincipalFacts], json_schema_extra=page_example(_PRINCIPAL)):
    """A page of principals, and the cursor of the next."""


class WhoAmI(Answer, json_schema_extra=example({"name": "ada", "role": "analyst"})):
    """The holder of a key."""

    name: str
    role: Role


_EVENT = {
    "id": 17,
    "at": "2030-01-01T09:00:00.000Z",
    "actor": "curator",
    "action": "grant",
    "dataset": "flowers",
    "words": "granted ada a cap of epsilon 1, delta 0.0000001",
    "details": {"analyst": "ada", "epsilon": "1", "delta": "0.0000001"},
}


class AuditEntry(Answer, json_schema_extra=example(_EVENT)):
    """An act."""

    id: int
    at: Moment
    actor: str
    action: str
    dataset: str | None
    words: str = Field(description="the act in a sentence")
    details: dict[str, Any]


class AuditPage(Page[AuditEntry], json_schema_extra=page_example(_EVENT)):
    """A page of acts, newest first, and the cursor of the next."""
