"""Rows of numbers inside a public box or ball."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data.base import LARGEST_DIMENSION, PublicFacts, numbers, positive, whole
from core.errors import InvalidData, InvalidDomain
from core.kernels.clipping import WEIGHT_ONE, clip_weights, into_ball
from core.kernels.rows import UNITS
from core.kernels.threads import share_blocks

#: A column whose whole range is fewer encoded steps than this is coarse enough to warn about.
COARSE_STEPS = 256
_BLOCK_VALUES = 1 << 19
#: Narrow rows are treated several at a time, as rows about this wide.
_WIDE = 1 << 10


@dataclass(frozen=True, kw_only=True)
class Dense(PublicFacts):
    """Rows of numbers inside a box or a ball; make one with `Dense.box` or `Dense.ball`."""

    kind: ClassVar[str] = "dense"
    columns: tuple[str, ...]
    low: tuple[float, ...] | None = None
    high: tuple[float, ...] | None = None
    centre: tuple[float, ...] | None = None
    radius: float | None = None
    scaling: str = "unit"

    @classmethod
    def box(
        cls,
        low: float | Sequence[float] | Floats | None,
        high: float | Sequence[float] | Floats | None,
        columns: Sequence[str] | None = None,
        *,
        dimension: int | None = None,
        scaling: str = "unit",
        size: int,
        rows_per_person: int = 1,
    ) -> Self:
        """Every column between its `low` and its `high`."""
        if low is None or high is None:
            raise InvalidDomain(
                "bounds are missing: give a low and a high for every column, without looking at the rows",
                parameter="bounds",
            )
        dimension = _dimension(dimension, columns, low, high)
        lows, highs = numbers(low, dimension, "low"), numbers(high, dimension, "high")
        if any(not a < b for a, b in zip(lows, highs, strict=True)):
            raise InvalidDomain("low must be below high in every column", parameter="bounds")
        if scaling not in ("unit", "none"):
            raise InvalidDomain("scaling must be 'unit' or 'none'", parameter="scaling")
        return cls(
            columns=_names(columns, dimension),
            low=lows,
            high=highs,
            scaling=scaling,
            size=size,
            rows_per_person=rows_per_person,
        )

    @classmethod
    def ball(
        cls,
        radius: float | None,
        centre: float | Sequence[float] | Floats | None = None,
        *,
        dimension: int | None = None,
        columns: Sequence[str] | None = None,
        size: int,
        rows_per_person: int = 1,
    ) -> Self:
        """Every row within `radius` of `centre` (default: the origin)."""
        if radius is None:
            raise InvalidDomain(
                "bounds are missing: give a radius that is known without looking at the rows",
                parameter="bounds",
            )
        dimension = _dimension(dimension, columns, centre, centre)
        return cls(
            columns=_names(columns, dimension),
            centre=numbers(0.0 if centre is None else centre, dimension, "centre"),
            radius=positive(radius, "radius"),
            scaling="none",
            size=size,
            rows_per_person=rows_per_person,
        )

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @cached_property
    def _offset(self) -> Floats:
        if self.low is not None and self.high is not None:
            return np.array(self.low) / 2 + np.array(self.high) / 2
        return np.array(self.centre)

    @cached_property
    def _stretch(self) -> Floats:
        """Data units per encoded unit, per column."""
        if self.low is None or self.high is None:
            assert self.radius is not None
            return np.full(self.dimension, self.radius / UNITS)
        half = np.array(self.high) / 2 - np.array(self.low) / 2
        if self.scaling == "unit":
            return half * (math.sqrt(self.dimension) / UNITS)
        largest = float(half.max())
        return np.full(self.dimension, largest * float(np.linalg.norm(half / largest)) / UNITS)

    @cached_property
    def bounds_units(self) -> tuple[Floats, Floats] | None:
        """The box in encoded units; None for a ball."""
        if self.low is None or self.high is None:
            return None
        low, high = (np.array([self.low, self.high]) - self._offset) / self._stretch
        return low, high

    def like(self, other: "Dense") -> "Dense":
        """These facts, with the number of records and of rows per person of another dataset."""
        return replace(self, size=other.size, rows_per_person=other.rows_per_person)

    @property
    def warnings(self) -> tuple[str, ...]:
        if self.bounds_units is None:
            return ()
        steps = self.bounds_units[1] - self.bounds_units[0]
        coarse = [name for name, n in zip(self.columns, steps, strict=True) if n < COARSE_STEPS]
        if not coarse:
            return ()
        more = "" if len(coarse) <= 5 else f" and {len(coarse) - 5} more"
        return (
            f"columns {', '.join(coarse[:5])}{more} keep fewer than {COARSE_STEPS} distinct values next to "
            "the widest column: use scaling='unit', or narrower bounds for the widest columns",
        )

    def encode(self, rows: npt.ArrayLike) -> npt.NDArray[np.int16]:
        """Rows clipped to the bounds, as integers of norm at most UNITS, truncated towards zero."""
        array = np.asarray(rows)
        if array.ndim != 2 or array.shape[1] != self.dimension:
            raise InvalidData(f"rows must be a two-dimensional array with {self.dimension} columns")
        if array.dtype.kind not in "fiub":
            raise InvalidData("rows must be real numbers")
        out = np.empty(array.shape, dtype=np.int16)
        step = max(1, _BLOCK_VALUES // self.dimension)

        def work(parts: Iterator[slice]) -> None:
            buffer = np.empty((min(step, len(array)), self.dimension))
            for part in parts:
                block = buffer[: part.stop - part.start]
                block[:] = array[part]
                self._encode_block(block)
                out[part] = block

        starts = range(0, len(array), step)
        share_blocks(work, [slice(start, min(start + step, len(array))) for start in starts])
        return out

    def _encode_block(self, block: Floats) -> None:
        """Make integers of a block's rows, in place."""
        if not np.isfinite(block).all():
            raise InvalidData("rows hold missing or infinite values: remove or fill them first")
        if self.low is None:
            np.maximum(block, -1e150, out=block)
            np.minimum(block, 1e150, out=block)
            _by_column(np.subtract, block, self._offset)
            self._pull_inside(block)
        else:
            _by_column(np.maximum, block, np.array(self.low))
            _by_column(np.minimum, block, np.array(self.high))
            _by_column(np.subtract, block, self._offset)
        _by_column(np.divide, block, self._stretch)
        np.trunc(block, out=block)
        squared = np.einsum("ij,ij->i", block, block)
        outside = np.flatnonzero(squared > UNITS * UNITS)  # by rounding alone: a few units at most
        if len(outside):
            weights = clip_weights(squared[outside].astype(np.int64), UNITS)
            block[outside] = np.trunc(block[outside] * weights[:, None] / WEIGHT_ONE)

    def _pull_inside(self, block: Floats) -> None:
        """Move rows outside the ball onto it, along their own direction, without overflow."""
        assert self.radius is not None
        outside = np.flatnonzero(np.sqrt(np.einsum("ij,ij->i", block, block)) > self.radius)
        if len(outside) == 0:
            return
        away = block[outside]
        largest = np.abs(away).max(axis=1)
        away *= (self.radius / np.maximum(largest, self.radius))[:, None]
        norms = np.sqrt(np.einsum("ij,ij->i", away, away))
        away *= (self.radius / np.maximum(norms, self.radius))[:, None]
        block[outside] = away

    def decode(self, units: npt.ArrayLike) -> Floats:
        """Points in encoded units as points in the data's units, inside the bounds."""
        points = np.asarray(units, dtype=np.float64) * self._stretch + self._offset
        if self.low is not None and self.high is not None:
            return np.clip(points, self.low, self.high)
        assert self.radius is not None
        return self._offset + into_ball(points - self._offset, self.radius)

    def encode_points(self, points: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Public points (sites, starting centres) in encoded units, rounded to the nearest integer."""
        return np.rint((np.asarray(points, dtype=np.float64) - self._offset) / self._stretch).astype(np.int64)

    def unit_lengths(self) -> Floats:
        """Data units per encoded unit, per column: for error bars."""
        return self._stretch.copy()

    def to_json(self) -> dict[str, Any]:
        bounds: dict[str, Any] = (
            {"box": {"low": list(self.low), "high": list(self.high)}}
            if self.low is not None and self.high is not None
            else {"ball": {"radius": self.radius, "centre": list(self.centre or ())}}
        )
        shared = {"kind": self.kind, "size": self.size, "rows_per_person": self.rows_per_person}
        return {**shared, "columns": list(self.columns), "bounds": bounds, "scaling": self.scaling}


def _by_column(apply: np.ufunc, block: Floats, values: Floats) -> None:
    """block = apply(block, values), in place, one value per column, as fast for three columns as for many."""
    rows, width = block.shape
    together = max(1, _WIDE // width)
    whole = rows // together * together
    wide = block[:whole].reshape(-1, together * width)
    apply(wide, np.tile(values, together), out=wide)
    apply(block[whole:], values, out=block[whole:])


def _names(columns: Sequence[str] | None, dimension: int) -> tuple[str, ...]:
    names = tuple(f"x{i}" for i in range(dimension)) if columns is None else tuple(columns)
    if len(names) != dimension:
        raise InvalidDomain(f"{len(names)} column names for {dimension} columns", parameter="columns")
    if len(set(names)) != len(names) or any(not isinstance(n, str) or not n for n in names):
        raise InvalidDomain("column names must be distinct and not empty", parameter="columns")
    return names


def _dimension(dimension: int | None, columns: Sequence[str] | None, *values: Any) -> int:
    known = [len(v) for v in (columns, *values) if v is not None and np.ndim(v) == 1]
    if dimension is None and not known:
        raise InvalidDomain("give the columns, or the dimension", parameter="columns")
    found = dimension if dimension is not None else known[0]
    whole(found, "dimension", 1, LARGEST_DIMENSION)
    if any(n != found for n in known):
        raise InvalidDomain("columns and bounds differ in length", parameter="bounds")
    return found
