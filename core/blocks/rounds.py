"""One private round of Lloyd's algorithm: clip residuals where the noise and the bias balance, then average.

A round measures a histogram of the distances of each cluster's records, reads a clipping radius off it,
and measures clipped residual sums and sizes. Everything after the three measurements is arithmetic on
released values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.arithmetic import WEIGHT_ONE
from core.blocks.noise import deviation
from core.domain import UNITS
from core.probe import Probe
from core.statistics import ClusterCounts, NormHistogram, ResidualSums
from core.views import Assigned, RowView

__all__ = [
    "Round",
    "RoundSteps",
    "geometric_edges",
    "noisy_round",
    "shorten",
    "shrink_by_groups",
    "trimmed_shares",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: How alike the distances in different clusters are taken to be: the share of a bin varies between clusters
#: as if each had been seen this many times before. Bins that are rare everywhere are believed less.
_LIKENESS = 3.0
#: What lies this many standard deviations away from what other clusters suggest is taken as real.
_SURPRISE_NOISES = 2.5
#: The overall histogram ends where no more than this many standard deviations of noise lie beyond.
_TAIL_NOISES = 2.0
#: Clipping is never tighter than this quantile of a cluster's distances.
_LEAST_QUANTILE = 0.5
#: How far a mean moves when its largest residuals are clipped, as a share of the mean overshoot.
_BIAS_PER_OVERSHOOT = 0.25
#: k-medians: residuals are clipped at this quantile, which makes the round a smoothed Weiszfeld step.
_MEDIAN_QUANTILE = 0.15


@dataclass(frozen=True)
class RoundSteps:
    """The names under which a plan lists the three measurements of a round."""

    spread: str
    sums: str
    sizes: str


@dataclass(frozen=True, eq=False)
class Round:
    """What a round released, per cluster: how far its mean lies from the centre, and how surely."""

    centres: Integers
    moves: Floats
    #: Standard deviation of the noise in each coordinate of a move.
    errors: Floats
    sizes: Floats
    size_error: float
    radii: Integers
    #: Mean squared distance of a cluster's records to the centre.
    spreads: Floats


def geometric_edges(largest: int, factor: float, bins: int) -> Integers:
    """Increasing integers up to `largest`, each about `factor` times the one before."""
    edges = np.rint(largest * factor ** -np.arange(bins - 1.0, -1.0, -1.0))
    return np.unique(np.maximum(edges, 1)).astype(np.int64)


def noisy_round(
    probe: Probe,
    steps: RoundSteps,
    view: RowView,
    centres: Floats,
    edges: Integers,
    free_coordinates: int,
    medians: bool = False,
) -> Round:
    """Measure one round about `centres` (rounded here, before they parametrise anything).

    `free_coordinates` is how many coordinates of a move the caller's shrinkage leaves standing: the noise
    that counts when a radius is chosen.
    """
    plan = probe.plan
    assigned = Assigned(view, np.rint(centres).astype(np.int64))
    counted = probe.measure(steps.sizes, ClusterCounts(assigned)).astype(np.float64)
    histogram = probe.measure(steps.spread, NormHistogram(assigned, edges)).astype(np.float64)
    per_bin = deviation(plan, steps.spread)
    sizes, size_error = _combine(
        (counted, deviation(plan, steps.sizes)), (histogram.sum(axis=1), per_bin * len(edges) ** 0.5)
    )
    divisor = np.maximum(sizes, max(2 * size_error, 1.0))
    shape = _Shape.of(histogram, edges, divisor, per_bin)
    per_coordinate = deviation(plan, steps.sums, view.width)
    if medians:
        radii = edges[shape.quantiles(_MEDIAN_QUANTILE)]
    else:
        radii = edges[shape.best_clip(free_coordinates * per_coordinate**2)]
    radii = np.clip(radii, 1, 2 * UNITS)
    sums = probe.measure(steps.sums, ResidualSums(assigned, radii)) / WEIGHT_ONE
    if medians:
        divisor = np.maximum(divisor * shape.weiszfeld_weights(radii), 1.0)
    return Round(
        centres=assigned.centres,
        moves=sums / divisor[:, None],
        errors=radii * per_coordinate / divisor,
        sizes=sizes,
        size_error=size_error,
        radii=radii,
        spreads=shape.spreads,
    )


def _combine(*estimates: tuple[Floats, float]) -> tuple[Floats, float]:
    """Estimates of the same numbers, weighted by their precision."""
    precision = sum(error**-2 for _, error in estimates)
    combined = sum((values * error**-2 for values, error in estimates), start=np.zeros(1)) / precision
    return combined, precision**-0.5


@dataclass(frozen=True, eq=False)
class _Shape:
    """For each cluster how its distances are distributed, as far as noisy histograms tell."""

    edges: Integers
    middles: Floats
    #: Shares of the bins; every row adds up to one.
    shares: Floats
    sizes: Floats

    @classmethod
    def of(cls, histogram: Floats, edges: Integers, sizes: Floats, noise: float) -> _Shape:
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])
        overall = trimmed_shares(histogram.sum(axis=0), noise * np.sqrt(len(histogram)))
        expected = sizes[:, None] * overall
        variance = sizes[:, None] ** 2 * overall / (1 + _LIKENESS)
        surprise = histogram - expected
        # What the noise cannot explain is believed whatever other clusters look like.
        certain = 1 - (_SURPRISE_NOISES * noise) ** 2 / np.maximum(surprise**2, 1e-12)
        trust = np.maximum(variance / (variance + noise**2), certain)
        believed = np.maximum(expected + surprise * trust, 0.0)
        totals = believed.sum(axis=1, keepdims=True)
        shares = np.where(totals > 0, believed / np.maximum(totals, 1e-12), overall)
        return cls(edges, middles, shares, sizes)

    @property
    def spreads(self) -> Floats:
        """Mean squared distance to the centre."""
        spreads: Floats = self.shares @ self.middles**2
        return spreads

    def quantiles(self, level: float) -> Integers:
        """For each cluster the first bin at which this share of its records is reached."""
        reached = self.shares.cumsum(axis=1) >= level
        return np.where(reached.any(axis=1), reached.argmax(axis=1), len(self.edges) - 1)

    def best_clip(self, noise: float) -> Integers:
        """For each cluster the bin whose edge, as a radius, costs least: variance of the noise plus bias.

        `noise` is the squared noise of a whole move for radius one and size one.
        """
        variance = noise * (self.edges[None, :] / self.sizes[:, None]) ** 2
        overshoot = self.shares @ np.maximum(self.middles[:, None] - self.edges[None, :], 0.0)
        cost = variance + (_BIAS_PER_OVERSHOOT * overshoot) ** 2
        least = self.quantiles(_LEAST_QUANTILE)
        cost[np.arange(len(self.edges))[None, :] < least[:, None]] = np.inf
        best: Integers = cost.argmin(axis=1)
        return best

    def weiszfeld_weights(self, radii: Integers) -> Floats:
        """For each cluster the mean of min(1, radius / distance) over its records."""
        weights = np.minimum(1.0, radii[:, None] / self.middles[None, :])
        mean: Floats = (self.shares * weights).sum(axis=1)
        return mean


def trimmed_shares(pooled: Floats, noise: float) -> Floats:
    """Shares of the bins of a noisy histogram, without the noise beyond its first and its last records."""
    bins = np.arange(1, len(pooled) + 1)
    limit = _TAIL_NOISES * noise * np.sqrt(bins)
    begun = np.flatnonzero(pooled.cumsum() > limit)
    ended = np.flatnonzero(pooled[::-1].cumsum() > limit)
    if len(begun) == 0 or len(ended) == 0 or begun[0] >= len(pooled) - ended[0]:
        return np.full(len(pooled), 1 / len(pooled))
    inside = np.zeros(len(pooled))
    support = slice(begun[0], len(pooled) - ended[0])
    inside[support] = np.maximum(pooled[support], 0.0)
    return inside / max(inside.sum(), 1e-12) if inside.any() else np.full(len(pooled), 1 / len(pooled))


def shrink_by_groups(moves: Floats, errors: Floats, groups: Sequence[npt.NDArray[np.intp]]) -> Floats:
    """Moves shrunk by empirical Bayes: each group of coordinates has a variance pooled over all clusters.

    `errors` is the standard deviation of the noise in each coordinate of a cluster's move.
    """
    noise = errors**2
    precision = noise**-1.0 / (noise**-1.0).sum()
    shrunk = np.zeros_like(moves)
    for group in groups:
        energy = (moves[:, group] ** 2).sum(axis=1)
        signal = max(0.0, float((precision * (energy / len(group) - noise)).sum()))
        explained = noise * (len(group) + _SURPRISE_NOISES * np.sqrt(2 * len(group)))
        # A long way that the noise cannot explain is gone, however little other clusters move.
        certain = 1 - explained / np.maximum(energy, 1e-30)
        trust = np.maximum(signal / (signal + noise + 1e-30), certain)
        shrunk[:, group] = moves[:, group] * trust[:, None]
    return shrunk


def shorten(moves: Floats, lengths: npt.NDArray[np.int64] | Floats) -> Floats:
    norms = np.maximum(np.linalg.norm(moves, axis=1), 1e-12)
    shortened: Floats = moves * np.minimum(1.0, lengths / norms)[:, None]
    return shortened
