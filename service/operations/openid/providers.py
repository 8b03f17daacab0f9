"""Identity providers, as the operator describes them in a TOML file; docs/sign-in.md explains each field."""

from __future__ import annotations

import tomllib
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from service.operations.states import Role

#: Signature algorithms that tokens may have. No secret that we share is among them, nor `none`.
Algorithm = Literal["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
_Words = Annotated[str, Field(min_length=1, max_length=255)]


class ProvidersError(Exception):
    """The file of providers cannot be used; the message says what to change."""


class Provider(BaseModel):
    """An identity provider, and whom of its people the service lets in as what."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
    """Its name in addresses and commands."""
    title: _Words
    """The institution's name, on the button."""
    issuer: _Words
    """Its issuer, to the letter, as its tokens name it."""
    client_id: _Words
    """The client that the console signs in as."""
    client_secret_file: Path | None = None
    """File that holds the client's secret; none for a public client."""
    scopes: tuple[str, ...] = ("openid", "profile")
    """Scopes that the console asks for."""
    name_claim: str = "preferred_username"
    """The claim whose value becomes the name of a new account."""
    groups_claim: str = "groups"
    """The claim that lists a person's groups."""
    groups: dict[Role, tuple[str, ...]] = {}
    """By role: groups whose people may have it. Empty: groups do not matter, and new people are analysts."""
    unknown: Literal["refuse", "create", "wait"] = "refuse"
    """What happens to people without an account: refused; made an account; or one that is still disabled."""
    required_acr: tuple[str, ...] = ()
    """One of these must be the `acr` of a sign-in."""
    required_amr: tuple[str, ...] = ()
    """One of these must be among the `amr` of a sign-in, for example `mfa`."""
    algorithms: tuple[Algorithm, ...] = ("RS256", "ES256")
    """Signature algorithms of its tokens."""
    audience: str | None = None
    """Audience of its access tokens for this API; without one the API takes none."""
    command_client_id: str | None = None
    """The public client that `cairn login` signs in as, by the device flow."""
    command_scopes: tuple[str, ...] = ("openid", "profile", "offline_access")
    """Scopes that `cairn login` asks for."""
    keys_days: float | None = Field(default=None, gt=0)
    """Days after a person's last sign-in for which their keys work; none: keys do not depend on it."""

    @field_validator("issuer")
    @classmethod
    def _is_safe(cls, issuer: str) -> str:
        parts = urlsplit(issuer)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname)):
            raise ValueError("must be an https address")
        return issuer

    @model_validator(mode="after")
    def _keeps_tokens_apart(self) -> Provider:
        if self.audience is not None and self.audience in (self.client_id, self.command_client_id):
            raise ValueError(
                "`audience` must differ from the ids of clients: id tokens must not open the API"
            )
        if self.command_client_id is not None and self.audience is None:
            raise ValueError("`command_client_id` needs `audience`: the command sends access tokens")
        return self

    def client_secret(self) -> str | None:
        """Return the client's secret, read each time, so that it can be changed."""
        return self.client_secret_file.read_text().strip() if self.client_secret_file else None


def is_loopback(host: str | None) -> bool:
    """Return True for a host that is this machine."""
    try:
        return host == "localhost" or ip_address(host or "").is_loopback
    except ValueError:
        return False


def load(path: Path | None) -> tuple[Provider, ...]:
    """Read the providers from their file; none without one."""
    if path is None:
        return ()
    try:
        described = tomllib.loads(path.read_text()).get("provider", [])
        found = tuple(Provider.model_validate(each) for each in described)
    except (OSError, ValidationError, tomllib.TOMLDecodeError, AttributeError) as error:
        raise ProvidersError(f"{path} cannot be used as a file of providers: {error}") from error
    for each in ("name", "issuer"):
        values = [getattr(provider, each) for provider in found]
        if len(set(values)) < len(values):
            raise ProvidersError(f"{path} names two providers with the same {each}")
    return found
