"""Dates and times between bounds, in the notation of ISO 8601 or in a declared order."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from core.columns.base import says
from core.columns.cells import Cells, Proposed
from core.columns.line import Ranged
from core.columns.notation import Notation
from core.columns.reading import LOCAL_DATE, MOST_CODES, Codes, Parsed, as_seconds, seconds_of

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
#: Orders of year, month and day in text.
Order = Literal["ymd", "dmy", "mdy"]
ORDERS: tuple[Order, ...] = get_args(Order)
_ISO = "in the notation of ISO 8601"
_MOMENT = re.compile(
    r"(\d{1,4})\s?[-./]\s?(\d{1,2})\s?[-./]\s?(\d{1,4})"
    r"(?P<time>[T ]\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
)


@dataclass(frozen=True, kw_only=True)
class Moments(Ranged):
    """A kind of dates or times; its bounds are in the notation of ISO 8601."""

    #: Seconds of a step.
    unit: ClassVar[float]
    #: The same for numpy.
    numpy_type: ClassVar[str]
    #: Whether texts have a time besides a date, and the times of proposed bounds.
    is_timed: ClassVar[bool]
    ends_of_day: ClassVar[tuple[str, str]]
    reads = frozenset({"date", "moment"})
    #: Dates are taken to be spread evenly between their bounds.
    typical_difference = 6**-0.5

    low: str = field(metadata=says(_ISO))
    high: str = field(metadata=says(_ISO))
    order: Order | None = field(
        default=None, metadata=says("order of year, month and day in the file. Default: `ymd`")
    )
    fill: str | None = field(default=None, metadata=says(_ISO))

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

    @property
    def words(self) -> str:
        return f"{self.title} from {self.low.replace('T', ' ')} to {self.high.replace('T', ' ')}"

    @cached_property
    def line(self) -> tuple[float, float]:
        return self._step(self.low), self._step(self.high)

    def _step(self, text: str) -> float:
        return math.floor(seconds_of(text) / self.unit)

    @property
    def codes(self) -> int:
        return int(min(self.line[1] - self.line[0] + 1, MOST_CODES))

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        seconds, missing, unreadable = as_seconds(values, self.order)
        return np.floor(seconds / self.unit), missing, unreadable

    def problem(self, text: str, notation: Notation) -> str:
        if LOCAL_DATE.match(text):
            return (
                f"is not a {self.kind} in the order in which this column is read; declare the column's order "
                "of day, month and year: ymd, dmy or mdy"
            )
        return f"is not a {self.kind}; correct it, or write it like 2030-12-31"

    def values(self, codes: Codes) -> npt.NDArray[Any]:
        places = self.on_line(codes.astype(np.float64))
        return np.rint(places).astype(np.int64).astype(self.numpy_type)

    @classmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        """Bounds that are whole years, and the order of day, month and year that fits all texts."""
        matches = [match for text in cells.distinct if (match := _MOMENT.fullmatch(text))]
        if len(matches) < len(cells.distinct) or any(match["time"] for match in matches) != cls.is_timed:
            return None
        for order in ORDERS:
            years = _years(matches, order)
            if years is not None:
                start, end = cls.ends_of_day
                bounds = {"low": f"{min(years):04d}-01-01{start}", "high": f"{max(years):04d}-12-31{end}"}
                # Only text has an order of day, month and year.
                return Proposed({**bounds, "order": order} if cells.type == "text" else bounds)
        return None


def _years(matches: Sequence[re.Match[str]], order: Order) -> list[int] | None:
    """The years of dates in this order; None if the numbers of one are not a date in it."""
    years = []
    for match in matches:
        parts = dict(zip(order, match.groups()[:3], strict=True))
        try:
            years.append(date(int(parts["y"]), int(parts["m"]), int(parts["d"])).year)
        except ValueError:
            return None
        if len(parts["y"]) != 4:
            return None
    return years
