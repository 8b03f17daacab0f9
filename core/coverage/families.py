"""Publicly indexed sets of records for maximum coverage: balls about listed points or public sites."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Floats, Integers
from core.data import Chunk
from core.kernels.sparse_counts import Total
from core.kernels.threads import share_blocks, sum_blocks
from core.views import DerivedView, RowView, SiteDistances, View
from core.views.base import checked_points

Mask = npt.NDArray[np.bool_]
#: Records as a family of sets sees them.
Positions = npt.NDArray[Any]


class SetCounts:
    """Number of records in each set of one level; changes as records join or leave."""

    def __init__(self, size: int) -> None:
        self._counts = np.zeros(size, dtype=np.int64)

    def change(self, parts: Total, sign: int) -> None:
        """Add (1) or subtract (-1) the parts of some records, as `Family.parts` made them."""
        assert isinstance(parts, np.ndarray)
        self._counts += sign * parts

    def listed(self) -> tuple[Integers, Integers]:
        """Indices and counts; sets that are not listed, and those listed with zero, hold no record."""
        return np.arange(len(self._counts)), self._counts


class Family(View):
    """Sets of records at several levels, one for each radius; a set has a public index below `size(level)`.

    Which sets hold a record depends on that record, on public numbers and on released ones.
    """

    @property
    def levels(self) -> int:
        raise NotImplementedError

    def size(self, level: int) -> int:
        """Number of sets at this level, whatever the records."""
        raise NotImplementedError

    def positions(self, chunk: Chunk, among: Integers) -> Positions:
        """The named records of a chunk, as the other methods take them: one entry or row for each."""
        raise NotImplementedError

    def holds(self, positions: Positions, level: int, index: int) -> Mask:
        """Mask of the records that the set holds."""
        raise NotImplementedError

    def parts(self, positions: Positions, level: int, counted: Mask | None = None) -> Total:
        """The contribution of the records to the counts; of those counted, if given.

        Records that do not count take as long as those that do.
        """
        raise NotImplementedError

    def set_counts(self, level: int) -> SetCounts:
        """Counts of no records."""
        return SetCounts(self.size(level))


class _Within(Family):
    """Records within a radius of each of some points; positions are integer vectors of norms below 2^25."""

    points: Integers
    radii: tuple[int, ...]

    @property
    def levels(self) -> int:
        return len(self.radii)

    def limit(self, level: int) -> int:
        """The largest squared distance that is within the level's radius."""
        raise NotImplementedError

    def size(self, level: int) -> int:
        return len(self.points)

    def holds(self, positions: Positions, level: int, index: int) -> Mask:
        inside = np.zeros(len(positions), dtype=bool)

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                block, limits = self._block(positions[part], level)
                inside[part] = block @ self._turned[:, index] <= limits

        share_blocks(work, _pieces(len(positions), self.points.shape[1]))
        return inside

    def parts(self, positions: Positions, level: int, counted: Mask | None = None) -> Total:
        if counted is None:
            counted = np.ones(len(positions), dtype=bool)

        def work(parts: Iterator[slice]) -> Integers:
            counts = np.zeros(len(self.points), dtype=np.int64)
            for part in parts:
                block, limits = self._block(positions[part], level)
                within = block @ self._turned <= limits[:, None]
                # Sums of zeros and ones, fewer than 2^24 of them: exact in singles.
                counts += (counted[part].astype(np.float32) @ within.astype(np.float32)).astype(np.int64)
            return counts

        return sum_blocks(work, _pieces(len(positions), len(self.points)))

    def _block(self, positions: Positions, level: int) -> tuple[Floats, Floats]:
        """Positions x of some records, each with a one, and the most that (x, 1).(-2 p, |p|^2) may be.

        |p|^2 - 2 x.p <= limit - |x|^2: all of these are integers of at most 2^53.
        """
        block = np.ones((len(positions), self.points.shape[1] + 1))
        block[:, :-1] = positions
        return block, self.limit(level) + 1 - np.einsum("ij,ij->i", block, block)

    @cached_property
    def _turned(self) -> Floats:
        """The columns (-2 p, |p|^2) of all points p."""
        squared = np.einsum("ij,ij->i", self.points, self.points)
        return np.vstack([-2 * self.points.T, squared]).astype(np.float64)


def _pieces(count: int, width: int) -> list[slice]:
    """Cut a list of records into blocks whose temporaries stay small."""
    step = max(64, (1 << 18) // max(1, width))
    return [slice(start, start + step) for start in range(0, count, step)]


@dataclass(frozen=True, eq=False)
class Balls(DerivedView, _Within):
    """The records of a view within a radius of each of some public or released points."""

    base: RowView
    points: Integers
    radii: tuple[int, ...]

    def __post_init__(self) -> None:
        checked_points(self.points, self.base.width, "points")
        if max(self.radii) > 1 << 18 or min(self.radii) < 0:
            raise ValueError("radii lie outside the range in which distances are exact")

    def limit(self, level: int) -> int:
        return self.radii[level] ** 2

    def positions(self, chunk: Chunk, among: Integers) -> Positions:
        return np.asarray(self.base.rows(chunk)[among])


@dataclass(frozen=True, eq=False)
class SiteBalls(_Within):
    """The records within a radius, in steps of the sites' measure, of each public site.

    With a matrix of distances, the position of a record is the number of its site.
    """

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

    def limit(self, level: int) -> int:
        return self.sites.squared_limit(self.radii[level])

    def positions(self, chunk: Chunk, among: Integers) -> Positions:
        rows = np.asarray(chunk.rows)[among]
        return rows if self.sites.metric == "matrix" else self.sites.positions(rows)

    def holds(self, positions: Positions, level: int, index: int) -> Mask:
        if self.sites.metric != "matrix":
            return super().holds(positions, level, index)
        inside: Mask = self.points[positions, index] <= self.radii[level]
        return inside

    def parts(self, positions: Positions, level: int, counted: Mask | None = None) -> Total:
        if self.sites.metric != "matrix":
            return super().parts(positions, level, counted)
        # How many records are at each site, summed in doubles: integers below 2^53.
        counts = np.bincount(positions, counted, minlength=len(self.points)).astype(np.float64)
        total = np.zeros(self.size(level), dtype=np.int64)
        for part in _pieces(len(self.points), self.size(level)):
            near = (self.points[part] <= self.radii[level]).astype(np.float64)
            total += (counts[part] @ near).astype(np.int64)
        return total
