"""What is public about a dataset, and the one way rows become integers.

A domain is given by the curator before any row is read: columns, bounds, scaling, an order of
magnitude `size` for the number of records, and how many rows one person may own. Nothing in it is
ever taken from data.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arithmetic import WEIGHT_ONE, clip_weights
from core.errors import InvalidData, InvalidDomain
from core.threads import share_blocks

__all__ = ["MAX_RECORDS", "UNITS", "Dense", "Domain", "Ids", "Sparse", "domain_from_json"]

#: The radius of the ball that every encoded row lies in.
UNITS = 32767
#: Sums of per-record contributions below 2^33 stay in int64 up to this many records.
MAX_RECORDS = 1 << 30
#: A column whose whole range is fewer encoded steps than this is coarse enough to warn about.
COARSE_STEPS = 256
LARGEST_DIMENSION = 1_000_000
_BLOCK_VALUES = 1 << 19
#: Narrow rows are treated several at a time, as rows about this wide.
_WIDE = 1 << 10

Floats = npt.NDArray[np.float64]


def _whole(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
        raise InvalidDomain(f"{name} must be a whole number", parameter=name)
    if not least <= value <= most:
        raise InvalidDomain(f"{name} must be between {least} and {most}", parameter=name)
    return int(value)


def _numbers(value: Any, dimension: int | None, name: str) -> tuple[float, ...]:
    array = np.asarray(value, dtype=np.float64) if value is not None else np.zeros(0)
    if array.ndim == 0 and dimension is not None:
        array = np.full(dimension, float(array))
    if array.ndim != 1 or (dimension is not None and len(array) != dimension):
        raise InvalidDomain(f"{name} must be one number, or one per column", parameter=name)
    if not np.all(np.isfinite(array)) or np.any(np.abs(array) > 1e100):
        raise InvalidDomain(f"{name} must be finite and at most 1e100", parameter=name)
    return tuple(array.tolist())


@dataclass(frozen=True, kw_only=True)
class _Public:
    """Facts that every kind of domain has."""

    kind: ClassVar[str]
    size: int
    rows_per_person: int = 1

    def __post_init__(self) -> None:
        _whole(self.size, "size", 1, MAX_RECORDS)
        _whole(self.rows_per_person, "rows_per_person", 1, 10_000)

    @cached_property
    def fingerprint(self) -> str:
        """Names the domain in views and receipts."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "size": self.size, "rows_per_person": self.rows_per_person}

    @property
    def warnings(self) -> tuple[str, ...]:
        return ()


@dataclass(frozen=True, kw_only=True)
class Dense(_Public):
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
    ) -> Dense:
        """Every column between its `low` and its `high`."""
        if low is None or high is None:
            raise InvalidDomain(
                "bounds are missing: give a low and a high for every column, without looking at the rows",
                parameter="bounds",
            )
        dimension = _dimension(dimension, columns, low, high)
        lows, highs = _numbers(low, dimension, "low"), _numbers(high, dimension, "high")
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
    ) -> Dense:
        """Every row within `radius` of `centre` (default: the origin)."""
        if radius is None:
            raise InvalidDomain(
                "bounds are missing: give a radius that is known without looking at the rows",
                parameter="bounds",
            )
        dimension = _dimension(dimension, columns, centre, centre)
        (bound,) = _numbers([radius], 1, "radius")
        if not bound > 0:
            raise InvalidDomain("radius must be greater than zero", parameter="radius")
        return cls(
            columns=_names(columns, dimension),
            centre=_numbers(0.0 if centre is None else centre, dimension, "centre"),
            radius=bound,
            scaling="none",
            size=size,
            rows_per_person=rows_per_person,
        )

    @property
    def dimension(self) -> int:
        return len(self.columns)

    @property
    def is_box(self) -> bool:
        return self.low is not None

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
        return (np.array(self.low) - self._offset) / self._stretch, (
            np.array(self.high) - self._offset
        ) / self._stretch

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
            f"columns {', '.join(coarse[:5])}{more} keep fewer than {COARSE_STEPS} distinct values beside "
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
        away = points - self._offset
        norms = np.linalg.norm(away, axis=-1, keepdims=True)
        inside: Floats = away * (self.radius / np.maximum(norms, self.radius))
        return self._offset + inside

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
        return {**super().to_json(), "columns": list(self.columns), "bounds": bounds, "scaling": self.scaling}


@dataclass(frozen=True, kw_only=True)
class Sparse(_Public):
    """Rows of a CSR matrix inside a ball about the origin."""

    kind: ClassVar[str] = "sparse"
    dimension: int
    radius: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole(self.dimension, "dimension", 1, LARGEST_DIMENSION)
        (radius,) = _numbers([self.radius], 1, "radius")
        if not radius > 0:
            raise InvalidDomain("radius must be greater than zero", parameter="radius")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"x{i}" for i in range(self.dimension))

    def encode(self, rows: Any) -> sp.csr_array:
        """A CSR matrix clipped to the ball, as int16 units truncated towards zero."""
        matrix = sp.csr_array(rows, dtype=np.float64, copy=True)
        if matrix.shape[1] != self.dimension:
            raise InvalidData(f"rows must have {self.dimension} columns")
        matrix.sum_duplicates()
        if not np.isfinite(matrix.data).all():
            raise InvalidData("rows hold missing or infinite values: remove or fill them first")
        counts = np.diff(matrix.indptr)
        values = np.clip(matrix.data, -1e150, 1e150)
        owner = np.repeat(np.arange(matrix.shape[0]), counts)
        for _ in range(2):  # a first pass by the largest entry keeps the squares finite
            largest = np.zeros(matrix.shape[0])
            np.maximum.at(largest, owner, np.abs(values))
            shrink = self.radius / np.maximum(largest, self.radius)
            values = values * shrink[owner]
            norms = np.sqrt(np.bincount(owner, values * values, minlength=matrix.shape[0]))
            values *= (self.radius / np.maximum(norms, self.radius))[owner]
        values = np.trunc(values * (UNITS / self.radius))
        squared = np.bincount(owner, values * values, minlength=matrix.shape[0]).astype(np.int64)
        weights = clip_weights(squared, UNITS)
        values = np.trunc(values * weights[owner] / WEIGHT_ONE)
        encoded = sp.csr_array((values.astype(np.int16), matrix.indices, matrix.indptr), shape=matrix.shape)
        encoded.eliminate_zeros()
        return encoded

    def decode(self, units: npt.ArrayLike) -> Floats:
        points = np.asarray(units, dtype=np.float64) * (self.radius / UNITS)
        norms = np.linalg.norm(points, axis=-1, keepdims=True)
        inside: Floats = points * (self.radius / np.maximum(norms, self.radius))
        return inside

    def unit_lengths(self) -> Floats:
        return np.full(self.dimension, self.radius / UNITS)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "dimension": self.dimension, "radius": self.radius}


@dataclass(frozen=True, kw_only=True)
class Ids(_Public):
    """Rows that name one of `count` public sites by its number."""

    kind: ClassVar[str] = "ids"
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        _whole(self.count, "count", 1, LARGEST_DIMENSION)

    @property
    def dimension(self) -> int:
        return 1

    @property
    def columns(self) -> tuple[str, ...]:
        return ("site",)

    def encode(self, rows: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Site numbers as int32; numbers outside 0..count-1 are clipped to the nearest site."""
        array = np.asarray(rows)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            raise InvalidData("rows must be one column of site numbers")
        if not np.isfinite(array).all() or np.any(array != np.floor(array)):
            raise InvalidData("site numbers must be whole numbers")
        sites: npt.NDArray[np.int32] = np.clip(array, 0, self.count - 1).astype(np.int32)
        return sites

    def decode(self, units: npt.ArrayLike) -> Floats:
        """Centres among sites are the numbers of those sites."""
        return np.clip(np.asarray(units, dtype=np.float64), 0, self.count - 1)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "count": self.count}


Domain = Dense | Sparse | Ids


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
    _whole(found, "dimension", 1, LARGEST_DIMENSION)
    if any(n != found for n in known):
        raise InvalidDomain("columns and bounds differ in length", parameter="bounds")
    return found


def domain_from_json(data: Mapping[str, Any]) -> Domain:
    """The domain that `to_json` described."""
    shared = {"size": data["size"], "rows_per_person": data["rows_per_person"]}
    match data["kind"]:
        case "sparse":
            return Sparse(dimension=data["dimension"], radius=data["radius"], **shared)
        case "ids":
            return Ids(count=data["count"], **shared)
        case "dense":
            columns, bounds = data["columns"], data["bounds"]
            if "box" in bounds:
                box = bounds["box"]
                return Dense.box(box["low"], box["high"], columns, scaling=data["scaling"], **shared)
            ball = bounds["ball"]
            return Dense.ball(ball["radius"], ball["centre"], columns=columns, **shared)
    raise InvalidDomain("a domain is dense, sparse or ids", parameter="kind")
