"""Distributions of distances, estimated from noisy histograms."""

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtri

from core.arrays import Floats, Integers

#: Assumed likeness of distances in different clusters: the share of a bin varies between clusters
#: as if each had been seen this many times before. Bins that are rare everywhere are believed less.
_LIKENESS = 3.0
_SURPRISE_CHANCE = 0.006  # A bin that noise alone would fill with less than this chance is taken as real.
_MOST_SHIFT = 15  # Clusters may be this many bins wider or tighter than all together, at most.
_SHIFT_POWER = 1.0  # The chance of a shift falls with its number of bins to this power.
#: Chance that noise alone makes a histogram reach further than its records, and the runs of bins looked at.
_TAIL_CHANCE = 0.05
_RUNS = (1, 2, 3, 4, 6, 8)
_LEAST_QUANTILE = 0.5  # Clipping is never tighter than this quantile of a cluster's distances.
#: Move of a mean when its largest residuals are clipped, as a share of the mean overshoot.
_BIAS_PER_OVERSHOOT = 0.25


def geometric_edges(largest: int, factor: float, bins: int) -> Integers:
    """Increasing integers up to `largest`, each about `factor` times the one before."""
    edges = np.rint(largest * factor ** -np.arange(bins - 1.0, -1.0, -1.0))
    return np.unique(np.maximum(edges, 1)).astype(np.int64)


@dataclass(frozen=True)
class CountNoise:
    """The law of the noise in one count, and its quantiles."""

    deviation: float
    #: Laplace noise has the longer tails: the same chance lies more standard deviations out.
    long_tails: bool

    def beyond(self, chance: float, terms: float = 1.0) -> float:
        """The level that a sum of `terms` noises exceeds with (about) this chance, over the root of `terms`.

        Exact for one term and for Gaussian noise; sums of Laplace noises near the normal law with that root.
        """
        normal = -float(ndtri(chance))
        if not self.long_tails:
            return self.deviation * normal
        alone = math.log(0.5 / chance) / math.sqrt(2.0)
        return self.deviation * (normal + (alone - normal) / math.sqrt(terms))


@dataclass(frozen=True, eq=False)
class DistanceHistogram:
    """Noisy counts of records by distance: bin b ends at edges[b], the last has no end."""

    counts: Floats
    edges: Integers
    noise: CountNoise

    @property
    def lengths(self) -> Floats:
        """The root mean squared distance in each bin, if records are spread evenly over it."""
        low = np.concatenate([[0], self.edges[:-1]]).astype(np.float64)
        high = self.edges.astype(np.float64)
        return np.sqrt((high**2 + high * low + low**2) / 3)

    def together(self) -> Self:
        """The histogram of all clusters together, from one for each of them."""
        noise = replace(self.noise, deviation=self.noise.deviation * math.sqrt(len(self.counts)))
        return replace(self, counts=self.counts.sum(axis=0), noise=noise)


@dataclass(frozen=True, eq=False)
class DistanceShape:
    """The distribution of distances in each cluster, estimated from noisy histograms."""

    edges: Integers
    middles: Floats
    #: Shares of the bins; every row adds up to one.
    shares: Floats
    sizes: Floats

    @classmethod
    def of(
        cls, histogram: Floats, edges: Integers, sizes: Floats, noise: CountNoise, own_scales: bool = False
    ) -> Self:
        """Shapes that are like all clusters together; with `own_scales` as wide as each cluster is."""
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])
        overall = trimmed_shares(histogram.sum(axis=0), noise, len(histogram))
        likely = np.tile(overall, (len(sizes), 1))
        if own_scales:
            likely = _scaled_shares(histogram, overall, sizes, noise)
        expected = sizes[:, None] * likely
        variance = sizes[:, None] ** 2 * likely / (1 + _LIKENESS)
        surprise = histogram - expected
        # A deviation that noise cannot explain is taken as real, whatever other clusters look like.
        certain = 1 - noise.beyond(_SURPRISE_CHANCE) ** 2 / np.maximum(surprise**2, 1e-12)
        trust = np.maximum(variance / (variance + noise.deviation**2), certain)
        believed = np.maximum(expected + surprise * trust, 0.0)
        totals = believed.sum(axis=1, keepdims=True)
        shares = np.where(totals > 0, believed / np.maximum(totals, 1e-12), likely)
        return cls(edges, middles, shares, sizes)

    @classmethod
    def pooled(cls, histogram: Floats, edges: Integers, sizes: Floats, noise: CountNoise) -> Self:
        """The same distribution in clusters of these sizes, from one histogram of all of them."""
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])
        return cls(edges, middles, np.tile(trimmed_shares(histogram, noise), (len(sizes), 1)), sizes)

    @property
    def spreads(self) -> Floats:
        """Mean squared distance to the centre."""
        spreads: Floats = self.shares @ self.middles**2
        return spreads

    def quantiles(self, level: float) -> Integers:
        """For each cluster the first bin at which this share of its records is reached."""
        reached = self.shares.cumsum(axis=1) >= level
        return np.where(reached.any(axis=1), reached.argmax(axis=1), len(self.edges) - 1)

    def best_clip(self, noise: float, bias: float = _BIAS_PER_OVERSHOOT) -> Integers:
        """For each cluster the bin whose edge, as a radius, costs least: variance of the noise plus bias.

        `noise` is the squared noise of a whole move for radius one and size one; `bias` is the move of a mean
        by clipping, as a share of the mean overshoot: more where centres are off.
        """
        variance = noise * (self.edges[None, :] / self.sizes[:, None]) ** 2
        overshoot = self.shares @ np.maximum(self.middles[:, None] - self.edges[None, :], 0.0)
        cost = variance + (bias * overshoot) ** 2
        least = self.quantiles(_LEAST_QUANTILE)
        cost[np.arange(len(self.edges))[None, :] < least[:, None]] = np.inf
        best: Integers = cost.argmin(axis=1)
        return best

    def mean_heights(self, radii: Integers) -> Floats:
        """For each cluster the mean height of its records on a half sphere of this radius, in radii."""
        flat = np.minimum(self.middles[None, :] / radii[:, None], 1.0)
        mean: Floats = (self.shares * np.sqrt(1.0 - flat**2)).sum(axis=1)
        return mean

    def weiszfeld_weights(self, radii: Integers) -> Floats:
        """For each cluster the mean of min(1, radius / distance) over its records."""
        weights = np.minimum(1.0, radii[:, None] / self.middles[None, :])
        mean: Floats = (self.shares * weights).sum(axis=1)
        return mean


def _scaled_shares(histogram: Floats, overall: Floats, sizes: Floats, noise: CountNoise) -> Floats:
    """Shares of the bins of each cluster, if its distances are those of all clusters times its own factor.

    Bins grow geometrically, so that a factor shifts them. Every shift counts as much as it explains of the
    cluster's counts: few records in many bins tell their scale together, where noise hides them one by one.
    """
    shifts, bins = np.arange(-_MOST_SHIFT, _MOST_SHIFT + 1), np.arange(len(overall))
    shapes = np.zeros((len(shifts), len(bins)))
    for shape, shift in zip(shapes, shifts, strict=True):
        np.add.at(shape, np.clip(bins + shift, 0, len(bins) - 1), overall)
    size = sizes[:, None]
    evidence = size * (histogram @ shapes.T) - size**2 * (shapes**2).sum(axis=1) / 2
    evidence = evidence / noise.deviation**2 - _SHIFT_POWER * np.log1p(np.abs(shifts))
    weights = np.exp(evidence - evidence.max(axis=1, keepdims=True))
    shares: Floats = weights @ shapes / weights.sum(axis=1, keepdims=True)
    return shares


def trimmed_shares(pooled: Floats, noise: CountNoise, histograms: int = 1) -> Floats:
    """Shares of the bins of a sum of noisy histograms, without the noise before and after its records."""
    support = _support(pooled, noise, histograms)
    inside = np.zeros(len(pooled))
    inside[support] = np.maximum(pooled[support], 0.0)
    return inside / inside.sum() if inside.any() else np.full(len(pooled), 1 / len(pooled))


def _support(pooled: Floats, noise: CountNoise, histograms: int) -> slice:
    """The bins between the first and the last run of bins that noise is unlikely to explain.

    Bins are looked at one at a time, then in runs of two, of three and so on: several weak bins together
    can be significant when none is alone. A run counts only if it lies outside what shorter ones have found.
    """
    sums = np.concatenate([[0.0], pooled.cumsum()])
    chance = _TAIL_CHANCE / (len(pooled) * len(_RUNS))
    first, last = len(pooled), 0
    for length in _RUNS:
        starts = np.arange(len(pooled) - length + 1)
        limit = noise.beyond(chance, histograms * length) * np.sqrt(histograms * length)
        told = starts[sums[starts + length] - sums[starts] > limit]
        if last == 0 and len(told):
            first, last = int(told[0]), int(told[-1]) + length
        before, after = told[told + length <= first], told[told >= last]
        first = int(before.min(initial=first))
        last = int((after + length).max(initial=last))
    return slice(first, last) if last else slice(0, len(pooled))
