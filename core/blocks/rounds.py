"""One private round of Lloyd's algorithm: clip residuals where the noise and the bias balance, then average.

A round measures a histogram of the distances of each cluster's records, reads a clipping radius off it,
and measures clipped residual sums and sizes. Everything after the three measurements is arithmetic on
released values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from core.arrays import Floats, Integers
from core.blocks.noise import count_noise, deviation
from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.postprocessing.spread import DistanceShape
from core.probe import Probe
from core.statistics import ClusterCounts, NormHistogram, ResidualSums
from core.views import Assigned, RowView

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
    per_bin = count_noise(plan, steps.spread)
    sizes, size_error = _combine(
        (counted, deviation(plan, steps.sizes)),
        (histogram.sum(axis=1), per_bin.deviation * len(edges) ** 0.5),
    )
    divisor = np.maximum(sizes, max(2 * size_error, 1.0))
    shape = DistanceShape.of(histogram, edges, divisor, per_bin)
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
