"""Released points near many records: candidates for centres, from partition trees or from hashing."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from core.arrays import Integers
from core.blocks.base import Block
from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms.noise import additive_noise
from core.mechanisms.threshold import threshold
from core.plan import Step
from core.postprocessing.bounds import inside_ball
from core.privacy.losses import Gaussian, Pure
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import BucketCounts, CubeCounts
from core.statistics.sums import BucketSums, bucket_means
from core.views import Buckets, Cubes, Projected, RowView

#: Empty children of a cube that turn active on average: few enough for trees to stay small.
_FALSE_CHILDREN = 0.05
_FALSE_BUCKETS = 1.0  # Buckets without records that pass for full ones, in all tables together, on average.
_FINDING = 0.5  # The part of the budget that finds full buckets; the rest averages them.


@dataclass(frozen=True, eq=False)
class Regions:
    """Released regions in which records crowd: a point in each, and how far it reaches along every axis."""

    points: Integers
    reaches: Integers

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        return cls(
            np.concatenate([part.points for part in parts]), np.concatenate([part.reaches for part in parts])
        )

    def candidates(self, count: int, draw: np.random.Generator) -> Integers:
        """Exactly this many points inside the ball: those of the regions, and random ones of small regions.

        The length of the list is planned, so that the work of a search does not follow how many regions were
        found. Where more points are wanted than there are, smaller regions get more of them.
        """
        points, first = np.unique(inside_ball(self.points), axis=0, return_index=True)
        if len(points) >= count:
            return points[np.sort(draw.choice(len(points), count, replace=False))]
        reaches = self.reaches[first]
        narrow = 1.0 / np.maximum(reaches, 1)
        chosen = draw.choice(len(points), count - len(points), p=narrow / narrow.sum())
        offsets = draw.uniform(-1.0, 1.0, size=(len(chosen), points.shape[1])) * reaches[chosen, None]
        return np.concatenate([points, inside_ball(points[chosen] + np.trunc(offsets).astype(np.int64))])


@dataclass(frozen=True)
class TreeCandidates(Block):
    """The centres of crowded cubes of randomly shifted partition trees.

    A cube is split into its 2^p halves in every direction; a child stays active if its noisy count exceeds a
    limit, whether it is empty or not. All that a level releases is which children those are.
    """

    shares: Shares
    fraction: float
    trees: int
    depth: int
    dimension: int
    #: Cubes that each level and each tree keeps, at most.
    most: int
    #: The count to exceed; None: one that noise alone rarely exceeds.
    limit: int | None = None
    trials: int = 1
    name: str = "partition"
    purpose: str = "cubes in which records crowd"

    def steps(self) -> tuple[Step, ...]:
        levels = self.trials * self.trees * self.depth
        loss = self.shares.noise(self.fraction, levels)
        log_tail = math.log(_FALSE_CHILDREN) - self.dimension * math.log(2)
        limit = self.limit if self.limit is not None else _quiet_limit(loss, log_tail)
        return (self.step(self.name, threshold(loss, limit), CubeCounts, levels, self.purpose),)

    def run(self, probe: Probe, rows: RowView, draw: np.random.Generator) -> Regions:
        return Regions.joined([self._tree(probe, rows, draw) for _ in range(self.trees)])

    def _tree(self, probe: Probe, rows: RowView, draw: np.random.Generator) -> Regions:
        """All active cubes of one tree; large levels are thinned without looking at data."""
        width = rows.width
        shift = np.trunc(draw.uniform(-UNITS, UNITS, size=width)).astype(np.int64)
        cubes = Cubes(rows, shift)
        corners = (shift - (1 << 16))[None, :]
        side = 1 << Cubes.DEPTH
        found = [_cubes(corners, side)]
        for _ in range(self.depth):
            children = _thinned(self.measure(probe, self.name, CubeCounts(cubes)), self.most, draw)
            if len(children) == 0:
                break
            side //= 2
            bits = (children[:, None] >> np.arange(width)) & 1
            corners = corners[children >> width] + bits * side
            found.append(_cubes(corners, side))
            if cubes.level + 1 == Cubes.DEPTH:
                break
            cubes = Cubes(rows, shift, cubes, children)
        return Regions.joined(found)


def _cubes(corners: Integers, side: int) -> Regions:
    return Regions(corners + side // 2, np.full(len(corners), side // 2))


def _quiet_limit(loss: Gaussian | Pure, log_tail: float) -> int:
    """The count that noise alone exceeds with this (logarithm of a) probability."""
    if isinstance(loss, Gaussian):
        return math.ceil(-float(ndtri(math.exp(log_tail))) / loss.mu)
    return math.ceil(-(log_tail + math.log(2)) / loss.epsilon)


@dataclass(frozen=True)
class HashedCandidates(Block):
    """The noisy means of full buckets, after Kaplan and Stemmer (2018): one table for each width of buckets.

    The hash is a random rotation and a random shift of a grid. A bucket is kept above what noise alone
    exceeds in few of all the buckets there are; constants are derived in `core/views/buckets.md`.
    """

    shares: Shares
    fraction: float
    widths: tuple[int, ...]
    dimension: int
    #: Buckets of each table that are averaged, at most.
    most: int

    def steps(self) -> tuple[Step, ...]:
        tables, finest = len(self.widths), min(self.widths)
        find = self.shares.noise(self.fraction * _FINDING, tables)
        average = additive_noise(self.shares.noise(self.fraction * (1 - _FINDING), tables))
        log_buckets = self.dimension * math.log(2 * -(-(UNITS + finest) // finest) + 1)
        limit = _quiet_limit(find, math.log(_FALSE_BUCKETS / tables) - log_buckets)
        return (
            self.step("buckets", threshold(find, limit), BucketCounts, tables, "buckets with many records"),
            self.step("bucket-means", average, BucketSums, tables, "the mean of each of them"),
        )

    def run(self, probe: Probe, rows: RowView, draw: np.random.Generator) -> Regions:
        """The full buckets of all tables about their means, in the units of the rows, and the whole ball."""
        found = [Regions(np.zeros((1, rows.width), dtype=np.int64), np.full(1, UNITS))]
        for width in self.widths:
            rotation = np.linalg.qr(draw.normal(size=(rows.width, rows.width)))[0]
            turned = Projected(rows, np.rint(rotation * WEIGHT_ONE).astype(np.int64), rows.radius)
            view = Buckets(turned, draw.integers(0, width, size=rows.width), width)
            listed = _thinned(self.measure(probe, "buckets", BucketCounts(view)), self.most, draw)
            if len(listed):
                statistic = BucketSums(view, listed)
                means = bucket_means(statistic, self.measure(probe, "bucket-means", statistic))
                points = np.rint(means @ rotation.T).astype(np.int64)
                found.append(Regions(points, np.full(len(points), width // 2)))
        return Regions.joined(found)


def _thinned(listed: Integers, most: int, draw: np.random.Generator) -> Integers:
    """At most this many of the listed cells, chosen at random."""
    return listed if len(listed) <= most else np.sort(draw.choice(listed, most, replace=False))
