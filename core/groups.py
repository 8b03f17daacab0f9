"""Sums over the records of each group: groups come from one view of a record, what is added from another.

Centres that were found in a projection are recovered with these. Sensitivities are argued in `groups.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from core.arithmetic import WEIGHT_ONE, Integers, Labels, Rows, clip_weights, top_entries, weighted_sums
from core.domain import UNITS
from core.sensitivity import Sensitivity
from core.source import Chunk
from core.views import Assigned, RowView

__all__ = ["EntrySums", "GroupResidualSums", "GroupSums", "PickedSums", "TopEntries"]


@dataclass(frozen=True, eq=False)
class TopEntries(RowView):
    """Sparse rows cut to their `entries` largest magnitudes (ties to the left), each clipped to `largest`."""

    base: RowView
    entries: int
    largest: int

    def __post_init__(self) -> None:
        if self.entries < 1 or not 1 <= self.largest <= UNITS:
            raise ValueError("at least one entry is kept, clipped to between 1 and the radius of the domain")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the root
        return self.base.domain

    @property
    def width(self) -> int:  # type: ignore[override]  # as above
        return self.base.width

    @property
    def radius(self) -> int:  # type: ignore[override]  # as above
        return self.base.radius

    def rows(self, chunk: Chunk) -> Rows:
        return top_entries(self.base.rows(chunk), self.entries, self.largest)


@dataclass(frozen=True, eq=False)
class GroupSums:
    """For each centre the sum of its records' rows in another view than the one they were assigned in."""

    kind: ClassVar[str] = "group-sums"
    view: Assigned
    rows: RowView

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), self.rows.width)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(np.array([float(self.rows.radius)]), l1=math.sqrt(self.rows.width))

    def of(self, chunk: Chunk) -> Integers:
        labels = self.view.assignment(chunk).labels
        rows = self.rows.rows(chunk)
        if isinstance(rows, sp.csr_array):
            return _sparse_sums(rows, labels, self.shape[0])
        return weighted_sums(rows, labels, np.ones(len(labels), dtype=np.int64), self.shape[0])


@dataclass(frozen=True, eq=False)
class GroupResidualSums:
    """For each group the sum of its records' residuals about one centre common to all, clipped to a radius.

    As GroupSums, with noise that follows how far records reach and not how far the bounds do. Entries are in
    units of 2^-15, as those of ResidualSums are.
    """

    kind: ClassVar[str] = "group-residual-sums"
    view: Assigned
    #: The rows that are added, with the centre (just one) that is taken away from them.
    rows: Assigned
    radius: int

    def __post_init__(self) -> None:
        if len(self.rows.centres) != 1:
            raise ValueError("residuals of all groups are about one centre")
        if not 1 <= self.radius <= 2 * UNITS:
            raise ValueError("a clipping radius lies between 1 and the diameter of the domain")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), self.rows.base.width)

    @property
    def sensitivity(self) -> Sensitivity:
        scale = np.array([float(self.radius) * WEIGHT_ONE])
        return Sensitivity(scale, l1=math.sqrt(self.shape[1]), grid=WEIGHT_ONE)

    def of(self, chunk: Chunk) -> Integers:
        labels = self.view.assignment(chunk).labels
        weights = clip_weights(self.rows.assignment(chunk).squared, self.radius)
        groups = self.shape[0]
        sums = weighted_sums(self.rows.base.rows(chunk), labels, weights, groups)
        mass = np.bincount(labels, weights, minlength=groups).astype(np.int64)
        return sums - mass[:, None] * self.rows.centres


@dataclass(frozen=True, eq=False)
class EntrySums:
    """For each centre the column sums of its records' rows, cut to few entries of bounded size each."""

    kind: ClassVar[str] = "entry-sums"
    view: Assigned
    rows: TopEntries

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), self.rows.width)

    @property
    def sensitivity(self) -> Sensitivity:
        entries = self.rows.entries
        scale = np.array([float(self.rows.largest)])
        return Sensitivity(scale, l1=float(entries), l2=math.sqrt(entries), touched=entries)

    def of(self, chunk: Chunk) -> Integers:
        rows = self.rows.rows(chunk)
        assert isinstance(rows, sp.csr_array)
        return _sparse_sums(rows, self.view.assignment(chunk).labels, self.shape[0])


@dataclass(frozen=True, eq=False)
class PickedSums:
    """The same column sums, at a few released columns for each centre and nowhere else."""

    kind: ClassVar[str] = "picked-sums"
    view: Assigned
    rows: TopEntries
    picks: Integers

    def __post_init__(self) -> None:
        if self.picks.ndim != 2 or len(self.picks) != len(self.view.centres):
            raise ValueError("one row of picked columns for each centre")
        if any(len(set(row)) != len(row) for row in self.picks.tolist()):
            raise ValueError("a column is picked once for each centre")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.picks.shape[0], self.picks.shape[1])

    @property
    def sensitivity(self) -> Sensitivity:
        entries = min(self.rows.entries, self.shape[1])
        scale = np.array([float(self.rows.largest)])
        return Sensitivity(scale, l1=float(entries), l2=math.sqrt(entries), touched=entries)

    def of(self, chunk: Chunk) -> Integers:
        whole = EntrySums(self.view, self.rows).of(chunk)
        return np.take_along_axis(whole, self.picks, axis=1)


def _sparse_sums(rows: sp.csr_array, labels: Labels, groups: int) -> Integers:
    """Column sums by group; fewer than 2^30 entries below 2^16 each, so doubles carry them exactly."""
    owner = np.repeat(labels.astype(np.int64), np.diff(rows.indptr))
    cells = owner * rows.shape[1] + rows.indices
    sums = np.bincount(cells, rows.data.astype(np.float64), minlength=groups * rows.shape[1])
    return sums.reshape(groups, rows.shape[1]).astype(np.int64)
