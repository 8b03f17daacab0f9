"""Cells of space: cubes of a partition tree, cells of a uniform grid, and paths through halvings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Floats, Integers, Labels
from core.data import Chunk
from core.kernels.paths import PathTables, path_codes
from core.kernels.rows import row_blocks
from core.kernels.sparse_counts import MOST_LISTED
from core.kernels.threads import share_blocks
from core.views.base import DerivedView, RowView, require_increasing


@dataclass(frozen=True, eq=False)
class Cubes(DerivedView):
    """The active cube of a partition tree that each row lies in, and which of its 2^width children.

    The root spans [shift - 2^16, shift + 2^16) on every axis and holds every row. A level below, `active`
    lists the released numbers of the children of `above` that are split further. Cells are half open.
    """

    #: Halvings of the root until a cube holds one point of the integer grid.
    DEPTH: ClassVar[int] = 17

    base: RowView
    shift: Integers
    above: Cubes | None = None
    active: Integers | None = None

    def __post_init__(self) -> None:
        if self.shift.shape != (self.base.width,) or self.shift.dtype.kind != "i":
            raise ValueError("a shift is one integer row")
        if self.base.radius + int(np.abs(self.shift).max()) >= 1 << 16:
            raise ValueError("the root of a partition tree must hold every row whatever the shift")
        if (self.above is None) != (self.active is None):
            raise ValueError("a level below the root names its level above and what is active there")
        if self.level >= self.DEPTH:
            raise ValueError(f"a partition tree has at most {self.DEPTH} levels")
        if self.active is not None:
            require_increasing(self.active, "active cubes")

    @cached_property
    def level(self) -> int:
        return 0 if self.above is None else self.above.level + 1

    @property
    def family(self) -> int:
        """Number of children of the cubes that this level splits."""
        return (1 if self.active is None else len(self.active)) << self.base.width

    def children(self, chunk: Chunk) -> Labels:
        """For each row (place of its cube << width | child), or -1 where it lies in no active cube."""
        return self.cached(chunk, lambda: self._children(chunk))

    def _children(self, chunk: Chunk) -> Labels:
        rows = np.asarray(self.base.rows(chunk))
        above = None if self.above is None else self.above.children(chunk)
        narrow = self.family <= MOST_LISTED
        children: Labels = np.empty(len(rows), dtype=np.int32 if narrow else np.int64)

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                bits = self._bits(rows[part])
                if above is not None:
                    places = self._places(above[part])
                    bits = np.where(places >= 0, places << self.base.width | bits, -1)
                children[part] = bits

        share_blocks(work, row_blocks(len(rows), self.base.width))
        return children

    def _bits(self, rows: npt.NDArray[Any]) -> Integers:
        """Which of the 2^width children of its cube each row lies in: a bit for each axis."""
        bits = np.zeros(len(rows), dtype=np.int64)
        for axis in range(self.base.width):
            inside = rows[:, axis].astype(np.int32) + np.int32((1 << 16) - int(self.shift[axis]))
            bits |= ((inside >> (self.DEPTH - 1 - self.level)) & 1).astype(np.int64) << axis
        return bits

    def _places(self, children: Labels) -> Integers:
        """The places of some children of the level above among the active ones; -1 for all others."""
        assert self.active is not None
        if self._table is not None:
            return self._table[children]
        near = np.minimum(np.searchsorted(self.active, children), len(self.active) - 1)
        return np.where(self.active[near] == children, near, -1)

    @cached_property
    def _table(self) -> Integers | None:
        """The place of every child of the level above, then that of -1; none where there are too many."""
        if self.above is None or self.active is None or self.above.family > MOST_LISTED:
            return None
        table = np.full(self.above.family + 1, -1)
        table[self.active] = np.arange(len(self.active))
        return table


@dataclass(frozen=True, eq=False)
class GridCells(DerivedView):
    """The cell of a uniform grid over a box that each row lies in; rows outside lie in the nearest cell."""

    base: RowView
    low: Integers
    widths: Integers
    cells: int

    def __post_init__(self) -> None:
        if self.cells < 1 or self.cells**self.base.width > 1 << 62 or np.any(self.widths < 1):
            raise ValueError("a grid has positive widths and at most 2^62 cells")

    def codes(self, chunk: Chunk) -> Integers:
        rows = np.asarray(self.base.rows(chunk))
        codes = np.zeros(len(rows), dtype=np.int64)
        for axis in reversed(range(self.base.width)):
            inside = (rows[:, axis].astype(np.int64) - int(self.low[axis])) * self.cells
            codes *= self.cells
            codes += np.clip(inside // int(self.widths[axis]), 0, self.cells - 1)
        return codes


@dataclass(frozen=True, eq=False)
class PathCodes(DerivedView):
    """The path of each row through a fixed sequence of halvings of a box, as one integer.

    `axes[i]` is the axis that the i-th halving cuts; it cuts between two equal numbers of that axis's finest
    cells. A row outside the box follows the nearest side. The code's most significant bit is the first
    halving: a prefix names a cell of the tree.
    """

    base: RowView
    #: For each axis the integers at which its finest cells begin, and the end of the last one.
    edges: tuple[tuple[int, ...], ...]
    axes: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.axes) > 62:
            raise ValueError("a path has at most 62 halvings")
        for axis, edges in enumerate(self.edges):
            if len(edges) != (1 << self.axes.count(axis)) + 1 or any(a > b for a, b in pairwise(edges)):
                raise ValueError("the cells of an axis have an end for each halving's halves, in order")

    @classmethod
    def even(cls, base: RowView, low: Integers, widths: Integers, axes: tuple[int, ...]) -> PathCodes:
        """Equal cells of a box: axis j spans [low[j], low[j] + widths[j])."""
        edges = []
        for axis, (start, width) in enumerate(zip(low.tolist(), widths.tolist(), strict=True)):
            cells = 1 << axes.count(axis)
            if width < 1 or width % cells:
                raise ValueError("the width of an axis must be a multiple of its number of cells")
            edges.append(tuple(range(start, start + width + 1, width // cells)))
        return cls(base, tuple(edges), axes)

    def codes(self, chunk: Chunk) -> Labels:
        tables = path_tables(self.edges, self.axes, self.base.radius)
        return self.cached(chunk, lambda: path_codes(np.asarray(self.base.rows(chunk)), tables))

    def middles(self, prefixes: Integers, depth: int) -> Floats:
        """Middles of the cells that these prefixes of `depth` bits name."""
        low, high = self._ends(prefixes, depth)
        return (low + high) / 2

    def corners(self, prefixes: Integers, depth: int) -> tuple[Floats, Floats]:
        """Lower and upper corners of these cells; at the sides of the box they reach to infinity."""
        low, high = self._ends(prefixes, depth)
        first = np.array([edges[0] for edges in self.edges])
        last = np.array([edges[-1] for edges in self.edges])
        return np.where(low <= first, -np.inf, low), np.where(high >= last, np.inf, high)

    def _ends(self, prefixes: Integers, depth: int) -> tuple[Floats, Floats]:
        """Lower and upper corners of the cells, inside the box."""
        low, high = np.empty((2, len(prefixes), len(self.edges)))
        for axis, edges in enumerate(self.edges):
            places = [place for place, cut in enumerate(self.axes[:depth]) if cut == axis]
            finest = self.axes.count(axis) - len(places)
            cell = np.zeros(len(prefixes), dtype=np.int64)
            for place in places:
                cell = 2 * cell + ((prefixes >> (depth - 1 - place)) & 1)
            ends = np.array(edges, dtype=np.float64)
            low[:, axis], high[:, axis] = ends[cell << finest], ends[(cell + 1) << finest]
        return low, high


@lru_cache(maxsize=4)
def path_tables(edges: tuple[tuple[int, ...], ...], axes: tuple[int, ...], reach: int) -> PathTables:
    """What each coordinate within reach decides of a path; kept for the chunks that follow."""
    coordinates = np.arange(-reach, reach + 1, dtype=np.int64)
    used = sorted(set(axes))
    tables: Labels = np.empty((len(used), len(coordinates)), dtype=np.int32 if len(axes) < 32 else np.int64)
    for table, axis in zip(tables, used, strict=True):
        places = [len(axes) - 1 - place for place, cut in enumerate(axes) if cut == axis]
        cells = np.arange(1 << len(places), dtype=np.int64)
        bits = np.zeros(len(cells), dtype=np.int64)
        for rank, place in enumerate(places):
            bits |= ((cells >> (len(places) - 1 - rank)) & 1) << place
        # The inner ends alone: a coordinate beyond the box belongs to the first or the last cell.
        cell = np.searchsorted(np.array(edges[axis][1:-1]), coordinates, side="right")
        table[:] = bits[cell]
    return PathTables(np.array(used, dtype=np.int64), tables)
