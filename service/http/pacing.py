"""Pacing: requests that nobody pays for wait for their turn, so that they take a share of the service."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from ipaddress import IPv6Address, ip_address

from starlette.types import Scope

#: Addresses that are remembered; the one that was silent the longest is forgotten first.
_MOST_ADDRESSES = 10_000
#: All addresses together have the pace of this number of addresses.
_ADDRESSES_AT_ONCE = 4
#: Bits of an IPv6 address that one site has to itself.
_HOST_BITS = 64


class Pacing:
    """Spreads events over time: each waits for its turn, but no longer than some seconds."""

    def __init__(
        self,
        per_second: float = 20.0,
        *,
        saved: float = 0.0,
        longest_seconds: float = 5.0,
        clock: Callable[[], float] = time.monotonic,
    ):
        """`saved`: seconds of silence whose events may come at once."""
        self._every, self._saved, self._longest = 1 / per_second, saved, longest_seconds
        self._clock = clock
        self._last = -math.inf

    def wait(self) -> float:
        """Return the seconds after which the next event may happen."""
        now = self._clock()
        due = max(now - self._saved, self._last + self._every)
        self._last = min(due, now + self._longest)
        return max(0.0, self._last - now)


class PacingByAddress:
    """A pace for each address, and one for all of them together."""

    def __init__(self, per_second: float, *, saved: float = 0.0, longest_seconds: float = 5.0):
        self._make = partial(Pacing, saved=saved, longest_seconds=longest_seconds)
        self._rate = per_second
        self._all = self._make(per_second * _ADDRESSES_AT_ONCE)
        self._addresses: OrderedDict[str, Pacing] = OrderedDict()

    def wait(self, scope: Scope) -> float:
        """Return the seconds after which the next request from an address may be answered."""
        address = _site(scope)
        pacing = self._addresses.pop(address, None) or self._make(self._rate)
        self._addresses[address] = pacing
        if len(self._addresses) > _MOST_ADDRESSES:
            self._addresses.popitem(last=False)
        return max(pacing.wait(), self._all.wait())


def _site(scope: Scope) -> str:
    """Return the address of a caller; of IPv6 the part that one site has to itself."""
    host = (scope.get("client") or ("",))[0]
    if ":" not in host:
        return str(host)
    try:
        return str(IPv6Address(int(ip_address(host)) >> _HOST_BITS << _HOST_BITS))
    except ValueError:
        return str(host)
