"""A released picture of the records: made-up points that every later measurement corrects.

k-means on the picture is free, so it takes the place of rounds that few records cannot pay for.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri

from core.arrays import Floats
from core.postprocessing.kmeans import best_kmeans, nearest_points

#: The share of the records that is taken to lie in clumps.
_CLUMPED = 0.9


@dataclass(frozen=True, eq=False)
class Leaves:
    """Cells from their lower to their upper corners, and the number of records to expect in each."""

    low: Floats
    high: Floats
    weights: Floats

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        low, high, weights = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("low", "high", "weights")
        )
        return cls(low, high, weights)


@dataclass(frozen=True, eq=False)
class Picture:
    """Points that stand for records, each for as many as it weighs."""

    points: Floats
    weights: Floats

    def masses(self, centres: Floats) -> Floats:
        """The weight nearest to each centre."""
        owner = nearest_points(self.points, centres)
        return np.bincount(owner, self.weights, minlength=len(centres)).astype(np.float64)

    def corrected(self, centres: Floats, moves: Floats, sizes: Floats) -> "Picture":
        """The picture in which the clusters of these centres have moved, and have these sizes."""
        owner = nearest_points(self.points, centres)
        mass = np.bincount(owner, self.weights, minlength=len(centres))
        scale = sizes / np.maximum(mass, 1e-9)
        return Picture(self.points + moves[owner], self.weights * scale[owner])

    def means(
        self, k: int, draw: np.random.Generator, start: Floats | None = None, anew: bool = True
    ) -> Floats:
        """k means of the picture: the best of those that this start and, if asked, new ones lead to."""
        return best_kmeans(self.points, self.weights, k, draw, start, anew)


def cell_chances(low: Floats, high: Floats, deviations: Floats) -> Floats:
    """The chance of each cell under a normal law of these deviations, never zero."""
    sides = ndtr(high / deviations) - ndtr(low / deviations)
    chances: Floats = np.prod(np.maximum(sides, 1e-12), axis=-1)
    return chances


def expected_counts(measured: Floats, errors: Floats, prior: Floats, clump: float) -> Floats:
    """The number of records to expect in each cell, given its noisy count and what it would hold on average.

    The law of what a cell holds is a mixture of two exponential ones, of a small mean and of clumps of about
    `clump`; given a count with Gaussian noise each becomes a normal law cut at zero.
    """
    large = np.maximum(clump, prior)
    chance = np.minimum(_CLUMPED * prior / large, 0.5)
    small = np.maximum((1 - _CLUMPED) * prior, 1e-3)
    evidence, means = [], []
    for mean in (small, large):
        place = measured / errors - errors / mean
        tail = log_ndtr(place)
        evidence.append(tail - measured / mean + 0.5 * (errors / mean) ** 2 - np.log(mean))
        beyond = np.exp(-0.5 * place**2 - tail) / math.sqrt(2 * math.pi)
        means.append(errors * np.maximum(place + beyond, 0.0))
    odds = evidence[1] - evidence[0] + np.log(np.maximum(chance, 1e-30)) - np.log1p(-chance)
    trust = expit(odds)
    expected: Floats = means[0] * (1 - trust) + means[1] * trust + 1e-9
    return expected


def painted(
    leaves: Leaves, deviations: Floats, outside: float, count: int, draw: np.random.Generator
) -> Picture:
    """About `count` points of the density that leaves tell: in each a normal law, cut at the leaf's sides.

    `deviations` are those of all records along each axis; along axes that no leaf is cut by, points keep
    the share `outside` of them.
    """
    axes = leaves.low.shape[1]
    ends = np.cumsum(leaves.weights) / leaves.weights.sum() * count + draw.uniform()
    owner = np.repeat(np.arange(len(ends)), np.diff(np.floor(ends).astype(np.int64), prepend=0))
    deviation = np.maximum(deviations[:axes], 1.0)
    low, high = leaves.low[owner] / deviation, leaves.high[owner] / deviation
    inner = _cut_normal(low, high, draw) * deviation
    outer = draw.normal(size=(len(owner), len(deviations) - axes)) * (outside * deviations[axes:])
    weights = np.full(len(owner), float(leaves.weights.sum()) / max(len(owner), 1))
    return Picture(np.concatenate([inner, outer], axis=1), weights)


def _cut_normal(low: Floats, high: Floats, draw: np.random.Generator) -> Floats:
    """Draws of the standard normal law between these limits."""
    # Intervals on the right are mirrored: the left tail of the normal law keeps its precision.
    mirrored = low > 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    below, above = ndtr(low), ndtr(high)
    drawn = ndtri(np.clip(below + draw.uniform(size=low.shape) * (above - below), 1e-300, 1 - 1e-16))
    drawn = np.clip(drawn, low, high)
    return np.where(mirrored, -drawn, drawn)
