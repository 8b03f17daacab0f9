"""The geometry of a job on a table: chosen columns and their weights as rows of integers in one ball.

Values at both ends of a column are `weight` apart, and so are two records of different levels of a category.
The radius follows from that and is less than half the box's diagonal: a record has one level of a category.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.axes import Axis, Line
from core.columns.base import StoredColumn, read_weight
from core.columns.reading import Codes
from core.data.dense import COARSE_STEPS
from core.data.tables.table import Table
from core.errors import InvalidRequest
from core.kernels.rows import UNITS

#: Scale columns by their declared bounds, or by ranges that a part of the budget measures.
SCALINGS = ("declared", "private")
#: A column rules others if its typical difference counts this many times as much as theirs.
_OUTWEIGHS = 2.0
#: Columns that are named where some rule the others.
_NAMED = 4
#: The widest geometry: beyond it the rows of a job would fill memory.
MOST_COORDINATES = 1 << 13


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Some columns of a table as one ball of radius UNITS, for algorithms that read dense rows."""

    kind: ClassVar[str] = "table"
    table: Table
    chosen: tuple[str, ...]
    weights: tuple[float, ...]
    scaling: str = "declared"
    #: First and last code of the range that each column is clipped to, where these were released.
    ranges: tuple[tuple[int, int], ...] | None = None

    @classmethod
    def of(
        cls,
        table: Table,
        columns: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None,
        scaling: str = "declared",
    ) -> Self:
        """The geometry of a request; by default all columns to cluster on, with their own weights."""
        own = {column.name: column.weight for column in table.declared if column.role == "cluster"}
        chosen = tuple(own) if columns is None else tuple(columns)
        _require_known(chosen, own, "columns")
        _require_known(tuple(weights or {}), dict.fromkeys(chosen), "weights")
        if not chosen or len(set(chosen)) != len(chosen):
            raise InvalidRequest("columns must name at least one column, each once", parameter="columns")
        if scaling not in SCALINGS:
            raise InvalidRequest(f"scaling must be one of {', '.join(SCALINGS)}", parameter="scaling")
        ordered = tuple(name for name in table.columns if name in chosen)
        given = {**own, **(weights or {})}
        made = cls(
            table=table,
            chosen=ordered,
            weights=tuple(read_weight(given[name], name) for name in ordered),
            scaling=scaling,
        )
        if made.dimension > MOST_COORDINATES:
            raise InvalidRequest(
                f"these columns have {made.dimension} levels and numbers together; at most "
                f"{MOST_COORDINATES} can be clustered on at once: choose fewer columns",
                parameter="columns",
            )
        return made

    @classmethod
    def without_gaps(cls, table: Table) -> Self:
        """All stored columns that have a value in every row, those kept for questions included, all alike."""
        chosen = tuple(column.name for column in table.stored if column.missing != "keep")
        return cls(table=table, chosen=chosen, weights=(1.0,) * len(chosen))

    @classmethod
    def from_json(cls, table: Table, data: Mapping[str, Any]) -> Self:
        """The geometry that `choices` described."""
        return cls.of(table, data["columns"], data["weights"], data["scaling"])

    @property
    def choices(self) -> dict[str, Any]:
        """The columns, weights and scaling of a request, in JSON."""
        weights = dict(zip(self.chosen, self.weights, strict=True))
        return {"columns": list(self.chosen), "weights": weights, "scaling": self.scaling}

    @property
    def size(self) -> int:
        return self.table.size

    @property
    def rows_per_person(self) -> int:
        return self.table.rows_per_person

    @property
    def fingerprint(self) -> str:
        """That of the table, by which sources and views refer to it."""
        return self.table.fingerprint

    @cached_property
    def axes(self) -> tuple[Axis, ...]:
        """The coordinates of each column, scaled so that no record is longer than UNITS."""
        stored = {column.name: (place, column) for place, column in enumerate(self.table.stored)}
        places = [stored[name] for name in self.chosen]
        radius = math.sqrt(
            sum(w * w * column.longest for w, (_, column) in zip(self.weights, places, strict=True))
        )
        for reach in range(UNITS, 0, -1):  # rounding may lengthen a record by a unit or two
            axes = tuple(
                self._axis(number, *place, self.weights[number] * reach / radius)
                for number, place in enumerate(places)
            )
            if sum(axis.longest for axis in axes) <= UNITS**2:
                return axes
        raise AssertionError("rows of zeros fit any ball")

    def _axis(self, number: int, place: int, column: StoredColumn, weight: float) -> Axis:
        """The axis of a column whose ends, or levels, are `weight` units apart."""
        codes = (0, column.codes - 1) if self.ranges is None else self.ranges[number]
        return column.axis(place, weight, codes)

    @cached_property
    def _places(self) -> list[slice]:
        ends = np.cumsum([0, *(len(axis.names) for axis in self.axes)])
        return [slice(int(a), int(b)) for a, b in pairwise(ends)]

    @property
    def parts(self) -> list[tuple[Axis, slice]]:
        """Each axis with its coordinates."""
        return list(zip(self.axes, self._places, strict=True))

    @property
    def lines(self) -> list[Line]:
        """The axes of columns with bounds: numbers, dates and times."""
        return [axis for axis in self.axes if isinstance(axis, Line) and axis.column.has_bounds]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """A name for each coordinate: of the column, or of column and level."""
        return tuple(name for axis in self.axes for name in axis.names)

    @cached_property
    def dimension(self) -> int:
        """Number of coordinates."""
        return sum(column.width for column in self.table.stored if column.name in self.chosen)

    @property
    def warnings(self) -> tuple[str, ...]:
        heavy = self._outweighing
        coarse = [axis.column.name for axis in self.axes if axis.is_coarse(COARSE_STEPS)]
        if not coarse:
            return heavy
        return (
            *heavy,
            f"columns {', '.join(coarse[:5])} keep fewer than {COARSE_STEPS} distinct values next to the "
            "others: give them more weight, or choose fewer columns",
        )

    @property
    def _outweighing(self) -> tuple[str, ...]:
        """Which columns decide where clusters lie, by their kinds and weights; nothing where none rules."""
        pairs = list(zip((axis.column for axis in self.axes), self.weights, strict=True))
        counts = {column.name: weight * column.typical_difference for column, weight in pairs}
        numbers = sorted((counts[line.column.name], line.column.name) for line in self.lines)
        if not numbers:
            return ()
        middle, typical = numbers[len(numbers) // 2]
        heavy = sorted((-each, name) for name, each in counts.items() if each >= _OUTWEIGHS * middle)
        if not heavy:
            return ()
        named = ", ".join(name for _, name in heavy[:_NAMED]) + (" and more" if len(heavy) > _NAMED else "")
        verb = "outweigh" if len(heavy) > 1 else "outweighs"
        least, name = heavy[0]
        return (
            f"{named} {verb} {typical} and will decide the clusters: a typical difference in {name} counts "
            f"{-least / middle:.0f} times as much as one in {typical}. If that is not what you want, choose "
            "fair weights, or weights of your own",
        )

    def rows(self, codes: npt.NDArray[Any]) -> npt.NDArray[np.int16]:
        """Stored rows as rows of coordinates, whose norms are at most UNITS."""
        found = np.empty((len(codes), self.dimension), dtype=np.int16)
        for axis, part in self.parts:
            found[:, part] = axis.coordinates(codes[:, axis.place])
        return found

    @cached_property
    def bounds_units(self) -> tuple[Floats, Floats]:
        """The box around all records."""
        low, high = zip(*(axis.bounds for axis in self.axes), strict=True)
        return np.concatenate(low), np.concatenate(high)

    @property
    def inner(self) -> float:
        """Radius of the largest ball about the origin among the means of records."""
        return min(axis.inner for axis in self.axes)

    def clip(self, points: Floats) -> Floats:
        """Released points moved to the nearest means that records can have."""
        return np.concatenate([axis.clip(points[:, part]) for axis, part in self.parts], axis=1)

    def scatter(self, count: int, draw: np.random.Generator) -> Floats:
        """Random points: records that nobody has."""
        return np.concatenate([axis.scatter(count, draw) for axis in self.axes], axis=1)

    def decode(self, units: npt.ArrayLike) -> Floats:
        """Released points in the columns' own numbers: see `Axis.decode`."""
        points = np.asarray(units, dtype=np.float64)
        return np.concatenate([axis.decode(points[:, part]) for axis, part in self.parts], axis=1)

    def decode_alone(self, units: Floats) -> Floats:
        """Ends of intervals in the columns' own numbers: see `Axis.decode_alone`."""
        return np.concatenate([axis.decode_alone(units[:, part]) for axis, part in self.parts], axis=1)

    def codes(self, points: Floats, draw: np.random.Generator) -> Codes:
        """Made-up records around released points: a code for each chosen column."""
        return np.stack([axis.codes(points[:, part], draw) for axis, part in self.parts], axis=1)

    def coordinates(self, codes: Codes) -> Floats:
        """Coordinates of records that have a code for each chosen column."""
        parts = [axis.coordinates(codes[:, number]) for number, axis in enumerate(self.axes)]
        return np.concatenate(parts, axis=1).astype(np.float64)

    @property
    def unit_length(self) -> float:
        """Length of one unit where ends of a column, or two of its levels, are `weight` apart."""
        axis, weight = max(zip(self.axes, self.weights, strict=True), key=lambda pair: pair[1])
        return weight / axis.width

    def encode_points(self, points: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Points that `decode` returned in whole units, rounded to the nearest."""
        decoded = np.asarray(points, dtype=np.float64)
        units = np.concatenate([axis.encode(decoded[:, part]) for axis, part in self.parts], axis=1)
        rounded: npt.NDArray[np.int64] = np.rint(units).astype(np.int64)
        return rounded

    def unit_lengths(self) -> Floats:
        """Size of one unit after `decode`, per coordinate: for error bars."""
        return np.repeat([axis.unit for axis in self.axes], [len(axis.names) for axis in self.axes])

    def clipped(self, ranges: Mapping[str, tuple[int, int]]) -> Self:
        """The same columns, some clipped to released ranges of their codes and scaled by these."""
        whole = {axis.column.name: (0, axis.column.codes - 1) for axis in self.axes}
        return replace(self, ranges=tuple(ranges.get(name, whole[name]) for name in self.chosen))

    def to_json(self) -> dict[str, Any]:
        return {**self.table.to_json(), "clustered": self.choices}


def fair_weights(stored: object, columns: Sequence[str] | None) -> dict[str, float]:
    """A weight for each column to cluster on, by its kind, such that none rules because of it."""
    known = stored.declared if isinstance(stored, Table) else ()
    usable = [
        column for column in known if column.role == "cluster" and (not columns or column.name in columns)
    ]
    if not usable:
        raise InvalidRequest("weights can be chosen on tables only", parameter="weights")
    return {column.name: column.fair_weight() for column in usable}


def _require_known(names: Sequence[str], known: Mapping[str, Any], parameter: str) -> None:
    unknown = [str(name) for name in names if name not in known]
    if unknown:
        raise InvalidRequest(
            f"{parameter} names {', '.join(unknown[:5])}; the columns to choose from are: {', '.join(known)}",
            parameter=parameter,
        )
