"""What a provider publishes: its endpoints and its keys, fetched from addresses of the operator's and cached.

A caller decides neither which address is asked nor how often: unknown ids of keys lead to one fetch in a
minute, however many requests name them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from service.errors import Unavailable
from service.operations.openid.providers import Provider, is_loopback

log = structlog.get_logger()

#: Longest time that a connection to a provider may take.
_CONNECT_SECONDS = 3.0
#: Longest time that a provider may take to answer, from the connection on.
_SECONDS = 5.0
#: Longest document that is read.
_MOST_BYTES = 1 << 20
#: Responses to a form that say in JSON why it was not taken.
_REFUSALS = (400, 401, 403)
#: Age at which a document is fetched again.
_FRESH_SECONDS = 3600.0
#: Age up to which a document is used while its provider does not answer.
_USABLE_SECONDS = 86400.0
#: Shortest time between two fetches of the same document.
_PAUSE_SECONDS = 60.0
#: The same, as long as there is none.
_FIRST_PAUSE_SECONDS = 5.0


def unavailable(provider: Provider) -> Unavailable:
    """Return the problem of a provider that does not answer as it should."""
    return Unavailable(f"{provider.title} does not answer; try again in a minute, or sign in with a key")


class Document:
    """A JSON document of a provider, with its age."""

    def __init__(self, provider: Provider, clock: Callable[[], float]):
        self._provider, self._clock = provider, clock
        self._lock = Lock()
        self._content: dict[str, Any] | None = None
        self._fetched_at = self._tried_at = float("-inf")

    def get(self, address: Callable[[], str], suits: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the document; fetched again if it is old, or does not suit and was not fetched just now."""
        with self._lock:
            now = self._clock()
            lacking = self._content is None or not suits(self._content)
            pause = _PAUSE_SECONDS if self._content else _FIRST_PAUSE_SECONDS
            if (lacking or now - self._fetched_at > _FRESH_SECONDS) and now - self._tried_at > pause:
                self._tried_at = now
                try:
                    self._content, self._fetched_at = fetch(self._provider, address()), now
                except Unavailable:
                    log.warning("provider does not answer", provider=self._provider.name)
            if self._content is None or now - self._fetched_at > _USABLE_SECONDS:
                raise unavailable(self._provider)
            return self._content


class Published:
    """The endpoints and keys of a provider."""

    def __init__(self, provider: Provider, clock: Callable[[], float] = time.monotonic):
        self.provider = provider
        self._metadata, self._keys = Document(provider, clock), Document(provider, clock)

    def endpoint(self, name: str) -> str | None:
        """Return the address of an endpoint, if the provider has it; it is as safe as the issuer's."""
        found = self._metadata.get(self._discovery, lambda _: True)
        if found.get("issuer") != self.provider.issuer:
            raise unavailable(self.provider)
        address = found.get(name)
        return None if address is None else _checked(self.provider, str(address))

    def require(self, name: str) -> str:
        """Return the address of an endpoint that every provider has."""
        address = self.endpoint(name)
        if address is None:
            raise unavailable(self.provider)
        return address

    def keys(self, key_id: str) -> KeySet:
        """Return the keys that verify signatures, which need not have the key."""

        def has_it(content: dict[str, Any]) -> bool:
            return any(each.get("kid") == key_id for each in content.get("keys", ()))

        found = self._keys.get(lambda: self.require("jwks_uri"), has_it)
        try:
            return KeySet.import_key_set({"keys": [key for key in found["keys"] if key.get("kid")]})
        except (JoseError, KeyError, TypeError, ValueError) as error:
            raise unavailable(self.provider) from error

    def _discovery(self) -> str:
        return f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration"


def fetch(provider: Provider, address: str, **sent: Any) -> dict[str, Any]:
    """Get a JSON document of a provider, or post a form to it; Unavailable unless it answers with JSON."""
    try:
        limits = httpx.Timeout(_SECONDS, connect=_CONNECT_SECONDS)
        with httpx.Client(timeout=limits, follow_redirects=False) as client:
            with client.stream("POST" if sent else "GET", address, **sent) as response:
                if response.status_code not in (_REFUSALS if sent else ()):
                    response.raise_for_status()
                content, due = b"", time.monotonic() + _SECONDS
                for piece in response.iter_bytes():
                    content += piece
                    if len(content) > _MOST_BYTES or time.monotonic() > due:
                        raise unavailable(provider)
            found = httpx.Response(200, content=content).json()
    except (httpx.HTTPError, ValueError) as error:
        raise unavailable(provider) from error
    if not isinstance(found, dict):
        raise unavailable(provider)
    return found


def _checked(provider: Provider, address: str) -> str:
    parts = urlsplit(address)
    issuer_is_here = is_loopback(urlsplit(provider.issuer).hostname)
    if parts.scheme != "https" and not (issuer_is_here and is_loopback(parts.hostname)):
        raise unavailable(provider)
    return address
