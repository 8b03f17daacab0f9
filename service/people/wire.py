"""Wire types of principals, keys and the audit log."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from service.http.wire import Answer, Body, Name, Words, example

__all__ = [
    "AuditEntry",
    "AuditPage",
    "KeyBody",
    "KeyFacts",
    "NewKey",
    "NewPrincipal",
    "PrincipalBody",
    "PrincipalFacts",
    "PrincipalPage",
    "WhoAmI",
]

Role = Literal["curator", "analyst"]
_KEY_FACTS: dict[str, Any] = {
    "id": "3f9c1a2b",
    "label": "laptop",
    "created_at": "2030-01-01T09:00:00.000Z",
    "expires_at": None,
    "revoked_at": None,
}
_KEY = {"key": "cairn_3f9c1a2b_kT0aGPrgx3k8W9hXx7nD1Zb2ZJm4nQ6s5vYcR8tUeLw", **_KEY_FACTS}
_PRINCIPAL = {
    "name": "ada",
    "role": "analyst",
    "created_by": "curator",
    "created_at": "2030-01-01T09:00:00.000Z",
    "disabled_at": None,
    "keys": [_KEY_FACTS],
}


class PrincipalBody(Body):
    """A new person or program."""

    model_config = ConfigDict(json_schema_extra=example({"name": "ada", "role": "analyst"}))

    name: Name
    role: Role


class KeyBody(Body):
    """A new key."""

    model_config = ConfigDict(json_schema_extra=example({"label": "laptop", "expires_in_days": 90}))

    label: Words = Field(default="", max_length=64)
    expires_in_days: int | None = Field(default=None, ge=1, le=3650)


class KeyFacts(Answer):
    """A key without its secret."""

    model_config = ConfigDict(json_schema_extra=example(_KEY_FACTS))

    id: str
    label: str
    created_at: str
    expires_at: str | None
    revoked_at: str | None


class NewKey(KeyFacts):
    """A key, shown this once."""

    model_config = ConfigDict(json_schema_extra=example(_KEY))

    key: str


class PrincipalFacts(Answer):
    """A person or program; keys are listed to whoever manages them."""

    model_config = ConfigDict(json_schema_extra=example(_PRINCIPAL))

    name: str
    role: Role
    created_by: str | None
    created_at: str
    disabled_at: str | None
    keys: list[KeyFacts]


class NewPrincipal(Answer):
    """A new person or program with a first key, shown this once."""

    model_config = ConfigDict(
        json_schema_extra=example({"name": "ada", "role": "analyst", "first_key": _KEY})
    )

    name: str
    role: Role
    first_key: NewKey


class PrincipalPage(Answer):
    """Some principals, and where the next page begins."""

    model_config = ConfigDict(json_schema_extra=example({"items": [_PRINCIPAL], "next": None}))

    items: list[PrincipalFacts]
    next: str | None


class WhoAmI(Answer):
    """Whose key this is."""

    model_config = ConfigDict(json_schema_extra=example({"name": "ada", "role": "analyst"}))

    name: str
    role: Role


_EVENT = {
    "id": 17,
    "at": "2030-01-01T09:00:00.000Z",
    "actor": "curator",
    "action": "grant",
    "dataset": "flowers",
    "details": {"analyst": "ada", "epsilon": "1", "delta": "0.0000001"},
}


class AuditEntry(Answer):
    """One act."""

    model_config = ConfigDict(json_schema_extra=example(_EVENT))

    id: int
    at: str
    actor: str
    action: str
    dataset: str | None
    details: dict[str, Any]


class AuditPage(Answer):
    """Some acts, newest first, and where the next page begins."""

    model_config = ConfigDict(json_schema_extra=example({"items": [_EVENT], "next": None}))

    items: list[AuditEntry]
    next: str | None
