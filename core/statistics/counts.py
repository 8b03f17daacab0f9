"""Counts of records: in all, by centre, site, distance or cell."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.kernels.counting import bin_counts, value_counts
from core.kernels.geometry import nearest
from core.kernels.sparse_counts import SparseCounts
from core.privacy.sensitivity import Sensitivity
from core.statistics.base import Counts, FamilyCounts, Statistic
from core.views import Assigned, Buckets, ColumnBins, Cubes, GridCells, PathCodes, SiteDistances
from core.views.base import require_increasing


@dataclass(frozen=True, eq=False)
class Count(Counts):
    """The number of records."""

    kind: ClassVar[str] = "count"
    fingerprint: str

    @property
    def domain(self) -> str:
        return self.fingerprint

    @property
    def shape(self) -> tuple[int, ...]:
        return (1,)

    def of(self, chunk: Chunk) -> Integers:
        return np.array([len(chunk)], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ClusterCounts(Counts):
    """Number of records nearest to each centre."""

    kind: ClassVar[str] = "cluster-counts"
    view: Assigned

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres),)

    def of(self, chunk: Chunk) -> Integers:
        return np.bincount(self.view.assignment(chunk).labels, minlength=self.shape[0]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class ColumnHistograms(Statistic):
    """A histogram of each of some columns: one record adds a one to one bin of every column."""

    kind: ClassVar[str] = "column-histograms"
    view: ColumnBins

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.lines), self.view.bins)

    @property
    def sensitivity(self) -> Sensitivity:
        columns = self.shape[0]
        return Sensitivity(
            l1=columns, l2=math.sqrt(columns), one_block=columns == 1, monotone=True, touched=columns
        )

    def of(self, chunk: Chunk) -> Integers:
        found = self.view.of(chunk) + np.arange(self.shape[0]) * self.view.bins
        return np.bincount(found.reshape(-1), minlength=math.prod(self.shape)).reshape(self.shape)


@dataclass(frozen=True, eq=False)
class _DistanceCounts(Counts):
    """Counts of records by their distance to the nearest centre: bin b holds those up to edges[b]."""

    view: Assigned
    edges: Integers

    def __post_init__(self) -> None:
        require_increasing(self.edges, "edges")


@dataclass(frozen=True, eq=False)
class NormHistogram(_DistanceCounts):
    """A histogram of distances for each centre."""

    kind: ClassVar[str] = "norm-histogram"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), len(self.edges))

    def of(self, chunk: Chunk) -> Integers:
        found = self.view.assignment(chunk)
        return bin_counts(found.labels, found.squared, self.edges.astype(np.int64) ** 2, self.shape[0])


@dataclass(frozen=True, eq=False)
class PooledHistogram(_DistanceCounts):
    """One histogram of distances for all records together."""

    kind: ClassVar[str] = "pooled-histogram"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.edges),)

    def of(self, chunk: Chunk) -> Integers:
        squared = self.view.assignment(chunk).squared
        together = np.zeros(len(squared), dtype=np.int16)
        counted: Integers = bin_counts(together, squared, self.edges.astype(np.int64) ** 2, 1)[0]
        return counted


@dataclass(frozen=True, eq=False)
class PrefixCounts(Counts):
    """Number of records whose path begins with each listed prefix (path >> shift)."""

    kind: ClassVar[str] = "prefix-counts"
    view: PathCodes
    shift: int
    prefixes: Integers

    def __post_init__(self) -> None:
        require_increasing(self.prefixes, "prefixes")
        if len(self.prefixes) and self.prefixes[-1] >= 1 << (len(self.view.axes) - self.shift):
            raise ValueError("prefixes name cells of the tree")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.prefixes),)

    def of(self, chunk: Chunk) -> Integers:
        bits = len(self.view.axes) - self.shift
        return value_counts(self.view.codes(chunk), self.shift, self.prefixes, bits)


@dataclass(frozen=True, eq=False)
class SiteCounts(Counts):
    """Number of records nearest to each of some public sites; ties go to the one listed first."""

    kind: ClassVar[str] = "site-counts"
    view: SiteDistances
    listed: Integers

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.listed),)

    def of(self, chunk: Chunk) -> Integers:
        rows = np.asarray(chunk.rows)
        if self.view.metric == "matrix":
            labels = self.view.sites[:, self.listed].argmin(axis=1)[rows]
        else:
            # Squared lengths of at most 2^52: what is nearest by them is nearest in whole steps too.
            labels = nearest(self.view.positions(rows), self.view.sites[self.listed], 1 << 25)[0]
        return np.bincount(labels, minlength=len(self.listed)).astype(np.int64)


@dataclass(frozen=True, eq=False)
class CubeCounts(FamilyCounts):
    """Number of records in each of the 2^width children of every active cube of a partition tree."""

    kind: ClassVar[str] = "cube-counts"
    view: Cubes

    def of(self, chunk: Chunk) -> SparseCounts:
        children = self.view.children(chunk)
        return SparseCounts.of(self.family, children[children >= 0])


@dataclass(frozen=True, eq=False)
class GridCounts(Counts):
    """Number of records in each cell of a uniform grid."""

    kind: ClassVar[str] = "grid-counts"
    view: GridCells

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.view.cells**self.view.base.width,)

    def of(self, chunk: Chunk) -> Integers:
        return np.bincount(self.view.codes(chunk), minlength=self.shape[0]).astype(np.int64)


@dataclass(frozen=True, eq=False)
class BucketCounts(FamilyCounts):
    """Number of records in each bucket, empty ones included."""

    kind: ClassVar[str] = "bucket-counts"
    view: Buckets

    def of(self, chunk: Chunk) -> SparseCounts:
        return SparseCounts.of(self.family, self.view.numbers(chunk))
