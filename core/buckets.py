"""Buckets of a locality-sensitive hash: how full they are, and where in them their records lie.

Records that lie near each other mostly fall into one bucket, a cell of a rotated and shifted grid. Counts are
over all buckets there are, occupied or not; sums are about the middles of released ones. See `buckets.md`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from core.arithmetic import WEIGHT_ONE, Integers, clip_weights, weighted_sums
from core.sensitivity import Sensitivity
from core.source import Chunk
from core.totals import LARGEST_FAMILY, SparseCounts
from core.views import RowView, View

__all__ = ["BucketCounts", "BucketSums", "Buckets", "bucket_means"]


@dataclass(frozen=True, eq=False)
class Buckets(View):
    """The bucket of each row: floor((row + shift) / width) by coordinate, as one number.

    The base is rows that were rotated at random; `shift` is random in [0, width). Rows have norms of at most
    the base's radius, so coordinates run from -half to half, whatever the data.
    """

    base: RowView
    shift: Integers
    width: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.shift.shape != (self.base.width,) or self.shift.dtype.kind != "i":
            raise ValueError("buckets have a width of at least one and an integer shift for each coordinate")
        if self.shift.min() < 0 or self.shift.max() >= self.width:
            raise ValueError("a shift lies between zero and the width of a bucket")
        if self.family > LARGEST_FAMILY:
            raise ValueError("there are too many buckets: make them wider")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the root
        return self.base.domain

    @property
    def half(self) -> int:
        return -(-(self.base.radius + self.width) // self.width)

    @property
    def family(self) -> int:
        """How many buckets there are."""
        return int((2 * self.half + 1) ** self.base.width)

    def numbers(self, chunk: Chunk) -> Integers:
        """The bucket of each record of a chunk."""
        rows = np.asarray(self.base.rows(chunk)).astype(np.int64)
        cells = (rows + self.shift) // self.width + self.half
        found = np.zeros(len(rows), dtype=np.int64)
        for axis in range(self.base.width):
            found = found * (2 * self.half + 1) + cells[:, axis]
        return found

    def middles(self, numbers: Integers) -> Integers:
        """The middles of some buckets, in the units of the base."""
        side, rest, columns = 2 * self.half + 1, numbers, []
        for _ in range(self.base.width):
            columns.append(rest % side)
            rest = rest // side
        cells = np.stack(columns[::-1], axis=-1) - self.half
        return cells * self.width - self.shift + self.width // 2

    @property
    def radius(self) -> int:
        """No row of a bucket lies farther from its middle."""
        return max(1, math.ceil(math.sqrt(self.base.width) * (self.width // 2 + 1)))


@dataclass(frozen=True, eq=False)
class BucketCounts:
    """How many records each bucket holds, of all that there are."""

    kind: ClassVar[str] = "bucket-counts"
    view: Buckets

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def family(self) -> int:
        return self.view.family

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(monotone=True)

    def of(self, chunk: Chunk) -> SparseCounts:
        return SparseCounts.of(self.family, self.view.numbers(chunk))


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
        numbers = self.view.numbers(chunk)
        places = np.minimum(np.searchsorted(self.listed, numbers), max(len(self.listed) - 1, 0))
        mine = np.flatnonzero(self.listed[places] == numbers) if len(self.listed) else places[:0]
        labels = places[mine].astype(np.int32)
        rows = np.asarray(self.view.base.rows(chunk))[mine].astype(np.int32)
        rows = (rows - self.view.middles(self.listed)[labels]).astype(np.int32)
        squared = np.einsum("ij,ij->i", rows.astype(np.int64), rows.astype(np.int64))
        weights = clip_weights(squared, self.radius)
        sums = weighted_sums(rows, labels, weights, len(self.listed))
        counts = np.bincount(labels, minlength=len(self.listed)).astype(np.int64)
        return np.concatenate([sums, (counts * WEIGHT_ONE * self.radius)[:, None]], axis=1)


def bucket_means(statistic: BucketSums, released: Integers) -> npt.NDArray[np.float64]:
    """Noisy means of the listed buckets' records, no farther from the middles than records can be."""
    counts = released[:, -1] / (WEIGHT_ONE * statistic.radius)
    residuals = released[:, :-1] / WEIGHT_ONE / np.maximum(counts, 1.0)[:, None]
    lengths = np.maximum(np.linalg.norm(residuals, axis=1, keepdims=True), 1e-12)
    residuals *= np.minimum(1.0, statistic.radius / lengths)
    means: npt.NDArray[np.float64] = statistic.view.middles(statistic.listed) + residuals
    return means
