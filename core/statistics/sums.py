"""Sums of rows, of clipped residuals, of their sizes and second moments, and of few entries of each row."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Integers
from core.data import Chunk
from core.kernels.accumulate import (
    absolute_sums,
    clipped_sums,
    coarse_radius,
    column_sums,
    second_moments,
    weighted_sums,
)
from core.kernels.clipping import WEIGHT_ONE, clip_weights, lifted_heights
from core.privacy.sensitivity import Sensitivity
from core.statistics.base import Statistic
from core.views import Assigned, Buckets, RowView, TopEntries
from core.views.base import require_clipping, require_increasing


@dataclass(frozen=True, eq=False)
class Sums(Statistic):
    """The sum of a view's rows, as one block."""

    kind: ClassVar[str] = "sums"
    view: RowView

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.view.width)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(np.array([float(self.view.radius)]), l1=math.sqrt(self.view.width))

    def of(self, chunk: Chunk) -> Integers:
        return column_sums(self.view.rows(chunk))[None, :]


@dataclass(frozen=True, eq=False)
class ResidualSums(Statistic):
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
        require_clipping(int(self.radii.min()), int(self.radii.max()))

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
class LiftedSums(ResidualSums):
    """Residual sums, and for each centre the sum of its records' heights in a last column.

    A record lies on the half sphere of its clipping radius above its residual: the closer to the centre, the
    higher. Its vector is no longer than the radius, so heights cost nothing in addition to residuals.
    """

    kind: ClassVar[str] = "lifted-sums"

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.view.centres), self.view.base.width + 1)

    @property
    def sensitivity(self) -> Sensitivity:
        return replace(super().sensitivity, l1=math.sqrt(self.shape[1]))

    def of(self, chunk: Chunk) -> Integers:
        found = self.view.assignment(chunk)
        heights = lifted_heights(found.squared, self.radii[found.labels])
        summed = np.bincount(found.labels, heights, minlength=self.shape[0]).astype(np.int64)
        return np.concatenate([super().of(chunk), summed[:, None] * WEIGHT_ONE], axis=1)


@dataclass(frozen=True, eq=False)
class GroupSums(Statistic):
    """For each centre the sum of its records' rows in another view than the one they were assigned in."""

    kind: ClassVar[str] = "group-sums"
    view: Assigned
    rows: RowView

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
class GroupResidualSums(Statistic):
    """For each group the sum of its records' residuals about one centre common to all, clipped to a radius.

    Noise follows how far records reach, not how far the bounds do. Entries are in units of 2^-15.
    """

    kind: ClassVar[str] = "group-residual-sums"
    view: Assigned
    #: The rows that are added, with the centre (just one) that is taken away from them.
    rows: Assigned
    radius: int

    def __post_init__(self) -> None:
        if len(self.rows.centres) != 1:
            raise ValueError("residuals of all groups are about one centre")
        require_clipping(self.radius, self.radius)

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
class BucketSums(Statistic):
    """For each listed bucket the number of its records, and the sum of their residuals about its middle.

    A row holds the residuals in units of 2^-15, then the count times 2^15 times the radius: a record adds to
    one row a vector of length at most 2^15 sqrt(2) times the radius of a bucket.
    """

    kind: ClassVar[str] = "bucket-sums"
    view: Buckets
    listed: Integers

    def __post_init__(self) -> None:
        require_increasing(self.listed, "listed buckets")

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.listed), self.view.base.width + 1)

    @property
    def sensitivity(self) -> Sensitivity:
        length = self.view.radius * WEIGHT_ONE * math.sqrt(2)
        return Sensitivity(np.array([length]), l1=math.sqrt(self.shape[1]), grid=WEIGHT_ONE)

    def of(self, chunk: Chunk) -> Integers:
        numbers, other = self.view.numbers(chunk), len(self.listed)
        # Other records go into a separate bucket, which is discarded: they take as long as these.
        listed = np.append(self.listed, -1)
        places = np.searchsorted(self.listed, numbers)
        labels = np.where(listed[places] == numbers, places, other).astype(np.int32)
        rows = (np.asarray(self.view.base.rows(chunk)) - self.view.middles(numbers)).astype(np.int32)
        squared = np.einsum("ij,ij->i", rows.astype(np.int64), rows.astype(np.int64))
        weights = clip_weights(squared, self.view.radius)
        sums = weighted_sums(rows, labels, weights, other + 1)[:-1]
        counts = np.bincount(labels, minlength=other + 1).astype(np.int64)[:-1]
        return np.concatenate([sums, (counts * WEIGHT_ONE * self.view.radius)[:, None]], axis=1)


def bucket_means(statistic: BucketSums, released: Integers) -> npt.NDArray[np.float64]:
    """Noisy means of the listed buckets' records, no farther from the middles than records can be."""
    radius = statistic.view.radius
    counts = released[:, -1] / (WEIGHT_ONE * radius)
    residuals = released[:, :-1] / WEIGHT_ONE / np.maximum(counts, 1.0)[:, None]
    lengths = np.maximum(np.linalg.norm(residuals, axis=1, keepdims=True), 1e-12)
    residuals *= np.minimum(1.0, radius / lengths)
    means: npt.NDArray[np.float64] = statistic.view.middles(statistic.listed) + residuals
    return means


@dataclass(frozen=True, eq=False)
class AbsoluteSums(Statistic):
    """The sum of |z|, entry by entry, z = row - centre clipped to `radius`: how far each column varies."""

    kind: ClassVar[str] = "absolute-sums"
    view: RowView
    centre: Integers
    radius: int

    def __post_init__(self) -> None:
        _require_row(self.centre, self.view)
        require_clipping(self.radius, self.radius)

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.view.width)

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(np.array([float(self.radius)]), l1=math.sqrt(self.view.width), monotone=True)

    def of(self, chunk: Chunk) -> Integers:
        return absolute_sums(self.view.rows(chunk), self.centre, self.radius)[None, :]


@dataclass(frozen=True, eq=False)
class SecondMoments(Statistic):
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
        _require_row(self.centre, self.view)
        require_clipping(self.radius, self.radius)
        if not 0 <= self.shift <= 15 or self.radius >> self.shift == 0:
            raise ValueError("steps are powers of two of at most the clipping radius")

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.view.width * (self.view.width + 1) // 2)

    @property
    def steps(self) -> int:
        """The radius that z is clipped to, in its own steps."""
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
class EntrySums(GroupSums):
    """For each centre the column sums of its records' rows, cut to few entries of bounded size each."""

    kind: ClassVar[str] = "entry-sums"
    rows: TopEntries

    @property
    def sensitivity(self) -> Sensitivity:
        entries = min(self.rows.entries, self.shape[1])
        scale = np.array([float(self.rows.largest)])
        return Sensitivity(scale, l1=float(entries), l2=math.sqrt(entries), touched=entries)


@dataclass(frozen=True, eq=False)
class PickedSums(EntrySums):
    """The same column sums, at a few released columns for each centre and nowhere else."""

    kind: ClassVar[str] = "picked-sums"
    picks: Integers

    def __post_init__(self) -> None:
        if self.picks.ndim != 2 or len(self.picks) != len(self.view.centres):
            raise ValueError("one row of picked columns for each centre")
        if any(len(set(row)) != len(row) for row in self.picks.tolist()):
            raise ValueError("a column is picked once for each centre")

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.picks.shape[0], self.picks.shape[1])

    def of(self, chunk: Chunk) -> Integers:
        return np.take_along_axis(super().of(chunk), self.picks, axis=1)


def _require_row(centre: Integers, view: RowView) -> None:
    """Refuse a centre that is not one integer row of the view."""
    if centre.shape != (view.width,) or centre.dtype.kind != "i":
        raise ValueError("the centre that residuals are about is one integer row")
