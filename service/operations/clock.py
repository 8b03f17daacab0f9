"""The clock of the service, which tests replace by one that they move themselves."""

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

#: A stored moment that is later than now by more than this is wrong, whatever clock it was taken from.
CLOCKS_DIFFER = timedelta(hours=1)


class Clock(Protocol):
    """A source of the current time in UTC, and of durations."""

    def now(self) -> datetime: ...

    def monotonic(self) -> float:
        """Return seconds since some moment, which no step of the clock changes."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)

    def monotonic(self) -> float:
        return time.monotonic()


def rfc3339(moment: datetime) -> str:
    """Format a moment for the wire: UTC, to the millisecond."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
