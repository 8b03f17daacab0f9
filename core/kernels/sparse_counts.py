"""Counts over a family of cells that is too large to list; they add up with `+` as arrays do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Labels

#: Cells are numbered by int64.
LARGEST_FAMILY = 1 << 62
#: Largest family whose cells are all counted or looked up in a list, which is faster than sorting.
MOST_LISTED = 1 << 20


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Counts of the occupied ones among `family` cells numbered from zero; every other cell counts zero.

    `cells` is increasing and `counts` positive. The family is public or released; which of its cells are
    occupied is not, so a mechanism treats an empty cell like any other.
    """

    family: int
    cells: Integers
    counts: Integers

    def __post_init__(self) -> None:
        if not 1 <= self.family <= LARGEST_FAMILY:
            raise ValueError("a family has at least one cell and at most 2^62")

    @classmethod
    def none(cls, family: int) -> SparseCounts:
        """No records at all."""
        return cls(family, np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))

    @classmethod
    def of(cls, family: int, cells: Labels, counted: npt.NDArray[np.bool_] | None = None) -> SparseCounts:
        """One record in each of these cells, or in those counted; cells may repeat and come in any order."""
        if family <= MOST_LISTED:
            every = np.bincount(cells, counted, minlength=family).astype(np.int64)
            occupied = np.flatnonzero(every)
            return cls(family, occupied, every[occupied])
        if counted is None:
            found, counts = np.unique(cells, return_counts=True)
            return cls(family, found.astype(np.int64), counts.astype(np.int64))
        # Cells are numbered below 2^62, which leaves a bit to tell those that count from the others.
        found, numbers = np.unique(2 * cells + counted, return_counts=True)
        odd = (found & 1).astype(bool)
        return cls(family, (found[odd] >> 1).astype(np.int64), numbers[odd].astype(np.int64))

    def __add__(self, other: SparseCounts) -> SparseCounts:
        if self.family != other.family:
            raise ValueError("only counts over the same family add up")
        cells, places = np.unique(np.concatenate([self.cells, other.cells]), return_inverse=True)
        counts = np.zeros(len(cells), dtype=np.int64)
        np.add.at(counts, places, np.concatenate([self.counts, other.counts]))
        return SparseCounts(self.family, cells, counts)


Total = Integers | SparseCounts
