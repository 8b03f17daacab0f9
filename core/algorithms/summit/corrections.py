"""Rounds for few records: each corrects the synthetic points, whose k-means are the next centres."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.algorithms.summit.overview import Overview
from core.algorithms.summit.shrinkage import Shrinkage
from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.blocks.noise import RELEASED
from core.blocks.rounds import RoundSteps
from core.data import UNITS, Domain
from core.kernels.clipping import WEIGHT_ONE
from core.plan import Plan, Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import agglomerated
from core.postprocessing.precision import Known, weighed
from core.postprocessing.shrinkage import shorten
from core.postprocessing.spread import DistanceShape
from core.postprocessing.synthetic_points import SyntheticPoints
from core.probe import Probe
from core.statistics.base import Counts, Statistic
from core.statistics.counts import ClusterCounts, PooledHistogram
from core.statistics.sums import LiftedSums
from core.views import Assigned, Encoded, RowView

CLIPPING_BIAS = (0.7, 0.5, 0.35)  # Move of a mean by clipping over the mean overshoot, by round.
DOUBT = 0.5  # Relative error of cluster sizes in the synthetic points before the first round.
LATER_DOUBT = 0.4  # Relative error of cluster sizes in the synthetic points after a round.
LEAST_SIZE = 0.1  # No cluster is expected to have less than this share of N / k records.
LEAST_WEIGHT = 0.01  # Weight of clusters that are likely noise, as a share of N / k.
HEIGHT_DOUBT = 0.2  # Relative error of sizes from heights: records of some clusters lie farther out.
LEAST_HEIGHT = 0.05  # Least mean height, in radii, to divide by: lower ones hold hardly any information.


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
        sizes, error = weighed(sizes, error, by_height, np.hypot(noise, HEIGHT_DOUBT * shape.sizes))
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
        mean = np.maximum(shape.mean_heights(radii), LEAST_HEIGHT)
        return heights / (radii * mean), self.deviation(plan, "sums") / mean


@dataclass(frozen=True)
class FewRecordsRefinement(Block):
    """Rounds in all columns; each corrects the synthetic points, whose k-means are the next centres."""

    domain: Domain
    rounds: tuple[FewRecordsRound, ...]
    clip: str = RELEASED

    def steps(self) -> tuple[Step, ...]:
        return tuple(step for each in self.rounds for step in each.steps())

    def run(
        self, probe: Probe, overview: Overview, synthetic: SyntheticPoints, followed: int, k: int
    ) -> Clusters:
        """k centres after all rounds, given points in the subspace; the first round has `followed`."""
        rows, draw = Encoded.of(self.domain), probe.draw("seeding")
        free = min(rows.width, 2 * overview.view.width)
        shrinkage = Shrinkage.by_axes(overview.subspace)
        centres = synthetic.means(followed, draw)
        known = Known((synthetic.masses(centres) + overview.size / followed) / 2, DOUBT)
        synthetic = SyntheticPoints(overview.in_all_columns(synthetic.points), synthetic.weights)
        centres = clip_into(self.domain, overview.in_all_columns(centres))
        for each, bias in zip(self.rounds, CLIPPING_BIAS, strict=True):
            found = each.run(probe, rows, centres, overview.edges, free, known, bias)
            moves = shorten(shrinkage.of(found.moves, found.errors), found.radii)
            if followed > k:
                weights = np.maximum(found.expected, LEAST_WEIGHT * overview.size / len(centres))
            else:  # with so few records, counts hardly show which clusters are noise
                weights = np.maximum(found.sizes, LEAST_SIZE * overview.size / len(centres))
            synthetic = synthetic.corrected(found.centres, moves, weights)
            start = found.centres + moves
            if len(start) > k:
                start = agglomerated(start, weights, k)
            # New starts may find missed clusters; not after the last round, as no round would measure them.
            new_starts = each is not self.rounds[-1]
            centres = clip_into(self.domain, synthetic.means(k, draw, start, new_starts))
            sizes = np.maximum(synthetic.masses(centres), LEAST_SIZE * overview.size / k)
            known = Known(sizes, LATER_DOUBT)
        radii = found.radii.astype(np.float64)
        return overview.detailed(self.domain, Clusters(centres, np.maximum(found.sizes, 0.0), radii))
