"""Rounds of Lloyd's algorithm for few records: measured sizes are combined with what is known before."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Floats, Integers
from core.blocks.rounds import RoundSteps
from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.plan import Plan
from core.postprocessing.precision import Known, weighed
from core.postprocessing.spread import DistanceShape
from core.probe import Probe
from core.statistics.base import Counts, Statistic
from core.statistics.counts import ClusterCounts, PooledHistogram
from core.statistics.sums import LiftedSums
from core.views import Assigned, RowView

#: Relative error of sizes estimated from heights: records of some clusters lie farther out than of others.
_HEIGHT_DOUBT = 0.2
#: The least mean height, in radii, to divide by: below it, heights hold hardly any information.
_LEAST_HEIGHT = 0.05


@dataclass(frozen=True, eq=False)
class WeighedRound:
    """For each cluster the estimated move from its centre to its mean, the noise in it, and the size."""

    centres: Floats
    moves: Floats
    #: Standard deviation of the noise in each coordinate of a move.
    errors: Floats
    sizes: Floats
    #: The probability that the cluster has any records.
    chances: Floats
    radii: Integers

    @property
    def expected(self) -> Floats:
        """Sizes times the probability that there are records, scaled to the same total."""
        likely = self.chances * self.sizes
        expected: Floats = likely * (self.sizes.sum() / max(float(likely.sum()), 1e-9))
        return expected


@dataclass(frozen=True)
class FewRecordsRound(RoundSteps):
    """One histogram of all distances, which gives the clipping radii; sums and sizes of the clusters.

    The histogram of a single cluster of few records would be mostly noise. The pooled one also gives the
    mean height of a record (`LiftedSums`), by which sums of heights are a second estimate of sizes.
    """

    SPREAD: ClassVar[float] = 0.03
    HISTOGRAM: ClassVar[type[Counts]] = PooledHistogram
    SUMS: ClassVar[type[Statistic]] = LiftedSums

    purposes: tuple[str, str, str] = (
        "how far records are from their nearest centre",
        "where the centre of each cluster lies",
        "how many records each cluster has",
    )

    def run(
        self,
        probe: Probe,
        view: RowView,
        centres: Floats,
        edges: Integers,
        free_coordinates: int,
        known: Known,
        bias: float,
    ) -> WeighedRound:
        """Measure the round about `centres` (rounded here, before anything is derived from them).

        `free_coordinates`: how many the caller's shrinkage keeps; their noise decides the choice of a radius,
        with `bias`, the move of a mean by clipping as a share of the mean overshoot.
        """
        plan = probe.plan
        assigned = Assigned(view, np.rint(centres).astype(np.int64))
        counted = self.measure(probe, "sizes", ClusterCounts(assigned)).astype(np.float64)
        sizes, error = known.updated(counted, self.deviation(plan, "sizes"))
        divisor = np.maximum(sizes, np.maximum(error, 1.0))
        histogram = self.measure(probe, "spread", PooledHistogram(assigned, edges)).astype(np.float64)
        shape = DistanceShape.pooled(histogram, edges, divisor, self.count_noise(plan, "spread"))
        per_coordinate = self.deviation(plan, "sums", view.width)
        radii = edges[shape.best_clip(free_coordinates * per_coordinate**2, bias)]
        radii = np.clip(radii, 1, 2 * UNITS)
        lifted = self.measure(probe, "sums", LiftedSums(assigned, radii)) / WEIGHT_ONE
        by_height, noise = self._sizes_from_heights(plan, lifted[:, -1], radii, shape)
        count_noise = np.full(len(counted), self.deviation(plan, "sizes"))
        measured, noises = weighed(counted, count_noise, by_height, noise)
        sizes, error = weighed(sizes, error, by_height, np.hypot(noise, _HEIGHT_DOUBT * shape.sizes))
        divisor = np.maximum(sizes, np.maximum(error, 1.0))
        return WeighedRound(
            centres=assigned.centres.astype(np.float64),
            moves=lifted[:, :-1] / divisor[:, None],
            errors=radii * per_coordinate / divisor,
            sizes=sizes,
            chances=known.chances(measured, noises),
            radii=radii,
        )

    def _sizes_from_heights(
        self, plan: Plan, heights: Floats, radii: Integers, shape: DistanceShape
    ) -> tuple[Floats, Floats]:
        """Sizes estimated from the sums of heights, and the standard deviation of their noise."""
        mean = np.maximum(shape.mean_heights(radii), _LEAST_HEIGHT)
        return heights / (radii * mean), self.deviation(plan, "sums") / mean
