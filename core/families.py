"""Publicly indexed sets of records for maximum coverage: which records a set holds, and how many.

A family is a stack of levels, one for each radius. At every level it maps a public index to a set of records,
by a rule that looks at one record at a time. Counts are kept in a tally that records join or leave. The
argument is in `families.md`.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from core.arithmetic import Integers
from core.sites import SiteDistances
from core.source import Chunk
from core.totals import LARGEST_FAMILY, SparseCounts, Total
from core.views import RowView, View

__all__ = ["Balls", "Family", "GridBalls", "SiteBalls", "Tally"]

#: Offsets of a grid's ball beyond this number would make every pass over the records slow.
MOST_OFFSETS = 20_000

Alive = npt.NDArray[np.int64]


class Tally(Protocol):
    """How many records each set of one level holds; changes as records join or leave."""

    def change(self, parts: Total, sign: int) -> None:
        """Add (1) or take away (-1) the parts of some records, as `Family.parts` made them."""

    def held(self) -> tuple[Integers, Integers]:
        """Indices and counts; sets that are not listed, and those listed with zero, hold no record."""


@runtime_checkable
class Family(Protocol):
    """Sets of records at several levels, each set known by a public index below `size(level)`."""

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""

    @property
    def digest(self) -> str: ...

    @property
    def levels(self) -> int: ...

    def size(self, level: int) -> int:
        """How many sets there are at this level, whatever the records."""

    def holds(self, chunk: Chunk, level: int, index: int, among: Alive) -> npt.NDArray[np.bool_]:
        """Which of the named records of a chunk the set holds."""

    def parts(self, chunk: Chunk, level: int, among: Alive) -> Total:
        """What the named records of a chunk contribute to the tally."""

    def tally(self, level: int) -> Tally:
        """A tally of no records."""


class _Listed:
    """A tally with one number for every set."""

    def __init__(self, size: int) -> None:
        self._counts = np.zeros(size, dtype=np.int64)

    def change(self, parts: Total, sign: int) -> None:
        assert isinstance(parts, np.ndarray)
        self._counts += sign * parts

    def held(self) -> tuple[Integers, Integers]:
        return np.arange(len(self._counts)), self._counts


class _Within(View):
    """Records within a radius of each of some points; what is left open is where a record is."""

    points: Integers

    @property
    def levels(self) -> int:
        raise NotImplementedError

    def limit(self, level: int) -> int:
        """The largest squared distance that is within the level's radius."""
        raise NotImplementedError

    def positions(self, chunk: Chunk, among: Alive) -> npt.NDArray[Any]:
        """The named records as integer vectors beside the points, of norms below 2^25."""
        raise NotImplementedError

    def size(self, level: int) -> int:
        return len(self.points)

    def tally(self, level: int) -> Tally:
        return _Listed(len(self.points))

    def holds(self, chunk: Chunk, level: int, index: int, among: Alive) -> npt.NDArray[np.bool_]:
        away = self.positions(chunk, among).astype(np.int64) - self.points[index]
        inside: npt.NDArray[np.bool_] = np.einsum("ij,ij->i", away, away) <= self.limit(level)
        return inside

    def parts(self, chunk: Chunk, level: int, among: Alive) -> Total:
        counts = np.zeros(len(self.points), dtype=np.int64)
        turned, offsets = self._turned
        for part in _pieces(among, len(self.points)):
            block = self.positions(chunk, among[part]).astype(np.float64)
            # |p|^2 - 2 x.p <= limit - |x|^2, all integers of at most 2^53.
            limits = self.limit(level) - np.einsum("ij,ij->i", block, block)
            scores = turned @ block.T
            scores += offsets
            counts += np.count_nonzero(scores <= limits, axis=1)
        return counts

    @cached_property
    def _turned(self) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        squared = np.einsum("ij,ij->i", self.points, self.points).astype(np.float64)
        return np.ascontiguousarray(self.points.astype(np.float64) * -2.0), squared[:, None]


def _pieces(among: Alive, width: int) -> list[slice]:
    """Cut a list of records into blocks whose temporaries stay small."""
    step = max(64, (1 << 18) // max(1, width))
    return [slice(start, start + step) for start in range(0, len(among), step)]


@dataclass(frozen=True, eq=False)
class Balls(_Within):
    """The records of a view within a radius of each of some public or released points."""

    base: RowView
    points: Integers
    radii: tuple[int, ...]

    def __post_init__(self) -> None:
        if self.points.ndim != 2 or self.points.dtype.kind != "i" or len(self.points) == 0:
            raise ValueError("points are a matrix of integers with at least one row")
        if self.points.shape[1] != self.base.width:
            raise ValueError(f"points must be {self.base.width} wide")
        if np.abs(self.points).max() > 1 << 17 or max(self.radii) > 1 << 18 or min(self.radii) < 0:
            raise ValueError("points or radii lie outside the range in which distances are exact")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the root
        return self.base.domain

    @property
    def levels(self) -> int:
        return len(self.radii)

    def limit(self, level: int) -> int:
        return self.radii[level] ** 2

    def positions(self, chunk: Chunk, among: Alive) -> npt.NDArray[Any]:
        return np.asarray(self.base.rows(chunk)[among])


@dataclass(frozen=True, eq=False)
class SiteBalls(_Within):
    """The records within a radius, in steps of the sites' measure, of each public site."""

    sites: SiteDistances
    radii: tuple[int, ...]

    def __post_init__(self) -> None:
        if min(self.radii) < 0:
            raise ValueError("radii are at least zero")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the sites
        return self.sites.domain

    @property
    def points(self) -> Integers:  # type: ignore[override]  # the sites themselves
        return self.sites.sites

    @property
    def levels(self) -> int:
        return len(self.radii)

    def limit(self, level: int) -> int:
        return self.sites.squared_limit(self.radii[level])

    def positions(self, chunk: Chunk, among: Alive) -> npt.NDArray[Any]:
        return self.sites.positions(np.asarray(chunk.rows)[among])

    def holds(self, chunk: Chunk, level: int, index: int, among: Alive) -> npt.NDArray[np.bool_]:
        if self.sites.metric != "matrix":
            return super().holds(chunk, level, index, among)
        inside: npt.NDArray[np.bool_] = self.points[np.asarray(chunk.rows)[among], index] <= self.radii[level]
        return inside

    def parts(self, chunk: Chunk, level: int, among: Alive) -> Total:
        if self.sites.metric != "matrix":
            return super().parts(chunk, level, among)
        ids, counts = np.unique(np.asarray(chunk.rows)[among], return_counts=True)
        total = np.zeros(self.size(level), dtype=np.int64)
        for part in _pieces(ids, self.size(level)):
            # Counts of records, summed in doubles: integers below 2^53.
            near = (self.points[ids[part]] <= self.radii[level]).astype(np.float64)
            total += (counts[part].astype(np.float64) @ near).astype(np.int64)
        return total


@dataclass(frozen=True, eq=False)
class GridBalls(View):
    """Records near each point of a grid over the whole ball of a view: a huge family, most of it empty.

    At level l the grid is spacing[l] * {-M..M}^width with M = ceil(radius / spacing[l]). A record belongs to
    the nearest grid point (its cell); the set of a grid point holds the records of all cells whose grid
    points lie within sqrt(reach) steps of it. An index is the grid point's number, counted from -M.
    """

    base: RowView
    spacings: tuple[int, ...]
    reach: int

    def __post_init__(self) -> None:
        if min(self.spacings) < 1 or self.reach < 0:
            raise ValueError("spacings are integers of at least one and reach is at least zero")
        for level in range(self.levels):
            if self.size(level) > LARGEST_FAMILY:
                raise ValueError("the grid has too many points: use fewer dimensions or wider spacings")
        if len(self.offsets) > MOST_OFFSETS:
            raise ValueError("the reach covers too many grid points: use fewer dimensions or a shorter reach")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the root
        return self.base.domain

    @property
    def levels(self) -> int:
        return len(self.spacings)

    def half(self, level: int) -> int:
        """M: coordinates run from -M to M."""
        return -(-self.base.radius // self.spacings[level])

    def size(self, level: int) -> int:
        return int((2 * self.half(level) + 1) ** self.base.width)

    def coordinates(self, level: int, indices: Integers) -> Integers:
        """The grid points of some indices, in steps."""
        side = 2 * self.half(level) + 1
        rest = np.asarray(indices, dtype=np.int64)
        columns = []
        for _ in range(self.base.width):
            columns.append(rest % side)
            rest = rest // side
        return np.stack(columns[::-1], axis=-1) - self.half(level)

    def points(self, level: int, indices: Integers) -> Integers:
        """The grid points of some indices, in the units of the view."""
        return self.coordinates(level, indices) * self.spacings[level]

    def indices(self, level: int, coordinates: Integers) -> Integers:
        """The indices of some grid points, given in steps and inside the grid."""
        side = 2 * self.half(level) + 1
        index = np.zeros(coordinates.shape[:-1], dtype=np.int64)
        for axis in range(self.base.width):
            index = index * side + (coordinates[..., axis] + self.half(level))
        return index

    def _cells(self, chunk: Chunk, level: int, among: Alive) -> Integers:
        spacing = self.spacings[level]
        rows = np.asarray(self.base.rows(chunk))[among].astype(np.int64)
        # |x| <= radius, hence |floor(x / spacing + 1/2)| <= M: no record is outside the grid.
        return (2 * rows + spacing) // (2 * spacing)

    def holds(self, chunk: Chunk, level: int, index: int, among: Alive) -> npt.NDArray[np.bool_]:
        away = self._cells(chunk, level, among) - self.coordinates(level, np.array(index))
        inside: npt.NDArray[np.bool_] = np.einsum("ij,ij->i", away, away) <= self.reach
        return inside

    def parts(self, chunk: Chunk, level: int, among: Alive) -> Total:
        """The cells that hold these records, with their counts."""
        return SparseCounts.of(self.size(level), self.indices(level, self._cells(chunk, level, among)))

    def tally(self, level: int) -> Tally:
        return _Implicit(self, level)

    @cached_property
    def offsets(self) -> Integers:
        return self.offsets_within(self.base.width, self.reach)

    @staticmethod
    def offsets_within(width: int, reach: int) -> Integers:
        """All steps from a grid point to one within sqrt(reach)."""
        side = math.isqrt(reach)
        if (2 * side + 1) ** width > 50 * MOST_OFFSETS:
            raise ValueError("the reach covers too many grid points: use fewer dimensions or a shorter reach")
        found = [
            offset
            for offset in itertools.product(range(-side, side + 1), repeat=width)
            if sum(step * step for step in offset) <= reach
        ]
        return np.array(found, dtype=np.int64)

    def around(self, level: int, cells: Integers, counts: Integers) -> tuple[Integers, Integers]:
        """Every grid point whose set holds one of the cells, as often as it does, with the cell's count."""
        half = self.half(level)
        near = self.coordinates(level, cells)[:, None, :] + self.offsets[None, :, :]
        inside = (np.abs(near) <= half).all(axis=2)
        spread = np.broadcast_to(counts[:, None], inside.shape)[inside]
        return self.indices(level, near[inside]), spread


class _Implicit:
    """A tally that lists only grid points whose sets held a record when the level began."""

    #: Cells spread to their neighbours at once; bounds the temporaries.
    _BLOCK = 1 << 22

    def __init__(self, family: GridBalls, level: int) -> None:
        self._family = family
        self._level = level
        self._points = np.zeros(0, dtype=np.int64)
        self._counts = np.zeros(0, dtype=np.int64)

    def change(self, parts: Total, sign: int) -> None:
        assert isinstance(parts, SparseCounts)
        step = max(1, self._BLOCK // len(self._family.offsets))
        for start in range(0, len(parts.cells), step):
            part = slice(start, start + step)
            self._apply(*self._family.around(self._level, parts.cells[part], parts.counts[part]), sign)

    def _apply(self, points: Integers, counts: Integers, sign: int) -> None:
        order = np.argsort(points, kind="stable")
        points = points[order]
        starts = np.flatnonzero(np.diff(points, prepend=-1))
        sums = np.add.reduceat(counts[order], starts) if len(points) else counts
        points = points[starts]
        if sign < 0:
            self._counts[np.searchsorted(self._points, points)] -= sums
            return
        known = np.union1d(self._points, points)
        total = np.zeros(len(known), dtype=np.int64)
        total[np.searchsorted(known, self._points)] = self._counts
        total[np.searchsorted(known, points)] += sums
        self._points, self._counts = known, total

    def held(self) -> tuple[Integers, Integers]:
        return self._points, self._counts
