"""Columns of values on a line: numbers, dates and times between bounds."""

import math
from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data.base import numbers
from core.data.tables.column import Column
from core.data.tables.reading import (
    MOST_CODES,
    ORDERS,
    Fault,
    Parsed,
    Reading,
    as_numbers,
    as_seconds,
    on_line,
    seconds_of,
)

_DAY = 86_400.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Ranged(Column):
    """A column of values on a line: stored as even steps from one bound to the other."""

    @property
    @abstractmethod
    def line(self) -> tuple[float, float]:
        """The bounds where steps are even: of the values, of their logarithms, in days or in seconds."""

    @abstractmethod
    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        """Values on the line."""

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        found, missing, unreadable = self._parse(values)
        missing |= gaps
        unreadable &= ~missing
        codes, faults = on_line(found, *self.line, self.codes)
        faults[unreadable], faults[missing] = Fault.UNREADABLE, Fault.MISSING
        return Reading(codes, faults, ~(missing | unreadable))

    def on_line(self, positions: Floats) -> Floats:
        """Positions between codes, as released, on the line."""
        low, high = self.line
        return low + np.clip(positions / (self.codes - 1), 0.0, 1.0) * (high - low)

    @abstractmethod
    def value(self, place: float) -> Any:
        """A place on the line as a value that the curator would write."""

    def place(self, value: Any) -> float:
        """The place of a released value on the line, inside the bounds."""
        (found,), _, _ = self._parse(np.array([value]))
        return float(np.clip(found, *self.line))


@dataclass(frozen=True, kw_only=True)
class Number(Ranged):
    """Numbers between bounds; `whole` for counts, `log` where ratios matter rather than differences.

    With `log` steps are even in log(value + offset), so `low + offset` must be above zero.
    """

    kind: ClassVar[str] = "number"
    low: float
    high: float
    whole: bool = False
    log: bool = False
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("low", "high", "offset"):
            (value,) = numbers([getattr(self, name)], 1, name)
            object.__setattr__(self, name, value)
        if not isinstance(self.whole, bool) or not isinstance(self.log, bool):
            raise self._wrong("whole and log are true or false")
        if not self.low < self.high:
            raise self._wrong("low must be below high")
        if self.offset and not self.log:
            raise self._wrong("an offset is only possible on a log scale")
        if self.log and not self.low + self.offset > 0:
            raise self._wrong("on a log scale low + offset must be above zero: give an offset for zeros")
        if self.whole and not (self.low.is_integer() and self.high.is_integer()):
            raise self._wrong("bounds of whole numbers must be whole")
        super().__post_init__()

    @property
    def codes(self) -> int:
        if self.whole and not self.log:
            return int(min(self.high - self.low + 1, MOST_CODES))
        return MOST_CODES

    @cached_property
    def line(self) -> tuple[float, float]:
        if self.log:
            return math.log(self.low + self.offset), math.log(self.high + self.offset)
        return self.low, self.high

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        found, missing, unreadable = as_numbers(values)
        if self.whole:
            unreadable |= found != np.rint(found)
        if self.log:
            # Below the lower bound there may be no logarithm; anything there is moved to the bound.
            found = np.log(np.maximum(found + self.offset, (self.low + self.offset) / 2))
        return found, missing, unreadable

    def value(self, place: float) -> float:
        return math.exp(place) - self.offset if self.log else place


@dataclass(frozen=True, kw_only=True)
class _Moments(Ranged):
    """Dates or times between bounds in the notation of ISO 8601."""

    unit: ClassVar[float]
    low: str
    high: str
    #: Of year, month and day in text; by default as in ISO 8601.
    order: str | None = None

    def __post_init__(self) -> None:
        if self.order not in (None, *ORDERS):
            raise self._wrong(f"order must be one of {', '.join(ORDERS)}")
        for name in ("low", "high"):
            given = getattr(self, name)
            try:
                text = given if isinstance(given, str) else given.isoformat()
                object.__setattr__(self, name, text)
                seconds_of(text)
            except (AttributeError, TypeError, ValueError):
                raise self._wrong(f"{name} must be a {self.kind} such as 2030-12-31") from None
        if not self.line[0] < self.line[1]:
            raise self._wrong("low must be before high")
        super().__post_init__()

    @cached_property
    def line(self) -> tuple[float, float]:
        return self._place(seconds_of(self.low)), self._place(seconds_of(self.high))

    @property
    def codes(self) -> int:
        return int(min(self.line[1] - self.line[0] + 1, MOST_CODES))

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        seconds, missing, unreadable = as_seconds(values, self.order)
        return np.floor(seconds / self.unit), missing, unreadable

    def _place(self, seconds: float) -> float:
        return math.floor(seconds / self.unit)


@dataclass(frozen=True, kw_only=True)
class Date(_Moments):
    """Dates between bounds."""

    kind: ClassVar[str] = "date"
    unit: ClassVar[float] = _DAY

    def value(self, place: float) -> str:
        return (_EPOCH + timedelta(days=round(place))).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class DateTime(_Moments):
    """Moments between bounds, to the second; without a time zone they are in UTC."""

    kind: ClassVar[str] = "datetime"
    unit: ClassVar[float] = 1.0

    def value(self, place: float) -> str:
        return (_EPOCH + timedelta(seconds=round(place))).strftime("%Y-%m-%dT%H:%M:%SZ")
