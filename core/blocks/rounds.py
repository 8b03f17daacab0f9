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

__all__ = ["Round", "RoundSteps", "geometric_edges", "noisy_round", "shorten", "shrink_by_groups", "shrink_each"]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

#: A cluster's histogram is blended with the average one, as if that had been seen this many times its noise.
_PRIOR_NOISES = 8.0
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
    """What a round released, per cluster: how far the mean lies from the centre, and how well that is known."""

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
    histogram = probe.measure(steps.spread, NormHistogram(assigned, edges)).astype(np.float64)
    per_coordinate = deviation(plan, steps.sums, view.width)
    shape = _Shape.of(histogram, edges, deviation(plan, steps.spread))
    if medians:
        radii = edges[shape.quantiles(_MEDIAN_QUANTILE)]
    else:
        radii = edges[shape.best_clip(free_coordinates * per_coordinate**2)]
    radii = np.clip(radii, 1, 2 * UNITS)
    sums = probe.measure(steps.sums, ResidualSums(assigned, radii)) / WEIGHT_ONE
    counted = probe.measure(steps.sizes, ClusterCounts(assigned)).astype(np.float64)
    sizes, size_error = _combine(
        (counted, deviation(plan, steps.sizes)), (histogram.sum(axis=1), shape.row_noise)
    )
    divisor = np.maximum(sizes, max(2 * size_error, 1.0))
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
    """Noisy histograms of distances, each smoothed towards the average of all."""

    edges: Integers
    middles: Floats
    #: Smoothed and cut at zero; the mass of a row is `mass`.
    smooth: Floats
    mass: Floats
    sizes: Floats
    prior: float
    row_noise: float
    spreads: Floats

    @classmethod
    def of(cls, histogram: Floats, edges: Integers, noise: float) -> _Shape:
        row_noise = noise * np.sqrt(len(edges))
        prior = _PRIOR_NOISES * row_noise
        middles = np.concatenate([[edges[0] / 2], (edges[1:] + edges[:-1]) / 2])
        overall = np.maximum(histogram.sum(axis=0), 0.0)
        blended = histogram + prior * overall / max(overall.sum(), 1e-9)
        sizes = histogram.sum(axis=1)
        mass = np.maximum(blended.sum(axis=1), prior)
        smooth = np.maximum(blended, 0.0)
        smooth *= (mass / np.maximum(smooth.sum(axis=1), 1e-9))[:, None]
        spreads = np.maximum(blended @ middles**2, 0.0) / np.maximum(sizes + prior, 1e-9)
        return cls(edges, middles, smooth, mass, sizes, prior, row_noise, spreads)

    def quantiles(self, level: float) -> Integers:
        """For each cluster the first bin at which this share of its records is reached."""
        reached = self.smooth.cumsum(axis=1) >= level * self.mass[:, None]
        return np.where(reached.any(axis=1), reached.argmax(axis=1), len(self.edges) - 1)

    def best_clip(self, noise: float) -> Integers:
        """For each cluster the bin whose edge, as a radius, costs least: variance of the noise plus bias.

        `noise` is the squared noise of a whole move for radius one and size one.
        """
        sizes = np.maximum(self.sizes, self.prior / 4)
        variance = noise * (self.edges[None, :] / sizes[:, None]) ** 2
        overshoot = self.smooth @ np.maximum(self.middles[:, None] - self.edges[None, :], 0.0)
        cost = variance + (_BIAS_PER_OVERSHOOT * overshoot / self.mass[:, None]) ** 2
        least = self.quantiles(_LEAST_QUANTILE)
        cost[np.arange(len(self.edges))[None, :] < least[:, None]] = np.inf
        best: Integers = cost.argmin(axis=1)
        return best

    def weiszfeld_weights(self, radii: Integers) -> Floats:
        """For each cluster the mean of min(1, radius / distance) over its records."""
        weights = np.minimum(1.0, radii[:, None] / self.middles[None, :])
        mean: Floats = (self.smooth * weights).sum(axis=1) / self.mass
        return mean


def shrink_each(outcome: Round) -> Floats:
    """Moves shrunk by James and Stein's rule, cluster by cluster, and no longer than the clipping radius."""
    width = outcome.moves.shape[1]
    energy = np.maximum((outcome.moves**2).sum(axis=1), 1e-30)
    factor = np.maximum(0.0, 1.0 - width * outcome.errors**2 / energy)
    return shorten(factor[:, None] * outcome.moves, outcome.radii)


def shrink_by_groups(outcome: Round, groups: Sequence[npt.NDArray[np.intp]], moves: Floats, freedom: float) -> Floats:
    """Moves shrunk by empirical Bayes: each group of coordinates has a variance pooled over all clusters.

    `freedom` is the share of the noise's variance that these moves still carry.
    """
    noise = freedom * outcome.errors**2
    precision = outcome.errors**-2 / (outcome.errors**-2).sum()
    shrunk = np.zeros_like(moves)
    for group in groups:
        signal = max(0.0, float((precision * ((moves[:, group] ** 2).mean(axis=1) - noise)).sum()))
        shrunk[:, group] = moves[:, group] * (signal / (signal + noise + 1e-30))[:, None]
    return shrunk


def shorten(moves: Floats, lengths: npt.NDArray[np.int64] | Floats) -> Floats:
    norms = np.maximum(np.linalg.norm(moves, axis=1), 1e-12)
    shortened: Floats = moves * np.minimum(1.0, lengths / norms)[:, None]
    return shortened
