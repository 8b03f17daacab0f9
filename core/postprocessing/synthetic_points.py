"""Synthetic points: weighted points that stand for records, drawn from a released density estimate.

Every later measurement corrects them. k-means on them reads no records and so costs no budget, unlike
rounds of Lloyd's algorithm, for which few records leave too much noise.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import expit, log_ndtr, ndtr, ndtri

from core.arrays import Floats
from core.postprocessing.kmeans import best_kmeans, nearest_points

_CLUMPED = 0.9  # The share of the records that is expected to lie in clumps.


@dataclass(frozen=True, eq=False)
class Leaves:
    """Cells of a tree: their lower and upper corners, and the expected number of records in each."""

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
class SyntheticPoints:
    """Points that represent records; a point's weight is the number of records that it represents."""

    points: Floats
    weights: Floats

    def masses(self, centres: Floats) -> Floats:
        """The total weight of the points nearest to each centre."""
        owner = nearest_points(self.points, centres)
        return np.bincount(owner, self.weights, minlength=len(centres)).astype(np.float64)

    def corrected(self, centres: Floats, moves: Floats, sizes: Floats) -> "SyntheticPoints":
        """The points after each cluster, those nearest to a centre, was moved and reweighted to its size."""
        owner = nearest_points(self.points, centres)
        mass = np.bincount(owner, self.weights, minlength=len(centres))
        scale = sizes / np.maximum(mass, 1e-9)
        return SyntheticPoints(self.points + moves[owner], self.weights * scale[owner])

    def means(
        self, k: int, draw: np.random.Generator, start: Floats | None = None, new_starts: bool = True
    ) -> Floats:
        """k-means of the points: the best result from `start` and, if `new_starts`, from new ones."""
        return best_kmeans(self.points, self.weights, k, draw, start, new_starts)


def cell_chances(low: Floats, high: Floats, deviations: Floats) -> Floats:
    """The probability of each cell under a normal distribution of these deviations, never zero."""
    sides = ndtr(high / deviations) - ndtr(low / deviations)
    chances: Floats = np.prod(np.maximum(sides, 1e-12), axis=-1)
    return chances


def expected_counts(measured: Floats, errors: Floats, prior: Floats, clump: float) -> Floats:
    """The posterior mean of the number of records in each cell, given its noisy count and its prior mean.

    The prior is a mixture of two exponential distributions, one of a small mean and one of clumps of about
    `clump` records. Given a count with Gaussian noise, each becomes a normal distribution truncated at zero.
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


def sample_leaves(
    leaves: Leaves, deviations: Floats, outside: float, count: int, draw: np.random.Generator
) -> SyntheticPoints:
    """About `count` points: as many in each leaf as its weight says, normal and truncated at its sides.

    `deviations` are those of all records along each axis; along axes that the tree does not cut, points
    have the share `outside` of them.
    """
    axes = leaves.low.shape[1]
    ends = np.cumsum(leaves.weights) / leaves.weights.sum() * count + draw.uniform()
    owner = np.repeat(np.arange(len(ends)), np.diff(np.floor(ends).astype(np.int64), prepend=0))
    deviation = np.maximum(deviations[:axes], 1.0)
    low, high = leaves.low[owner] / deviation, leaves.high[owner] / deviation
    inner = _truncated_normal(low, high, draw) * deviation
    outer = draw.normal(size=(len(owner), len(deviations) - axes)) * (outside * deviations[axes:])
    weights = np.full(len(owner), float(leaves.weights.sum()) / max(len(owner), 1))
    return SyntheticPoints(np.concatenate([inner, outer], axis=1), weights)


def _truncated_normal(low: Floats, high: Floats, draw: np.random.Generator) -> Floats:
    """Draws from the standard normal distribution, truncated to these intervals."""
    # Positive intervals are mirrored: in floating point only the left tail is precise.
    mirrored = low > 0
    low, high = np.where(mirrored, -high, low), np.where(mirrored, -low, high)
    below, above = ndtr(low), ndtr(high)
    drawn = ndtri(np.clip(below + draw.uniform(size=low.shape) * (above - below), 1e-300, 1 - 1e-16))
    drawn = np.clip(drawn, low, high)
    return np.where(mirrored, -drawn, drawn)
