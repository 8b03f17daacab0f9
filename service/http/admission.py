"""Admission of requests: callers are known before a body is read, and each gets a share of the service.

A caller has an allowance that refills with time. Every request uses some of it: a little for itself, more for
planning, and some for the bytes that come in and go out, refused or not. Nothing else counts: an allowance
must not tell how long jobs ran or how busy others are.

Refusals are paced: even a refusal costs a look at the database, so those beyond a few a second wait.
"""

import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Scope

from service.errors import RateLimited
from service.operations.settings import KIB, Settings

#: What every request uses of an allowance.
_REQUEST = 1.0
#: What a request that is planned uses in its place.
_PLANNING = 20.0
#: What each byte that comes in or goes out uses.
_PER_BYTE = 1 / (64 * KIB)
#: Entries of a list that take as long as a request.
_ENTRIES = 5
#: Bytes of a ledger's table that take as long as a request.
_TABLE_BYTES = 16 * KIB
#: Bytes to be planned that take as long as a request.
_PLANNED_BYTES = 8 * KIB
_PLANS = {("POST", "/v1/plans"), ("POST", "/v1/jobs")}
#: Longest body of a plan or a job: sites that are sent with one take at most 256 KiB.
_PLAN_BYTES = 320 * KIB
_LIMIT = re.compile(rb"(?:^|&)limit=(\d{1,4})(?:&|$)")
_LEDGER = re.compile(r"/v1/datasets/[^/]+/ledger")
_UPLOAD = re.compile(r"/v1/datasets/[^/]+/(data|public-rows)")
_PREVIEW = ("POST", "/v1/previews")
_SITES = re.compile(r"/v1/datasets/[^/]+/sites/[^/]+")


class Caller(Protocol):
    """Somebody who is known by number and name."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


def is_upload(scope: Scope) -> bool:
    """Return True for the routes that stream their body to disk, under limits of their own."""
    if (scope["method"], scope["path"]) == _PREVIEW:
        return True
    return scope["method"] == "PUT" and _UPLOAD.fullmatch(scope["path"]) is not None


def body_limit(scope: Scope, settings: Settings) -> int:
    """Return the most bytes that the body of a request may have."""
    if is_upload(scope):
        return settings.max_upload_bytes
    if _SITES.fullmatch(scope["path"]):
        return settings.max_sites_bytes
    if scope["method"] not in ("POST", "PUT", "PATCH"):
        return KIB  # nothing is expected, but some clients send an empty object
    if (scope["method"], scope["path"]) in _PLANS:
        return min(_PLAN_BYTES, settings.max_body_bytes)
    return settings.max_body_bytes


def _price(scope: Scope) -> float:
    """Return what a request uses of an allowance before its bytes are counted."""
    if (scope["method"], scope["path"]) in _PLANS:
        return _PLANNING
    asked = _LIMIT.search(scope.get("query_string", b""))
    return _REQUEST + (int(asked[1]) / _ENTRIES if asked else 0.0)


def counted_bytes(scope: Scope, received: int, sent: int) -> float:
    """Return the bytes of a request that its allowance pays for; those of an upload are free."""
    if _LEDGER.fullmatch(scope["path"]):
        sent *= 64 * KIB // _TABLE_BYTES
    if (scope["method"], scope["path"]) in _PLANS:
        received *= 64 * KIB // _PLANNED_BYTES
    return sent + (0 if is_upload(scope) else received)


class Pacing:
    """Spreads refusals over time: each waits for its turn, but no longer than some seconds."""

    _EVERY_SECONDS, _LONGEST_SECONDS = 0.05, 5.0

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self._clock = clock
        self._last = -math.inf

    def wait(self) -> float:
        """Return the seconds after which the next refusal may be sent."""
        now = self._clock()
        self._last = min(max(now, self._last + self._EVERY_SECONDS), now + self._LONGEST_SECONDS)
        return self._last - now


@dataclass
class _Allowance:
    level: float
    at: float
    refusals: Pacing
    running: int = 0


class Allowances:
    """Remaining allowance of each caller in this process. Used from the event loop alone."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.monotonic):
        self._rate, self._burst = settings.caller_rate, settings.caller_burst
        self._at_once = settings.caller_requests_at_once
        self._clock = clock
        self._callers: dict[int, _Allowance] = {}

    def enter(self, caller: int, scope: Scope) -> None:
        """Count a request in; RateLimited when the caller has too many at once or nothing left."""
        allowance = self._refilled(caller)
        if allowance.running >= self._at_once:
            raise RateLimited(
                f"at most {self._at_once} requests at once; wait for one of yours to end",
                headers={"Retry-After": "1"},
                limit=self._at_once,
            )
        if allowance.level < 0:
            wait = int(-allowance.level / self._rate) + 1
            raise RateLimited(
                f"you have used up your allowance of requests and bytes; wait {wait} seconds",
                headers={"Retry-After": str(wait)},
                limit=self._rate,
            )
        allowance.level -= _price(scope)
        allowance.running += 1

    def pause(self, caller: int) -> float:
        """Return the seconds that a refusal of this caller should wait."""
        return self._callers[caller].refusals.wait()

    def leave(self, caller: int, size: float) -> None:
        """Count a request out, with the bytes that it pays for."""
        allowance = self._refilled(caller)
        allowance.level -= size * _PER_BYTE
        allowance.running -= 1

    def _refilled(self, caller: int) -> _Allowance:
        now = self._clock()
        allowance = self._callers.setdefault(caller, _Allowance(self._burst, now, Pacing(self._clock)))
        allowance.level = min(self._burst, allowance.level + (now - allowance.at) * self._rate)
        allowance.at = now
        return allowance
