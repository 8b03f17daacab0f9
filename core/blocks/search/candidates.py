"""Released points near many records: candidates for centres, from partition trees or from hashing."""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from core.arrays import Integers
from core.blocks.base import Block
from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.mechanisms.noise import additive_noise
from core.mechanisms.threshold import Threshold, threshold
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
#: Buckets without records that pass for full ones, in all tables together, on average.
_FALSE_BUCKETS = 1.0
#: The part of the budget that finds full buckets; the rest averages them.
_FINDING = 0.5
#: At most this part of `records / limit` cells pass a limit on average, however records lie: the fewer each
#: of them has, the more cells there are, and the fewer pass. Laplace noise: 0.72, Gaussian: 0.65, and a few.
_PASSING = 0.8


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
    #: Levels and trees keep at most so many cubes each.
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

    def expected(self, records: float) -> float:
        """How many cubes pass at most on average, however so many records lie; the roots included."""
        if self.limit is not None:
            return math.inf  # of a limit that was chosen, noise may let any number pass
        passing = _passing(self.steps()[0], records)
        levels = [min(2.0 ** (self.dimension * level), passing) for level in range(1, self.depth + 1)]
        return self.trees * (1 + sum(levels))

    def run(self, probe: Probe, rows: RowView, draw: np.random.Generator) -> Integers:
        return np.concatenate([self._tree(probe, rows, draw) for _ in range(self.trees)])

    def _tree(self, probe: Probe, rows: RowView, draw: np.random.Generator) -> Integers:
        """The centres of all active cubes of one tree; large levels are thinned without looking at data."""
        width = rows.width
        shift = np.trunc(draw.uniform(-UNITS, UNITS, size=width)).astype(np.int64)
        cubes = Cubes(rows, shift)
        corners = (shift - (1 << 16))[None, :]
        side = 1 << Cubes.DEPTH
        found = [corners + side // 2]
        for _ in range(self.depth):
            children = _thinned(self.measure(probe, self.name, CubeCounts(cubes)), self.most, draw)
            if len(children) == 0:
                break
            side //= 2
            bits = (children[:, None] >> np.arange(width)) & 1
            corners = corners[children >> width] + bits * side
            found.append(corners + side // 2)
            if cubes.level + 1 == Cubes.DEPTH:
                break
            cubes = Cubes(rows, shift, cubes, children)
        return np.concatenate(found)


def _passing(step: Step, records: float) -> float:
    """How many cells of a level pass its limit at most on average, however so many records lie."""
    assert isinstance(step.mechanism, Threshold)
    return 1 + _PASSING * records / max(1, step.mechanism.limit)


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
    #: At most so many buckets of each table are averaged.
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

    def expected(self, records: float) -> float:
        """How many buckets pass at most on average, however so many records lie, and the origin."""
        return 1 + len(self.widths) * _passing(self.steps()[0], records)

    def run(self, probe: Probe, rows: RowView, draw: np.random.Generator) -> Integers:
        """Means of the full buckets of all tables, in the units of the rows."""
        found = [np.zeros((1, rows.width))]
        for width in self.widths:
            rotation = np.linalg.qr(draw.normal(size=(rows.width, rows.width)))[0]
            turned = Projected(rows, np.rint(rotation * WEIGHT_ONE).astype(np.int64), rows.radius)
            view = Buckets(turned, draw.integers(0, width, size=rows.width), width)
            listed = _thinned(self.measure(probe, "buckets", BucketCounts(view)), self.most, draw)
            if len(listed):
                statistic = BucketSums(view, listed)
                means = bucket_means(statistic, self.measure(probe, "bucket-means", statistic))
                found.append(means @ rotation.T)
        return np.rint(np.concatenate(found)).astype(np.int64)


def _thinned(listed: Integers, most: int, draw: np.random.Generator) -> Integers:
    """At most so many of the listed cells, chosen at random."""
    return listed if len(listed) <= most else np.sort(draw.choice(listed, most, replace=False))


def candidate_points(centres: Integers, least: int, most: int, draw: np.random.Generator) -> Integers:
    """The centres clipped into the ball, thinned or filled at random to `least` to `most` of them."""
    points = np.unique(inside_ball(centres), axis=0)
    points = points[_thinned(np.arange(len(points)), most, draw)]
    missing = max(0, least - len(points))
    width = centres.shape[1]
    filling = draw.normal(size=(missing, width))
    lengths = UNITS * draw.uniform(size=(missing, 1)) ** (1 / width)
    filling *= lengths / np.maximum(np.linalg.norm(filling, axis=1, keepdims=True), 1e-12)
    return np.concatenate([points, inside_ball(np.trunc(filling).astype(np.int64))])
