"""Time as the service sees it, behind one seam, so that tests can move the clock by hand."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol

__all__ = ["Clock", "SystemClock", "rfc3339"]


class Clock(Protocol):
    """Whatever can tell the time in UTC."""

    def now(self) -> datetime: ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)


def rfc3339(moment: datetime) -> str:
    """The wire form of a moment: UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
