"""Cells of space: the cubes of a partition tree, and those of a uniform grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.views.base import DerivedView, RowView


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
        if self.active is not None and np.any(np.diff(self.active) <= 0):
            raise ValueError("active cubes are increasing numbers")

    @cached_property
    def level(self) -> int:
        return 0 if self.above is None else self.above.level + 1

    @property
    def count(self) -> int:
        """Number of cubes that this level splits."""
        return 1 if self.active is None else len(self.active)

    def children(self, chunk: Chunk) -> Integers:
        """For each row (place of its cube << width | child), or -1 where it lies in no active cube."""

        return self.cached(chunk, lambda: self._children(chunk))

    def _children(self, chunk: Chunk) -> Integers:
        rows = np.asarray(self.base.rows(chunk))
        bits = np.zeros(len(rows), dtype=np.int64)
        for axis in range(self.base.width):
            inside = rows[:, axis].astype(np.int64) - int(self.shift[axis]) + (1 << 16)
            bits |= ((inside >> (self.DEPTH - 1 - self.level)) & 1) << axis
        if self.above is None or self.active is None:
            return bits
        found = self.above.children(chunk)
        places = np.minimum(np.searchsorted(self.active, found), len(self.active) - 1)
        return np.where(self.active[places] == found, places << self.base.width | bits, -1)


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
