"""The release ticks: what happened to a running job is shown only 1, 2, 4, 8, ... seconds after its claim.

A watcher then learns the order of magnitude of the run time at most, which may depend on rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

__all__ = ["Progress", "last_tick", "next_tick", "seen_progress", "tick_number"]

_SECOND = timedelta(seconds=1)


def tick_number(elapsed: timedelta) -> int:
    """The number j of the first tick, at 2**j seconds, that is not before `elapsed`."""
    number = 0
    while _SECOND * 2**number < elapsed:
        number += 1
    return number


def next_tick(elapsed: timedelta) -> timedelta:
    """The first tick that is not before `elapsed`."""
    return _SECOND * int(2 ** tick_number(elapsed))


def last_tick(elapsed: timedelta) -> timedelta:
    """The last tick that is not after `elapsed`; zero before the first."""
    if elapsed < _SECOND:
        return timedelta(0)
    upper = next_tick(elapsed)
    return upper if upper == elapsed else upper / 2


class Progress:
    """The newest event before each tick, and the newest of all: a few numbers, however long the job."""

    def __init__(self) -> None:
        self._ticks: dict[str, list[Any]] = {}
        self._latest: list[Any] | None = None

    def note(self, elapsed: timedelta, step: str, measured: int, planned: int) -> None:
        """A measurement was made `elapsed` after the claim."""
        self._latest = [step, measured, planned]
        self._ticks[str(tick_number(elapsed))] = self._latest

    def to_json(self) -> dict[str, Any]:
        """What the job's row keeps."""
        return {"ticks": dict(self._ticks), "latest": self._latest}


def seen_progress(kept: Mapping[str, Any], elapsed: timedelta | None) -> list[Any] | None:
    """The newest event that may be seen `elapsed` after the claim; all of them when None."""
    if elapsed is None:
        latest: list[Any] | None = kept.get("latest")
        return latest
    horizon = last_tick(elapsed)
    ticks = kept.get("ticks", {})
    past = [int(number) for number in ticks if horizon and _SECOND * 2 ** int(number) <= horizon]
    seen: list[Any] | None = ticks[str(max(past))] if past else None
    return seen
