"""Admission of requests: callers are known before a body is read, and each gets a share of the service.

A caller has an allowance that refills with time. Every request uses some of it: a little for itself, more for
planning, and some for the bytes that come in and go out, refused or not; routes declare how much
(`route_limits`). Nothing else counts: an allowance must not tell how long jobs ran or how busy others are.

Refusals are paced: even a refusal costs a look at the database, so those beyond a few a second wait.
"""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from starlette.types import Scope

from service.errors import RateLimited
from service.http.pacing import Pacing
from service.operations.settings import Settings

#: Entries of a list that take as long as a request.
_ENTRIES = 5
#: What a search in a list uses.
_SEARCH = 50.0
_LIMIT = re.compile(rb"(?:^|&)limit=(\d{1,4})(?:&|$)")
_SEARCHES = re.compile(rb"(?:^|&)search=[^&]")


class Caller(Protocol):
    """Somebody who is known by number and name."""

    @property
    def id(self) -> int: ...

    @property
    def name(self) -> str: ...


def price_of_list(scope: Scope) -> float:
    """Return what the entries that a request asks for use of an allowance, and a search for them."""
    query = scope.get("query_string", b"")
    asked = _LIMIT.search(query)
    return (int(asked[1]) / _ENTRIES if asked else 0.0) + (_SEARCH if _SEARCHES.search(query) else 0.0)


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

    def enter(self, caller: int, price: float) -> None:
        """Count a request in and use its price; RateLimited when too many run at once or nothing is left."""
        allowance = self._refilled(caller)
        if allowance.running >= self._at_once:
            raise RateLimited(
                f"at most {self._at_once} requests at once",
                next_step="Wait for one of yours to end.",
                headers={"Retry-After": "1"},
                limit=self._at_once,
            )
        if allowance.level < 0:
            wait = int(-allowance.level / self._rate) + 1
            raise RateLimited(
                "you have used up your allowance of requests and bytes",
                next_step=f"Wait {wait} seconds, then try again.",
                headers={"Retry-After": str(wait)},
                limit=self._rate,
            )
        allowance.level -= price
        allowance.running += 1

    def use(self, caller: int, price: float) -> None:
        """Use some of the allowance of a caller whose request runs."""
        self._refilled(caller).level -= price

    def pause(self, caller: int) -> float:
        """Return the seconds that a refusal of this caller should wait."""
        return self._callers[caller].refusals.wait()

    def leave(self, caller: int, price: float) -> None:
        """Count a request out and use the price of its bytes."""
        self.use(caller, price)
        self._callers[caller].running -= 1

    def _refilled(self, caller: int) -> _Allowance:
        now = self._clock()
        allowance = self._callers.setdefault(caller, _Allowance(self._burst, now, Pacing(clock=self._clock)))
        allowance.level = min(self._burst, allowance.level + (now - allowance.at) * self._rate)
        allowance.at = now
        return allowance
