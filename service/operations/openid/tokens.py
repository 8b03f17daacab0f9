"""Verification of a provider's tokens: signature, issuer, audience, times and nonce."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from joserfc import jwt
from joserfc.errors import JoseError

from service.operations.openid.providers import Provider
from service.operations.openid.published import Published

#: Seconds by which a provider's clock may differ from ours.
_LEEWAY_SECONDS = 60
#: Longest token that is read.
_MOST_CHARACTERS = 16 << 10


class TokenRefused(Exception):
    """A token that does not hold; the message says why, without anything of the token."""


@dataclass(frozen=True)
class Claims:
    """What a provider says of a person, or of a machine, whose token was verified."""

    issuer: str
    subject: str
    issued_at: datetime
    #: The value of the claim that names people; empty without one.
    name: str
    groups: frozenset[str]
    acr: str
    amr: frozenset[str]


def issuer_of(token: str) -> str | None:
    """Return the issuer that a token names, before anything is verified; None if it is no token."""
    return _text(_part(token, 1).get("iss"))


def verify(
    published: Published, token: str, *, audience: str, now: datetime, nonce: str | None = None
) -> Claims:
    """Return the claims of a token of this provider for an audience, or raise TokenRefused.

    An id token carries the nonce of its sign-in, too.
    """
    provider = published.provider
    key_id = _text(_part(token, 0).get("kid"))
    if key_id is None:
        raise TokenRefused("it names no key")
    try:
        decoded = jwt.decode(token, published.keys(key_id), algorithms=list(provider.algorithms))
        wanted: dict[str, Any] = {
            "iss": {"essential": True, "value": provider.issuer},
            "aud": {"essential": True, "value": audience},
            "sub": {"essential": True},
            "exp": {"essential": True},
            "iat": {"essential": True},
        }
        if nonce is not None:
            wanted["nonce"] = {"essential": True, "value": nonce}
        registry = jwt.JWTClaimsRegistry(now=int(now.timestamp()), leeway=_LEEWAY_SECONDS, **wanted)
        registry.validate(decoded.claims)
    except (JoseError, ValueError, TypeError) as error:
        claim = getattr(error, "claim", None)
        words = f"its {claim} is" if claim else "it is"
        raise TokenRefused(f"{words} not valid here ({type(error).__name__})") from error
    claims = decoded.claims
    if claims.get("azp", audience) != audience and nonce is not None:
        raise TokenRefused("it was made for another client")
    return _claims(provider, claims, now)


def _claims(provider: Provider, claims: Mapping[str, Any], now: datetime) -> Claims:
    subject = claims["sub"]
    if not isinstance(subject, str) or not 0 < len(subject) <= 255:
        raise TokenRefused("its subject is not a text of at most 255 characters")
    return Claims(
        issuer=provider.issuer,
        subject=subject,
        issued_at=datetime.fromtimestamp(claims["iat"], now.tzinfo),
        name=_text(claims.get(provider.name_claim)) or "",
        groups=_texts(claims.get(provider.groups_claim)),
        acr=_text(claims.get("acr")) or "",
        amr=_texts(claims.get("amr")),
    )


def _part(token: str, index: int) -> dict[str, Any]:
    """Return the header (0) or the claims (1) that a token shows, or nothing."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > _MOST_CHARACTERS:
        return {}
    try:
        found = json.loads(base64.urlsafe_b64decode(parts[index] + "=" * (-len(parts[index]) % 4)))
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _texts(value: object) -> frozenset[str]:
    values = value if isinstance(value, list) else [value]
    return frozenset(each for each in values if isinstance(each, str))
