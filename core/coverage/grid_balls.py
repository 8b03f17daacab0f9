"""Balls about every point of a grid: a family too large to list."""

import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from core.arrays import Integers
from core.coverage.families import Family, Mask, Positions, SetCounts
from core.data import Chunk
from core.kernels.geometry import cell_numbers, numbered_cells
from core.kernels.sparse_counts import LARGEST_FAMILY, SparseCounts, Total
from core.views import DerivedView, RowView

#: Offsets of a grid's ball beyond this number would make every pass over the records slow.
MOST_OFFSETS = 20_000


@dataclass(frozen=True, eq=False)
class GridBalls(DerivedView, Family):
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
    def levels(self) -> int:
        return len(self.spacings)

    def half(self, level: int) -> int:
        """M: coordinates run from -M to M."""
        return -(-self.base.radius // self.spacings[level])

    def size(self, level: int) -> int:
        return int((2 * self.half(level) + 1) ** self.base.width)

    def coordinates(self, level: int, indices: Integers) -> Integers:
        """The grid points of some indices, in steps."""
        return numbered_cells(indices, self.half(level), self.base.width)

    def points(self, level: int, indices: Integers) -> Integers:
        """The grid points of some indices, in the units of the view."""
        return self.coordinates(level, indices) * self.spacings[level]

    def indices(self, level: int, coordinates: Integers) -> Integers:
        """The indices of some grid points, given in steps and inside the grid."""
        return cell_numbers(coordinates, self.half(level))

    def positions(self, chunk: Chunk, among: Integers) -> Positions:
        return np.asarray(self.base.rows(chunk))[among]

    def _cells(self, positions: Positions, level: int) -> Integers:
        spacing = self.spacings[level]
        # |x| <= radius, hence |floor(x / spacing + 1/2)| <= M: no record is outside the grid.
        return (2 * positions.astype(np.int64) + spacing) // (2 * spacing)

    def holds(self, positions: Positions, level: int, index: int) -> Mask:
        away = self._cells(positions, level) - self.coordinates(level, np.array(index))
        inside: Mask = np.einsum("ij,ij->i", away, away) <= self.reach
        return inside

    def parts(self, positions: Positions, level: int, counted: Mask | None = None) -> Total:
        """The cells that hold these records, with their counts."""
        cells = self.indices(level, self._cells(positions, level))
        return SparseCounts.of(self.size(level), cells, counted)

    def set_counts(self, level: int) -> SetCounts:
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


class _Implicit(SetCounts):
    """Counts that list only grid points whose sets had a record when the level began."""

    #: Cells spread to their neighbours at once; bounds the temporaries.
    _BLOCK = 1 << 22

    def __init__(self, family: GridBalls, level: int) -> None:
        super().__init__(0)
        self._family = family
        self._level = level
        self._points = np.zeros(0, dtype=np.int64)

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
        known = np.sort(np.concatenate([self._points, points]), kind="stable")
        known = known[np.flatnonzero(np.diff(known, prepend=-1))]
        total = np.zeros(len(known), dtype=np.int64)
        total[np.searchsorted(known, self._points)] = self._counts
        total[np.searchsorted(known, points)] += sums
        self._points, self._counts = known, total

    def listed(self) -> tuple[Integers, Integers]:
        return self._points, self._counts
