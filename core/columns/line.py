"""Columns of values on a line: stored as even steps from one end to the other."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.axes import Axis, Line
from core.columns.base import Column, Cuts, StoredColumn
from core.columns.reading import MISSING_CODE, Codes, Fault, Parsed, Reading, on_line

#: Bounds that are narrowed must keep at least this many of the steps in which the column is stored.
_LEAST_STEPS = 2


@dataclass(frozen=True, kw_only=True)
class OnLine(StoredColumn):
    """A kind whose codes are even steps of a line."""

    @property
    @abstractmethod
    def line(self) -> tuple[float, float]:
        """The ends where steps are even: of the values, of their logarithms, in days or in seconds."""

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

    @property
    def width(self) -> int:
        return 1

    @property
    def longest(self) -> float:
        return 1 / 4

    def axis(self, place: int, reach: float, codes: tuple[int, int]) -> Axis:
        return Line(self, place, max(1, math.floor(reach / 2)), *codes)


@dataclass(frozen=True, kw_only=True)
class Ranged(OnLine):
    """A kind whose values have an order and a lower and an upper bound, `low` and `high`."""

    has_bounds = True

    def spread(self, deviation: float) -> float:
        """A standard deviation on the line as people read it."""
        return deviation

    def place(self, value: Any) -> float:
        """The place of a released value on the line, inside the bounds."""
        (found,), _, _ = self._parse(np.array([value]))
        return float(np.clip(found, *self.line))

    def cut(self, most: int) -> Cuts:
        bins = min(most, self.codes)
        edges = [-(-number * self.codes // bins) for number in range(bins + 1)]
        codes_at = np.array(edges, dtype=np.float64)
        lines = (codes_at, codes_at - 0.5, (codes_at[:-1] + codes_at[1:] - 1) / 2)
        return Cuts(tuple(edges), *(tuple(self.on_line(positions).tolist()) for positions in lines))

    def moments(self, means: Sequence[float | None], spreads: Sequence[float | None]) -> dict[str, list[Any]]:
        return {
            "means": [
                None if mean is None else self.value(float(np.clip(mean, *self.line))) for mean in means
            ],
            "spreads": [None if spread is None else self.spread(spread) for spread in spreads],
        }

    def entry(self, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
        return {"measure": measure, "value": self.value(numbers[0]), "noise": noise}

    def bounds_around(self, low: float, high: float) -> tuple[Any, Any] | None:
        """Bounds of all between two places, inside the column's own; None where nothing is between them."""
        declared: Any = self
        first, last = (
            self._outward(place, outward) if self.line[0] < place < self.line[1] else bound
            for place, bound, outward in ((low, declared.low, math.floor), (high, declared.high, math.ceil))
        )
        return (first, last) if low < high and first != last else None

    def _outward(self, place: float, outward: Callable[[float], int]) -> Any:
        """A place on the line as a bound, rounded outwards where values are whole."""
        return self.value(place)

    def narrowed(self, low: Any, high: Any) -> Self:
        """The column with narrower bounds, for rows that are stored in the present ones."""
        given: Any = self  # kinds have `low` and `high` of different types
        # Gaps were filled when the rows were stored.
        filled: dict[str, Any] = {} if self.fill is None else {"missing": "refuse", "fill": None}
        made: Self = replace(given, low=low, high=high, **filled)
        width, stored = (each.line[1] - each.line[0] for each in (made, self))
        if width * (self.codes - 1) < _LEAST_STEPS * stored:
            raise self._wrong(
                f"these bounds are narrower than {_LEAST_STEPS} of the steps in which the column is stored"
            )
        if made.line[0] < self.line[0] or made.line[1] > self.line[1]:
            raise self._wrong(
                f"bounds must lie inside the declared ones, from {given.low} to {given.high}: what was "
                "clipped when the rows were stored cannot be brought back"
            )
        return made

    def recoded(self, narrower: Self) -> Codes:
        """The code in narrower bounds of each of the 65,536 codes that a row can hold."""
        codes = np.arange(1 << 16, dtype=np.float64)
        found, _ = on_line(self.on_line(codes), *narrower.line, narrower.codes)
        if self.missing == "keep":
            found[MISSING_CODE] = MISSING_CODE
        return found


def ranged(columns: Iterable[Column]) -> tuple[Ranged, ...]:
    """Those of some columns that have bounds of their own."""
    return tuple(column for column in columns if isinstance(column, Ranged))
