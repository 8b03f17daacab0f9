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
from core.blocks.noise import CountNoise, deviation
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
#: A bin that noise would fill like this less often than so is taken as real, whatever other clusters suggest.
_SURPRISE_CHANCE = 0.006
#: The same for moves, in standard deviations of the energy of a group of coordinates.
_SURPRISE_NOISES = 2.5
#: From this many coordinates on a group may be shrunk by a threshold instead, where few of them move.
_ENOUGH_COORDINATES = 48
#: How often noise alone may make a histogram reach further than its records, and the runs of bins looked at.
_TAIL_CHANCE = 0.05
_RUNS = (1, 2, 3, 4, 6, 8)
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
    #: The radii a mean with as much noise would be clipped to: those, or for medians more, as records beyond
    #: the radius count for less than one.
    reaches: Floats
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
    per_bin = CountNoise.of(plan, steps.spread)
    sizes, size_error = _combine(
        (counted, deviation(plan, steps.sizes)),
        (histogram.sum(axis=1), per_bin.deviation * len(edges) ** 0.5),
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
    weights = shape.weiszfeld_weights(radii) if medians else np.ones(len(radii))
    divisor = np.maximum(divisor * weights, 1.0)
    return Round(
        centres=assigned.centres,
        moves=sums / divisor[:, None],
        errors=radii * per_coordinate / divisor,
        sizes=sizes,
        size_error=size_error,
        radii=radii,
        reaches=radii / weights,
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
    def of(cls, histogram: Floats, edges: Integers, sizes: Floats, noise: CountNoise) -> _Shape:
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])
        overall = trimmed_shares(histogram.sum(axis=0), noise, len(histogram))
        expected = sizes[:, None] * overall
        variance = sizes[:, None] ** 2 * overall / (1 + _LIKENESS)
        surprise = histogram - expected
        # What the noise cannot explain is believed whatever other clusters look like.
        certain = 1 - noise.beyond(_SURPRISE_CHANCE) ** 2 / np.maximum(surprise**2, 1e-12)
        trust = np.maximum(variance / (variance + noise.deviation**2), certain)
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


def trimmed_shares(pooled: Floats, noise: CountNoise, histograms: int = 1) -> Floats:
    """Shares of the bins of a sum of noisy histograms, without the noise before and after its records."""
    support = _support(pooled, noise, histograms)
    inside = np.zeros(len(pooled))
    inside[support] = np.maximum(pooled[support], 0.0)
    return inside / inside.sum() if inside.any() else np.full(len(pooled), 1 / len(pooled))


def _support(pooled: Floats, noise: CountNoise, histograms: int) -> slice:
    """The bins between the first and the last records that noise alone would hardly make up.

    Bins are looked at one at a time, then in runs of two, of three and so on: many weak bins tell together
    what none tells alone. A run counts only if it lies outside what shorter ones have found.
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


def shrink_by_groups(moves: Floats, errors: Floats, groups: Sequence[npt.NDArray[np.intp]]) -> Floats:
    """Moves shrunk by empirical Bayes: each group of coordinates has a variance pooled over all clusters.

    `errors` is the standard deviation of the noise in each coordinate of a cluster's move.
    """
    noise = errors**2
    precision = noise**-1.0 / (noise**-1.0).sum()
    shrunk = np.zeros_like(moves)
    for group in groups:
        part = moves[:, group]
        energy = (part**2).sum(axis=1)
        signal = max(0.0, float((precision * (energy / len(group) - noise)).sum()))
        explained = noise * (len(group) + _SURPRISE_NOISES * np.sqrt(2 * len(group)))
        # A long way that the noise cannot explain is gone, however little other clusters move.
        certain = 1 - explained / np.maximum(energy, 1e-30)
        trust = np.maximum(signal / (signal + noise + 1e-30), certain)
        shrunk[:, group] = part * trust[:, None]
        if len(group) >= _ENOUGH_COORDINATES:
            few, risk = _thresholded(part, errors)
            # Stein's estimate of the risk of shrinking all coordinates alike.
            alike = noise * len(group) * (2 * trust - 1) + (1 - trust) ** 2 * energy
            better = risk + noise * np.sqrt(2 * len(group)) < alike  # by more than the estimates may err
            shrunk[np.ix_(better, group)] = few[better]
    return shrunk


def _thresholded(moves: Floats, errors: Floats) -> tuple[Floats, Floats]:
    """Moves of which small coordinates are dropped and others shortened, and Stein's estimate of the risk.

    Best where few coordinates of many move. The threshold of a cluster is that of least estimated risk.
    """
    sizes = np.abs(moves) / errors[:, None]
    limits = np.linspace(0.5, np.sqrt(2 * np.log(moves.shape[1])), 12)
    risks = np.stack(
        [(1.0 - 2.0 * (sizes <= limit) + np.minimum(sizes, limit) ** 2).sum(axis=1) for limit in limits]
    )
    limit = limits[risks.argmin(axis=0)][:, None]
    kept = np.sign(moves) * np.maximum(sizes - limit, 0.0) * errors[:, None]
    return kept, risks.min(axis=0) * errors**2


def shorten(moves: Floats, lengths: npt.NDArray[np.int64] | Floats) -> Floats:
    norms = np.maximum(np.linalg.norm(moves, axis=1), 1e-12)
    shortened: Floats = moves * np.minimum(1.0, lengths / norms)[:, None]
    return shortened
