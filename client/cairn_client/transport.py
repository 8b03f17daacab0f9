"""HTTP requests with the key, retries, problems as exceptions, and pages of lists.

A call is retried after a lost connection only if that is harmless: reading, planning, setting a value, and
any call with an idempotency key or a digest. `Retry-After` is respected.
"""

import itertools
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from cairn_client.address import full_address
from cairn_client.conversion import read
from cairn_client.errors import (
    NotCairn,
    NotSignedIn,
    Problem,
    RateLimited,
    Unavailable,
    Unreachable,
    problem_from,
)

T = TypeVar("T")
_PROBLEM = "application/problem+json"
_GATEWAYS = {502, 503, 504}
_KEY_REFUSED = 401
_PAGE = 500
_LONGEST_PAUSE = 8.0
_CONNECT_SECONDS = 10.0


def quoted(name: str) -> str:
    """Escape a name for use as one segment of a path."""
    return quote(name, safe="").replace(".", "%2E")


def retry_after(response: httpx.Response) -> float | None:
    """The seconds that a response asks to wait, if it does."""
    text = response.headers.get("retry-after", "")
    return float(text) if text.isdecimal() else None


class Transport:
    """The connection to one service with one key."""

    def __init__(
        self,
        address: str,
        key: str,
        *,
        patience: float = 60.0,
        timeout: float = 60.0,
        sleep: Callable[[float], None] = time.sleep,
        renew: Callable[[str], str | None] = lambda _key: None,
    ):
        """`renew` replaces a key that the service takes no longer, if it can."""
        self.address = full_address(address)
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            raise NotSignedIn("this is not a valid key: paste the whole key, without spaces")
        self.sleep = sleep
        self._key, self._renew = key, renew
        self._patience = patience
        self._reached = False
        headers = {"Authorization": f"Bearer {key}", "User-Agent": f"cairn-client/{_version()}"}
        limits = httpx.Timeout(timeout, connect=_CONNECT_SECONDS)
        try:
            self._http = httpx.Client(base_url=self.address, headers=headers, timeout=limits)
        except httpx.InvalidURL:
            raise Unreachable(
                f"{address!r} is not a valid address: write it like https://cairn.example.org"
            ) from None
        self.close = weakref.finalize(self, self._http.close)  # at the latest when it is garbage-collected

    def call(
        self,
        verb: str,
        path: str,
        *,
        body: Any = None,
        content: Callable[[], Iterable[bytes]] | None = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        read_seconds: float | None = None,
    ) -> httpx.Response:
        """Make a call, with retries where they are harmless; raises a Problem if the service refuses it."""
        harmless = verb in {"GET", "PUT", "DELETE"} if repeatable is None else repeatable
        options = _options(body, query, headers, read_seconds)
        given_up = time.monotonic() + self._patience
        for attempt in itertools.count():
            pause = min(0.1 * 2**attempt, _LONGEST_PAUSE)
            failure: Unreachable | Problem
            try:
                response = self._send(verb, path, content, options)
            except httpx.TransportError as error:
                failure, may_repeat = self._unreachable(error), self._may_repeat(error, harmless)
            else:
                self._reached = True
                if response.is_success:
                    return response
                failure = self._refusal(response)
                pause, may_repeat = failure.retry_after or pause, _passing(failure, harmless)
            if not may_repeat or time.monotonic() + pause > given_up:
                raise failure
            self.sleep(pause)
        raise AssertionError("the loop above never ends")

    def _send(
        self, verb: str, path: str, content: Callable[[], Iterable[bytes]] | None, options: dict[str, Any]
    ) -> httpx.Response:
        """Send a request, and once more with a new key if the service takes the old one no longer."""
        body: dict[str, Any] = {"content": content()} if content else {}
        response = self._http.request(verb, path, **options, **body)
        renewed = self._renew(self._key) if response.status_code == _KEY_REFUSED else None
        if renewed is None:
            return response
        self._key, self._http.headers["Authorization"] = renewed, f"Bearer {renewed}"
        body = {"content": content()} if content else {}
        return self._http.request(verb, path, **options, **body)

    def request(self, kind: type[T], verb: str, path: str, **options: Any) -> T:
        """Make a call as `call` does, and return the response as a wire type."""
        return self.read(kind, self.call(verb, path, **options))

    def read(self, kind: type[T], response: httpx.Response) -> T:
        """Parse a response as a wire type."""
        try:
            return read(kind, response.json())
        except ValueError as error:
            raise self._not_cairn() from error

    def pages(
        self, kind: type[T], path: str, query: Mapping[str, Any] | None = None, limit: int | None = None
    ) -> Iterator[T]:
        """Yield the entries of a paginated list, at most `limit` of them."""
        cursor, found = None, 0
        while True:
            size = _PAGE if limit is None else min(limit - found, _PAGE)
            items, cursor = self._items(kind, path, {**(query or {}), "cursor": cursor, "limit": size})
            yield from items
            found += len(items)
            if cursor is None or (limit is not None and found >= limit):
                return

    def entries(self, kind: type[T], path: str) -> list[T]:
        """Return all entries of a short list, which has no pages."""
        return self._items(kind, path, {})[0]

    def _items(self, kind: type[T], path: str, query: Mapping[str, Any]) -> tuple[list[T], str | None]:
        """Entries of a list, and the cursor of the next page where there is one."""
        answer = self.call("GET", path, query=query)
        try:
            page = answer.json()
            return [read(kind, each) for each in page["items"]], page.get("next")
        except (ValueError, KeyError, TypeError) as error:
            raise self._not_cairn() from error

    def _may_repeat(self, error: httpx.TransportError, harmless: bool) -> bool:
        if isinstance(error, httpx.UnsupportedProtocol):
            return False
        never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if never_sent:
            return self._reached  # an address that never answered is probably wrong: no retries
        return harmless

    def _unreachable(self, error: Exception) -> Unreachable:
        why = f" ({error})" if str(error) else ""
        if self._reached:
            return Unreachable(f"lost the connection to {self.address}{why}: try again later")
        if isinstance(error, httpx.TimeoutException):
            return Unreachable(f"{self.address} did not respond in time: check the address and the network")
        return Unreachable(f"cannot connect to {self.address}{why}: check the address, or start the service")

    def _not_cairn(self) -> NotCairn:
        return NotCairn(f"{self.address} is not a Cairn service: check the address")

    def _refusal(self, response: httpx.Response) -> Problem:
        """The problem that a response describes; raises NotCairn if it describes none."""
        if response.headers.get("content-type", "").startswith(_PROBLEM):
            try:
                return problem_from(response.status_code, response.json(), retry_after(response))
            except (ValueError, AttributeError) as error:
                raise self._not_cairn() from error
        if response.status_code in _GATEWAYS:  # from a proxy in front of the service
            return Unavailable(
                f"{self.address} is unavailable",
                status=response.status_code,
                retry_after=retry_after(response),
            )
        raise self._not_cairn()


def _options(
    body: Any, query: Mapping[str, Any] | None, headers: Mapping[str, str] | None, read_seconds: float | None
) -> dict[str, Any]:
    """Options of httpx for a call."""
    options: dict[str, Any] = {"params": {k: v for k, v in (query or {}).items() if v is not None}}
    options["headers"] = dict(headers or {})
    if body is not None:
        options["json"] = body
    if read_seconds is not None:
        options["timeout"] = httpx.Timeout(read_seconds, connect=_CONNECT_SECONDS)
    return options


def _passing(refusal: Problem, harmless: bool) -> bool:
    """Return True if the call may be retried and may then succeed."""
    if isinstance(refusal, RateLimited):  # refused before anything was done
        return True
    return harmless and isinstance(refusal, Unavailable) and refusal.status in _GATEWAYS


def _version() -> str:
    try:
        return version("cairn-client")
    except PackageNotFoundError:
        return "unknown"
