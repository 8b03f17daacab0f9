"""Numbers between bounds, on a linear or a logarithmic scale."""

import math
import re
import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.base import says
from core.columns.cells import Cells, Proposed
from core.columns.line import Ranged
from core.columns.notation import Notation
from core.columns.reading import LOCAL_DATE, MOST_CODES, Codes, Parsed, as_numbers, is_yes_or_no

#: The largest logarithm of a factor that is released.
_LARGEST_LOG = 700.0
_LARGEST_BOUND = 1e100
#: Digits that would lose their leading zero as a number, and whole numbers too long to be quantities.
_CODE = re.compile(r"0\d+")
_LONG_CODE = re.compile(r"\d{9,}")
#: Positive numbers whose largest is this many times the smallest are skewed ...
_WIDE = 100
#: ... if half of them lie in this first part of their range: their ratios matter, not their differences.
_FIRST_PART = 0.1
#: Bounds that follow from what a column means, by words in its name.
_TEMPLATES: tuple[tuple[str, int, int], ...] = (
    (r"\b(age|alter)\b", 0, 120),
    (r"\bbmi\b", 10, 80),
    (r"percent|\bpct\b|%", 0, 100),
    (r"\bhour\b", 0, 24),
    (r"\blat(itude)?\b", -90, 90),
    (r"\b(lon|lng|longitude)\b", -180, 180),
)


@dataclass(frozen=True, kw_only=True)
class Number(Ranged):
    """Numbers between bounds; values outside are moved to them.

    `whole` is for counts, `log` where ratios matter rather than differences: steps are then even in
    log(value + offset), so `low + offset` must be above zero.
    """

    kind = "number"
    title = "number"
    example: ClassVar[Mapping[str, Any]] = {"name": "age", "low": 0, "high": 110, "whole": True}
    is_numeric = True
    reads = frozenset({"number"})
    proposed_for = frozenset({"number", "text"})

    low: float
    high: float
    whole: bool = field(default=False, metadata=says("counts: other numbers are unreadable"))
    log: bool = field(
        default=False, metadata=says("ratios matter, not differences; centres: geometric means")
    )
    offset: float = field(default=0.0, metadata=says("with `log`, where zeros occur: added to each value"))
    fill: float | None = None

    def __post_init__(self) -> None:
        for name in ("low", "high", "offset"):
            object.__setattr__(self, name, self._number(name))
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

    def _number(self, name: str) -> float:
        value = getattr(self, name)
        if not isinstance(value, Real):
            raise self._wrong("low and high must be numbers")
        number = float(value)
        if not abs(number) <= _LARGEST_BOUND:
            raise self._wrong(f"{name} must be finite and at most {_LARGEST_BOUND:g}")
        return number

    @property
    def words(self) -> str:
        title = "whole number" if self.whole else self.title
        scale = ", on a log scale" if self.log else ""
        added = f" after adding {self.offset:g}" if self.offset else ""
        return f"{title} from {self.low:.7g} to {self.high:.7g}{scale}{added}"

    @property
    def codes(self) -> int:
        if self.whole and not self.log:
            return int(min(self.high - self.low + 1, MOST_CODES))
        return MOST_CODES

    @property
    def scale(self) -> str:
        return "log" if self.log else "number"

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

    def problem(self, text: str, notation: Notation) -> str:
        if is_yes_or_no(text):
            return "is not a number; declare the column as yes or no (boolean)"
        if notation.number(text) is not None and self.whole:
            return "is not a whole number; correct it, or do not restrict the column to whole numbers"
        if LOCAL_DATE.match(text):
            return "is not a number; make the column a date"
        if advice := notation.advice(text):
            return f"is not a number as the file is read; {advice}"
        return "is not a number; correct it, or make the column a category"

    def value(self, place: float) -> float:
        return math.exp(place) - self.offset if self.log else place

    def edge(self, place: float) -> float:
        value = self.value(place)
        return float(round(value)) if self.whole else value

    def spread(self, deviation: float) -> float:
        """On a log scale, a factor up or down."""
        return math.exp(min(deviation, _LARGEST_LOG)) if self.log else deviation

    def _outward(self, place: float, outward: Callable[[float], int]) -> float:
        value = self.value(place)
        return float(outward(value)) if self.whole else value

    def entry(self, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
        if not self.log:
            return super().entry(numbers, noise, measure)
        factor = None if noise is None else self.spread(noise)
        return {"measure": f"geometric {measure}", "value": self.value(numbers[0]), "noise_factor": factor}

    def values(self, codes: Codes) -> npt.NDArray[Any]:
        places = self.on_line(codes.astype(np.float64))
        values: Floats = np.clip(np.exp(places) - self.offset, self.low, self.high) if self.log else places
        return np.rint(values).astype(np.int64) if self.whole else values

    @classmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        if any(map(_CODE.fullmatch, cells.distinct)) or all(map(_LONG_CODE.fullmatch, cells.distinct)):
            return None
        values = [
            value
            for text in cells.distinct
            if (value := cells.notation.number(text)) is not None and math.isfinite(value)
        ]
        if len(values) < len(cells.distinct):
            return None
        known = frozenset({"whole"} if cells.whole else ())
        whole = all(value.is_integer() for value in values)
        for pattern, low, high in _TEMPLATES:
            if re.search(pattern, cells.words, re.IGNORECASE):
                return Proposed({"low": low, "high": high, "whole": whole}, known | {"low", "high"})
        least, most = _rounded(min(values), ROUND_FLOOR), _rounded(max(values), ROUND_CEILING)
        most = most if most > least else least + max(1, abs(least))
        log = {"log": True} if _are_skewed(values) else {}
        return Proposed({"low": least, "high": most, "whole": whole, **log}, known)


def _are_skewed(values: list[float]) -> bool:
    least, most = min(values), max(values)
    return 0 < _WIDE * least <= most and statistics.median(values) <= least + _FIRST_PART * (most - least)


def _rounded(value: float, direction: str) -> float | int:
    """Round a bound outward to two significant digits, which hide the extreme that it comes from."""
    bound = float(Context(prec=2, rounding=direction).create_decimal(repr(value)))
    return int(bound) if bound.is_integer() else bound
