"""The regime for a range of k: fine clusters, from which the answer for every k in it follows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from core.algorithms.summit.base import Regime
from core.algorithms.summit.exploration import Exploration, enough_seeds
from core.algorithms.summit.exploring import VARYING_FROM, Exploring, Refined
from core.algorithms.summit.overview import Overview
from core.algorithms.summit.pure import PureEpsilon
from core.algorithms.summit.settled import settled_seeds, settling_operations
from core.algorithms.summit.shrinkage import Shrinkage, moved_along_axes
from core.algorithms.summit.signal import Signal
from core.algorithms.summit.sketch import Sketch
from core.arrays import Floats, Integers
from core.blocks.base import Block, Clusters
from core.blocks.rounds import Round, Rule
from core.data import UNITS, Domain
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step, Work
from core.postprocessing.spread import DistanceHistogram, geometric_edges
from core.postprocessing.synopsis import Cells, made_up_rows, synopsis_operations
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import PooledHistogram
from core.views import Assigned, Encoded

POOLED = 0.03  # Share of the histogram of all distances, from which the loss is estimated.
POOLED_BINS = 60  # Bins of that histogram.
POOLED_FACTOR = 1.1  # Each bin of that histogram ends this many times as far out as the one before.
FINE_RECORDS = 40.0  # Records of a fine cluster, times mu, on average: noise in smaller ones costs more.
LEAST_FINE = 16  # Fine clusters at least, to merge from.
FINE_PER_CLUSTER = 9 / 8  # Fine clusters for each of the largest k: merging drops those that noise misplaced.
MOST_OPEN_COLUMNS = 4096  # Columns at most: made-up rows have all of them, and must fit in memory.
MOST_OPEN_VALUES = 1 << 21  # Values in the centres for all k together, at most: each has an interval.
LONG_EXPLORE = 1.6  # Exploring moves of many fine clusters, which settle slowly, are lengthened by this.
LONG_REFINE = 1.8  # Refining moves of them are lengthened by this: noise is the lesser evil.


def fine_clusters(signal: Signal) -> int:
    """As many fine clusters as the range and the records can carry."""
    most = max(round(FINE_PER_CLUSTER * signal.k), LEAST_FINE)
    return min(most, max(round(signal.power / FINE_RECORDS), LEAST_FINE))


@dataclass(frozen=True, kw_only=True)
class OpenK(Regime):
    """Fine clusters as for a single k of that number, and one more histogram of distances."""

    mark: ClassVar[str] = "pooled_share"

    columns_share: float = 0.0
    pooled_share: float
    #: Whether moves of all rounds but the last of each kind are lengthened.
    long_moves: bool = False

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        return signal.open_k

    @classmethod
    def tuned(cls, signal: Signal) -> Self:
        signal = replace(signal, k=fine_clusters(signal))
        kind = next(kind for kind in (Sketch, PureEpsilon, Exploring) if kind.suits(signal))
        fine = kind.tuned(signal, reserved=POOLED)
        long = signal.plenty and kind is Exploring and signal.width < VARYING_FROM
        return cls.like(fine, pooled_share=POOLED, long_moves=long, explore_centres=enough_seeds(signal.k))

    @property
    def fine(self) -> Exploring:
        """The regime that fine clusters are found in."""
        if self.sketch:
            return Sketch.like(self)
        return LongMoves.like(self) if self.long_moves else Exploring.like(self)

    def pooled(self, plan: Plan) -> PooledDistances:
        return PooledDistances(plan.domain, plan.shares(), self.pooled_share)

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        *stages, refinement = self.fine.blocks(plan)
        return (*stages, self.pooled(plan), refinement)

    def run(self, plan: Plan, probe: Probe) -> Clusters:
        fine = self.fine
        refined = fine.continued(plan, probe, fine.extent(plan).run(probe))
        return replace(refined.clusters, cells=self._cells(plan, probe, refined))

    def _cells(self, plan: Plan, probe: Probe, refined: Refined) -> Cells:
        """All that was released of the fine clusters, with one more histogram about their anchors."""
        overview, last = refined.overview, refined.last
        extent, subspace, width = overview.extent, overview.subspace, plan.domain.dimension
        edges = geometric_edges(min(3 * extent.radius, 2 * UNITS), POOLED_FACTOR, POOLED_BINS)
        # Axes through a sketch are not orthonormal: without them every direction counts alike.
        sketched = bool(self.sketch)
        return Cells(
            domain=plan.domain,
            anchors=last.centres.astype(np.float64),
            centres=refined.clusters.centres,
            moves=last.moves,
            errors=last.errors,
            sizes=last.sizes,
            size_error=last.size_error,
            radii=last.radii.astype(np.float64),
            distances=last.distances,
            pooled=self.pooled(plan).run(probe, last.centres, edges),
            middle=extent.centre.astype(np.float64),
            around=extent.distances,
            axes=np.zeros((width, 0)) if sketched else subspace.axes,
            variances=np.zeros(0) if sketched else subspace.variances,
            columns=np.ones(width) if sketched else subspace.columns,
            tight=float(extent.tight),
        )

    def smallest_cluster(self, plan: Plan) -> float:
        return self.fine.smallest_cluster(plan)

    def work(self, plan: Plan) -> Work:
        assert plan.k_range is not None
        noise = self.fine.exploration(plan).rounds.deviation(plan, "sizes")
        share = noise * plan.k / plan.domain.size
        answers = Work(
            synopsis_operations(plan.domain, plan.k, tuple(plan.k_range), share),
            60.0 * made_up_rows(plan.domain.dimension) * plan.domain.dimension,
        )
        return self.fine.work(plan) + answers


@dataclass(frozen=True, kw_only=True)
class LongMoves(Exploring):
    """Fine clusters that settle sooner: long moves, and seeds that settle on made-up rows."""

    def exploration(self, plan: Plan) -> Exploration:
        return LongExploration(**vars(super().exploration(plan)))

    def rule(self, plan: Plan, shrinkage: Shrinkage) -> Rule:
        move = super().rule(plan, shrinkage)
        factors = iter([LONG_REFINE] * (len(self.refine_shares) - 1) + [1.0])
        return lambda outcome: next(factors) * move(outcome)

    def work(self, plan: Plan) -> Work:
        axes = self.axes(plan).count
        return super().work(plan) + Work(settling_operations(axes, plan.k), 0.0)


@dataclass(frozen=True)
class LongExploration(Exploration):
    """Exploring rounds with long moves, whose seeds settle on made-up rows."""

    def moved(self, outcome: Round, left: int) -> Floats:
        return moved_along_axes(outcome, LONG_EXPLORE if left else 1.0)

    def chosen(
        self, overview: Overview, last: Round, centres: Floats, weights: Floats, draw: np.random.Generator
    ) -> Floats:
        return settled_seeds(overview, last, centres, weights, self.k, draw)


@dataclass(frozen=True)
class PooledDistances(Block):
    """A histogram of distances to the nearest of some released centres, all clusters together."""

    domain: Domain
    shares: Shares
    fraction: float
    prefix: str = ""

    def steps(self) -> tuple[Step, ...]:
        noise = additive_noise(self.shares.noise(self.fraction))
        purpose = "how far records are from their nearest centre, all clusters together"
        return (self.step("pooled", noise, PooledHistogram, 1, purpose),)

    def run(self, probe: Probe, centres: Integers, edges: Integers) -> DistanceHistogram:
        assigned = Assigned(Encoded.of(self.domain), centres)
        counts = self.measure(probe, "pooled", PooledHistogram(assigned, edges)).astype(np.float64)
        return DistanceHistogram(counts, edges, self.count_noise(probe.plan, "pooled"))
