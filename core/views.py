"""Rows derived by pure functions of a chunk and of released parameters, cached per process.

A view knows the norm its rows cannot exceed (`radius`) and how wide they are, which is all a
statistic needs to declare its sensitivity. Parameters are released or public; a view never looks at
another record than the one it derives, so neighbours stay neighbours. See `views.md`.
"""

from __future__ import annotations

import hashlib
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arithmetic import Integers, Labels, Rows, nearest, project, row_blocks
from core.domain import UNITS, Dense, Domain, Sparse
from core.source import Chunk
from core.threads import share_blocks

__all__ = [
    "Assigned",
    "Assignment",
    "Encoded",
    "PathCodes",
    "Projected",
    "RowView",
    "View",
    "cached",
    "clear_cache",
    "limit_cache",
]

#: Bytes of derived rows that one process keeps.
CACHE_BYTES = 144 << 20
#: Parameters beyond this would leave the range in which the kernels are exact.
LARGEST_COORDINATE = 1 << 17


class _Cache:
    """Derived chunks, bounded in bytes; makes room by dropping whole views that are out of use.

    A pass over more chunks than fit must not evict what the same pass will need next time, so a view
    is dropped only for another one, and never while the chunk at hand was derived from it. Where all are in
    use, those that take fewer bytes for a record are kept: an assignment saves as much time as the rows it
    was made from, at a tenth of their size.
    """

    def __init__(self) -> None:
        self.most_bytes = CACHE_BYTES
        self._lock = threading.Lock()
        self._views: OrderedDict[str, dict[Hashable, tuple[Any, int]]] = OrderedDict()
        self._last: dict[str, Hashable] = {}
        self._bytes = 0

    def get(self, digest: str, key: Hashable, make: Callable[[], Any], size: Callable[[Any], int]) -> Any:
        with self._lock:
            self._last[digest] = key
            if digest in self._views:
                self._views.move_to_end(digest)
                if key in self._views[digest]:
                    return self._views[digest][key][0]
        value = make()
        with self._lock:
            self._insert(digest, key, value, size(value))
        return value

    def _insert(self, digest: str, key: Hashable, value: Any, size: int) -> None:
        for other in list(self._views):
            if self._bytes + size <= self.most_bytes:
                break
            if other != digest and self._last.get(other) != key:
                self._bytes -= sum(n for _, n in self._views.pop(other).values())
                self._last.pop(other, None)
        self._drop_larger(key, size)
        if self._bytes + size <= self.most_bytes:
            held = self._views.setdefault(digest, {})
            if key not in held:
                held[key] = (value, size)
                self._bytes += size

    def _drop_larger(self, key: Hashable, size: int) -> None:
        """Make room for something derived from this chunk, at the cost of what is larger."""
        if size > self.most_bytes:
            return
        for held in self._views.values():
            # Chunks of a view differ in size only at the end of a dataset, so the first one stands for all.
            first = next(iter(held.values()), None)
            while first is not None and first[1] > size and held and self._bytes + size > self.most_bytes:
                self._bytes -= held.popitem()[1][1]

    def clear(self) -> None:
        with self._lock:
            self._views.clear()
            self._last.clear()
            self._bytes = 0


_cache = _Cache()


def limit_cache(most_bytes: int) -> None:
    """Let this process keep so many bytes of derived rows."""
    _cache.most_bytes = most_bytes


def clear_cache() -> None:
    """Forget every derived chunk of this process."""
    _cache.clear()


def cached(view: View, chunk: Chunk, make: Callable[[], Integers]) -> Integers:
    """The integers that `make` derives from the chunk, or derived before; for views of other modules."""
    derived: Integers = _cache.get(view.digest, chunk.key, make, lambda values: values.nbytes)
    return derived


class View:
    """A derivation; two views with the same digest derive the same."""

    domain: str

    @cached_property
    def digest(self) -> str:
        hasher = hashlib.sha256(type(self).__name__.encode())
        for field in fields(self):  # type: ignore[arg-type]  # every view is a dataclass
            value = getattr(self, field.name)
            if isinstance(value, View):
                hasher.update(value.digest.encode())
            elif isinstance(value, np.ndarray):
                hasher.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
            else:
                hasher.update(repr(value).encode())
            hasher.update(b";")
        return hasher.hexdigest()


class RowView(View):
    """A view that yields rows of integers, `width` wide, with norms of at most `radius`."""

    width: int
    radius: int

    def rows(self, chunk: Chunk) -> Rows:
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Encoded(RowView):
    """The root of every view: the encoded rows themselves."""

    domain: str
    width: int
    sparse: bool = False
    radius: int = UNITS

    @classmethod
    def of(cls, domain: Domain) -> Encoded:
        if not isinstance(domain, (Dense, Sparse)):
            raise ValueError("only dense and sparse domains have rows of numbers")
        return cls(domain.fingerprint, domain.dimension, isinstance(domain, Sparse))

    def rows(self, chunk: Chunk) -> Rows:
        return chunk.rows


def _checked(values: npt.ArrayLike, width: int, what: str) -> Integers:
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{what} must be integers: round released values first")
    if array.shape[-1] != width:
        raise ValueError(f"{what} must be {width} wide")
    if array.size and np.abs(array).max() > LARGEST_COORDINATE:
        raise ValueError(f"{what} lie too far outside the domain: clip them first")
    return np.ascontiguousarray(array, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Projected(RowView):
    """(rows - centre) @ matrix / 2^15, truncated towards zero and clipped to `radius`."""

    base: RowView
    matrix: Integers
    radius: int
    centre: Integers | None = None

    def __post_init__(self) -> None:
        if self.matrix.shape[0] != self.base.width or self.matrix.dtype.kind != "i":
            raise ValueError("a projection is an integer matrix with one row per column of its base")
        if np.sqrt((self.matrix.astype(np.float64) ** 2).sum(axis=0)).max() > 2.0**31:
            raise ValueError("the columns of a projection are too long to stay exact")
        if not 1 <= self.radius <= 2 * UNITS:
            raise ValueError("a clipping radius lies between 1 and the diameter of the domain")
        if self.centre is not None:
            object.__setattr__(self, "centre", _checked(self.centre, self.base.width, "centre"))

    @property
    def domain(self) -> str:  # type: ignore[override]  # a field where it is the root, derived elsewhere
        return self.base.domain

    @property
    def width(self) -> int:  # type: ignore[override]  # as above
        return int(self.matrix.shape[1])

    def rows(self, chunk: Chunk) -> Rows:
        def make() -> Rows:
            return project(self.base.rows(chunk), self.matrix, self.centre, self.radius)

        derived: Rows = _cache.get(self.digest, chunk.key, make, lambda rows: rows.nbytes)
        return derived


@dataclass(frozen=True, eq=False)
class Assignment:
    """For each row of a chunk the index of its nearest centre and the squared distance to it.

    In the narrowest types that hold them whatever the rows are: assignments are kept for several passes.
    """

    labels: Labels
    squared: Labels


@dataclass(frozen=True, eq=False)
class Assigned(View):
    """Rows with the nearest of some released centres; ties go to the lowest index."""

    base: RowView
    centres: Integers

    def __post_init__(self) -> None:
        centres = _checked(self.centres, self.base.width, "centres")
        if centres.ndim != 2 or len(centres) == 0:
            raise ValueError("centres are a matrix with at least one row")
        object.__setattr__(self, "centres", centres)

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the root
        return self.base.domain

    def assignment(self, chunk: Chunk) -> Assignment:
        def make() -> Assignment:
            labels, squared = nearest(self.base.rows(chunk), self.centres, self.base.radius)
            reach = self.base.radius + math.isqrt(int((self.centres**2).sum(axis=1).max())) + 1
            return Assignment(
                labels.astype(np.int16) if len(self.centres) <= 1 << 15 else labels,
                squared.astype(np.uint32) if reach < 1 << 16 else squared,
            )

        found: Assignment = _cache.get(
            self.digest, chunk.key, make, lambda a: a.labels.nbytes + a.squared.nbytes
        )
        return found


@dataclass(frozen=True, eq=False)
class PathCodes(View):
    """The path of each row through a fixed sequence of halvings of a box, as one integer.

    `axes[i]` is the axis that the i-th halving cuts; a row outside the box follows the nearest side.
    The code's most significant bit is the first halving: a prefix names a cell of the tree. Axis j spans
    [low[j], low[j] + width[j]); widths are multiples of 2^(halvings of that axis), so cuts are integers.
    """

    base: RowView
    low: Integers
    widths: Integers
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.axes) > 62:
            raise ValueError("a path has at most 62 halvings")
        for axis, width in enumerate(self.widths):
            if width < 1 or int(width) % (1 << self.axes.count(axis)):
                raise ValueError("the width of an axis must be a multiple of its number of cells")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the root
        return self.base.domain

    def codes(self, chunk: Chunk) -> Labels:
        def make() -> Labels:
            return self._paths(np.asarray(self.base.rows(chunk)))

        derived: Labels = _cache.get(self.digest, chunk.key, make, lambda codes: codes.nbytes)
        return derived

    def _paths(self, rows: npt.NDArray[Any]) -> Labels:
        """Each axis adds its own bits, looked up by the coordinate, whose range is known."""
        reach = self.base.radius
        tables = _path_tables(tuple(self.low.tolist()), tuple(self.widths.tolist()), self.axes, reach)
        codes: Labels = np.zeros(len(rows), dtype=_path_type(self.axes))

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                for axis, table in tables:
                    places = rows[part, axis].astype(np.intp)
                    places += reach
                    np.bitwise_or(codes[part], table.take(places, mode="clip"), out=codes[part])

        share_blocks(work, row_blocks(len(rows), 32))
        return codes


def _path_type(axes: tuple[int, ...]) -> type[np.int32] | type[np.int64]:
    return np.int32 if len(axes) < 32 else np.int64


@lru_cache(maxsize=4)
def _path_tables(
    low: tuple[int, ...], widths: tuple[int, ...], axes: tuple[int, ...], reach: int
) -> tuple[tuple[int, Labels], ...]:
    """For each axis the bits of a path that a coordinate from -reach to reach decides."""
    coordinates = np.arange(-reach, reach + 1, dtype=np.int64)
    tables: list[tuple[int, Labels]] = []
    for axis in sorted(set(axes)):
        places = [len(axes) - 1 - place for place, cut in enumerate(axes) if cut == axis]
        cells = np.arange(1 << len(places), dtype=np.int64)
        bits = np.zeros(len(cells), dtype=np.int64)
        for rank, place in enumerate(places):
            bits |= ((cells >> (len(places) - 1 - rank)) & 1) << place
        inside = np.clip(coordinates - low[axis], 0, widths[axis] - 1)
        tables.append((axis, bits[inside // (widths[axis] >> len(places))].astype(_path_type(axes))))
    return tuple(tables)
