"""Sums of rows and of clipped residuals: of all records, by centre or by bucket."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Integers
from core.data import UNITS, Chunk
from core.kernels.accumulate import clipped_sums, column_sums, weighted_sums
from core.kernels.clipping import WEIGHT_ONE, clip_weights
from core.privacy import Sensitivity
from core.views import Assigned, Buckets, RowView


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
        ones = np.ones(len(labels), dtype=np.int64)
        return weighted_sums(self.rows.rows(chunk), labels, ones, self.shape[0])


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
class BucketSums:
    """For each listed bucket the number of its records, and the sum of their residuals about its middle.

    A row holds the residuals in units of 2^-15, then the count times 2^15 times `radius`: a record adds to
    one row a vector of length at most 2^15 sqrt(2) radius.
    """

    kind: ClassVar[str] = "bucket-sums"
    view: Buckets
    listed: Integers

    def __post_init__(self) -> None:
        if self.listed.dtype.kind != "i" or np.any(np.diff(self.listed) <= 0):
            raise ValueError("listed buckets are increasing integers")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def radius(self) -> int:
        return self.view.radius

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.listed), self.view.base.width + 1)

    @property
    def sensitivity(self) -> Sensitivity:
        length = self.radius * WEIGHT_ONE * math.sqrt(2)
        return Sensitivity(np.array([length]), l1=math.sqrt(self.shape[1]), grid=WEIGHT_ONE)

    def of(self, chunk: Chunk) -> Integers:
        numbers, other = self.view.numbers(chunk), len(self.listed)
        # Other records go into a bucket of their own, which is thrown away: they take as long as these.
        listed = np.append(self.listed, -1)
        places = np.searchsorted(self.listed, numbers)
        labels = np.where(listed[places] == numbers, places, other).astype(np.int32)
        rows = (np.asarray(self.view.base.rows(chunk)) - self.view.middles(numbers)).astype(np.int32)
        squared = np.einsum("ij,ij->i", rows.astype(np.int64), rows.astype(np.int64))
        weights = clip_weights(squared, self.radius)
        sums = weighted_sums(rows, labels, weights, other + 1)[:-1]
        counts = np.bincount(labels, minlength=other + 1).astype(np.int64)[:-1]
        return np.concatenate([sums, (counts * WEIGHT_ONE * self.radius)[:, None]], axis=1)


def bucket_means(statistic: BucketSums, released: Integers) -> npt.NDArray[np.float64]:
    """Noisy means of the listed buckets' records, no farther from the middles than records can be."""
    counts = released[:, -1] / (WEIGHT_ONE * statistic.radius)
    residuals = released[:, :-1] / WEIGHT_ONE / np.maximum(counts, 1.0)[:, None]
    lengths = np.maximum(np.linalg.norm(residuals, axis=1, keepdims=True), 1e-12)
    residuals *= np.minimum(1.0, statistic.radius / lengths)
    means: npt.NDArray[np.float64] = statistic.view.middles(statistic.listed) + residuals
    return means
