"""What may be measured: additive functions of records that declare how much one record can change them.

A statistic is a sum over records of integers. The proof that its declared sensitivity holds is in
`statistics.md`, under its name.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from core.arithmetic import (
    WEIGHT_ONE,
    Integers,
    clipped_sums,
    coarse_radius,
    column_sums,
    nearest,
    second_moments,
)
from core.counting import bin_counts, value_counts
from core.domain import UNITS
from core.sensitivity import Sensitivity
from core.sites import SiteDistances
from core.source import Chunk
from core.totals import SparseCounts
from core.views import Assigned, PathCodes, RowView

__all__ = [
    "ClusterCounts",
    "Count",
    "NormHistogram",
    "PrefixCounts",
    "ResidualSums",
    "SecondMoments",
    "SiteCounts",
    "SparseStatistic",
    "Statistic",
    "Sums",
]


@runtime_checkable
class Statistic(Protocol):
    """An additive, integer-valued function of records."""

    kind: ClassVar[str]

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    @property
    def sensitivity(self) -> Sensitivity: ...

    def of(self, chunk: Chunk) -> Integers:
        """The sum over one chunk."""


@runtime_checkable
class SparseStatistic(Protocol):
    """How many records lie in each cell of a family too large to list."""

    kind: ClassVar[str]

    @property
    def domain(self) -> str:
        """Fingerprint of the domain it is for."""

    @property
    def family(self) -> int:
        """How many cells there are, occupied or not."""

    @property
    def sensitivity(self) -> Sensitivity: ...

    def of(self, chunk: Chunk) -> SparseCounts:
        """The counts over one chunk."""


@dataclass(frozen=True, eq=False)
class Count:
    """The number of records."""

    kind: ClassVar[str] = "count"
    domain: str

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        return np.array([len(chunk)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Sums:
    """The sum of a view's rows, as one block."""

    kind: ClassVar[str] = "sums"
    view: RowView

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.view.width)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(np.array([float(self.view.radius)]), l1=math.sqrt(self.view.width))

    def of(self, chunk: Chunk) -> Integers:
        return column_sums(self.view.rows(chunk))[None, :]


@dataclass(frozen=True, eq=False)
class ClusterCounts:
    """How many records have each centre as their nearest."""

    kind: ClassVar[str] = "cluster-counts"
    view: Assigned

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres),)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        return np.bincount(self.view.assignment(chunk).labels, minlength=self.shape[0]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class NormHistogram:
    """For each centre a histogram of the distances of its records: bin b holds those up to edges[b]."""

    kind: ClassVar[str] = "norm-histogram"
    view: Assigned
    edges: Integers

    def __post_init__(self) -> None:
        if self.edges.dtype.kind != "i" or self.edges.min() < 0 or np.any(np.diff(self.edges) <= 0):
            raise ValueError("edges are increasing integers of at least zero")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), len(self.edges))

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        found = self.view.assignment(chunk)
        return bin_counts(found.labels, found.squared, self.edges.astype(np.int64) ** 2, self.shape[0])


@dataclass(frozen=True, eq=False)
class ResidualSums:
    """For each centre the sum of its records' residuals, each clipped to the centre's radius.

    Entries are in units of 2^-15 (`WEIGHT_ONE` per encoded unit): clipping multiplies a residual by an
    integer weight, and no coordinate is truncated.
    """

    kind: ClassVar[str] = "residual-sums"
    view: Assigned
    radii: Integers

    def __post_init__(self) -> None:
        if self.radii.shape != (len(self.view.centres),) or self.radii.dtype.kind != "i":
            raise ValueError("one integer radius for each centre")
        if self.radii.min() < 1 or self.radii.max() > 2 * UNITS:
            raise ValueError("a clipping radius lies between 1 and the diameter of the domain")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), self.view.base.width)

    @property
    def sensitivity(self) -> Sensitivity:
        scales = self.radii.astype(np.float64)[:, None] * WEIGHT_ONE
        return Sensitivity(scales, l1=math.sqrt(self.view.base.width), grid=WEIGHT_ONE)

    def of(self, chunk: Chunk) -> Integers:
        found = self.view.assignment(chunk)
        rows = self.view.base.rows(chunk)
        return clipped_sums(rows, found.labels, found.squared, self.radii, self.view.centres)


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """The sum of z z^T, z = row - centre clipped to `radius`, as its packed upper triangle.

    With a shift z is rounded to steps of 2^shift, and clipped once more: coarse rows are multiplied faster.
    A record's vector of diagonal entries and sqrt(2) times the others has norm |z|^2 <= `steps`^2.
    """

    kind: ClassVar[str] = "second-moments"
    view: RowView
    centre: Integers
    radius: int
    shift: int = 0

    def __post_init__(self) -> None:
        if self.centre.shape != (self.view.width,) or self.centre.dtype.kind != "i":
            raise ValueError("the centre of second moments is one integer row")
        if not 1 <= self.radius <= 2 * UNITS:
            raise ValueError("a clipping radius lies between 1 and the diameter of the domain")
        if not 0 <= self.shift <= 15 or self.radius >> self.shift == 0:
            raise ValueError("steps are powers of two of at most the clipping radius")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.view.width * (self.view.width + 1) // 2)

    @property
    def steps(self) -> int:
        """What z is clipped to, in its own steps."""
        return coarse_radius(self.radius, self.shift, self.view.width)

    @property
    def sensitivity(self) -> Sensitivity:
        width = self.view.width
        rows, columns = np.triu_indices(width)
        scales = np.where(rows == columns, 1.0, math.sqrt(0.5)) * float(self.steps) ** 2
        return Sensitivity(scales[None, :], l1=float(width))

    def of(self, chunk: Chunk) -> Integers:
        return second_moments(self.view.rows(chunk), self.centre, self.radius, self.shift)[None, :]


@dataclass(frozen=True, eq=False)
class PrefixCounts:
    """How many records' paths begin with each of the listed prefixes (path >> shift), and no others."""

    kind: ClassVar[str] = "prefix-counts"
    view: PathCodes
    shift: int
    prefixes: Integers

    def __post_init__(self) -> None:
        if np.any(np.diff(self.prefixes) <= 0) or self.prefixes.dtype.kind != "i":
            raise ValueError("prefixes are increasing integers")
        if len(self.prefixes) and not 0 <= self.prefixes[0] <= self.prefixes[-1] < 1 << self._bits:
            raise ValueError("prefixes name cells of the tree")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.prefixes),)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        return value_counts(self.view.codes(chunk), self.shift, self.prefixes, self._bits)

    @property
    def _bits(self) -> int:
        return len(self.view.axes) - self.shift


@dataclass(frozen=True, eq=False)
class SiteCounts:
    """How many records have each of some public sites as their nearest; ties go to the one listed first."""

    kind: ClassVar[str] = "site-counts"
    sites: SiteDistances
    listed: Integers

    @property
    def domain(self) -> str:
        return self.sites.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.listed),)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        rows = np.asarray(chunk.rows)
        if self.sites.metric == "matrix":
            labels = self.sites.sites[:, self.listed].argmin(axis=1)[rows]
        else:
            # Squared lengths of at most 2^52: what is nearest by them is nearest in whole steps too.
            labels = nearest(self.sites.positions(rows), self.sites.sites[self.listed], 1 << 25)[0]
        return np.bincount(labels, minlength=len(self.listed)).astype(np.int64)
