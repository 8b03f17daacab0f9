"""The regime for few records: k-means on synthetic points, which every round corrects."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from core.algorithms.summit.axes import Axes, PrincipalAxes
from core.algorithms.summit.base import Regime, memory_of
from core.algorithms.summit.corrections import FewRecordsRefinement, FewRecordsRound
from core.algorithms.summit.exploring import LEAST_DEPTH, LEAST_TURN, REFINE_SUMS, TREE_AXES, moments_wanted
from core.algorithms.summit.overview import CENTRE, Overview, RecordExtent, radius_share
from core.algorithms.summit.signal import PLENTY, Signal
from core.algorithms.summit.synthetic import (
    CELLS,
    SketchPoints,
    TreePoints,
    level_rule,
    synthetic_point_count,
)
from core.blocks.base import Block, Clusters
from core.blocks.work import lloyd_rounds
from core.kernels.clipping import into_ball
from core.plan import Plan, Work
from core.postprocessing.kmeans import best_kmeans_operations
from core.postprocessing.precision import Known
from core.postprocessing.synthetic_points import SyntheticPoints
from core.probe import Probe

MOST_PER_CENTRE = PLENTY  # Records for each centre, times mu, from which on exploring loses less.
MOST_IN_TREE = 125.0  # The same, times log2(k), where the density is a tree's.
MOST_COLUMNS = 128  # Columns at most: in more, rounds along few axes are better than rounds in all columns.
LEAST_POWER = 8.0  # Records, times mu, at least: with less signal synthetic points follow noise.
NARROW = 8  # Columns up to which that is enough.
COLUMNS_STEP = 7.0  # Beyond, records for each centre, times mu, are at least (columns + NARROW) over this.
SKETCH_COLUMNS = 3  # Columns from which on the density is a sketch's: in fewer, cells are fine enough.
SKETCH_CENTRES = 64  # Centres of a sketch at most: it takes long to fit more.
SKETCH_RECORDS = 50_000  # Records of a sketch at most: it takes long to add up more.
DENSITY = 0.4  # Weight of the density when stages divide what is left of the budget.
REFINE = 0.5  # Weight of the rounds, but for what they get for columns.
REFINE_COLUMNS = 32  # Columns in which rounds get twice that weight.
MOST_MOMENTS = 0.5  # Most weight of second moments, in proportion less in fewer than `REFINE_COLUMNS`.
MOMENTS_SIGNAL = 0.2  # Share of the mean eigenvalue at which the edge of their noise lies in few columns.
ROUNDS = 3  # Rounds of every run.
ROUND_GROWTH = 1.3  # Each round gets this many times the budget of the one before.
OVERSEED = 1.5  # Centres of the first round for each one asked for, at most: two clusters may look like one.
SEED_RECORDS = 10.0  # Records of each of those centres, times mu, on average.
HALVINGS_PER_AXIS = 3.5  # Halvings of the tree for each of its axes, at most.
FREQUENCIES_PER_CENTRE = 32  # Frequencies of a sketch for each centre: more clusters need more.
LEAST_FREQUENCIES = 1000  # Frequencies at least.
MOST_FREQUENCIES = 2048  # Frequencies at most.
SIZE_DOUBT = 0.5  # Relative error of the declared number of records, where noise hides the true one.
OPERATIONS = 1.2e8  # Operations of every run next to those of its stages.


def uses_sketch(signal: Signal) -> bool:
    """Whether a Fourier sketch takes the place of a tree."""
    return signal.width >= SKETCH_COLUMNS and signal.k <= SKETCH_CENTRES and signal.size <= SKETCH_RECORDS


def _moments_weight(columns: int, power: float) -> float:
    """The weight of second moments: in few columns what is enough to turn and to scale the density."""
    wanted = min(moments_wanted(columns, power), 2 * columns**3 / (MOMENTS_SIGNAL * power) ** 2)
    most = max(MOST_MOMENTS * min(1.0, columns / REFINE_COLUMNS), LEAST_TURN)
    return min(max(wanted, LEAST_TURN), most)


@dataclass(frozen=True, kw_only=True)
class FewRecords(Regime):
    """Too few records to explore: points that follow a released density stand for them."""

    mark: ClassVar[str] = "few_records"

    few_records: bool = True
    #: Frequencies of the Fourier sketch; 0 where the density is a tree's.
    frequencies: int = 0

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        below = MOST_PER_CENTRE
        if not uses_sketch(signal):
            below = min(below, MOST_IN_TREE / math.log2(max(signal.k, 2)))
        above = LEAST_POWER / signal.k
        if signal.width > NARROW:
            above = max(above, (signal.width + NARROW) / COLUMNS_STEP)
        return signal.single_means and signal.width <= MOST_COLUMNS and above <= signal.per_centre < below

    @classmethod
    def tuned(cls, signal: Signal) -> Self:
        shares, radius, axes = signal.shares, radius_share(signal), min(TREE_AXES, signal.width)
        moments = _moments_weight(signal.width, signal.power) if signal.width > 1 else 0.0
        refine = REFINE * (1 + signal.width / REFINE_COLUMNS)
        whole = (moments + DENSITY + refine) / (1 - CENTRE - radius)
        growth = [ROUND_GROWTH**i for i in range(ROUNDS)]
        frequencies = depth = levels = 0
        if uses_sketch(signal):
            frequencies = min(max(FREQUENCIES_PER_CENTRE * signal.k, LEAST_FREQUENCIES), MOST_FREQUENCIES)
        else:
            finest = round(math.log2(signal.power) + CELLS)
            depth = max(LEAST_DEPTH, min(round(HALVINGS_PER_AXIS * axes), finest))
            levels = level_rule(depth).levels(signal.size, shares, DENSITY / whole)
        return cls(
            moments=moments > 0,
            radius_share=radius,
            subspace_share=moments / whole,
            tree_share=DENSITY / whole,
            refine_shares=tuple(refine / whole * part / sum(growth) for part in growth),
            tree_axes=axes,
            tree_depth=depth,
            tree_levels=levels,
            explore_centres=round(signal.k * min(max(signal.per_centre / SEED_RECORDS, 1.0), OVERSEED)),
            frequencies=frequencies,
        )

    # --- stages ---------------------------------------------------------------------------------------------

    def blocks(self, plan: Plan) -> tuple[Block, ...]:
        return self.extent(plan), self.axes(plan), self.density(plan), self.refinement(plan)

    def extent(self, plan: Plan) -> WeighedExtent:
        return WeighedExtent(plan.domain, plan.shares(), self.radius_share)

    def axes(self, plan: Plan) -> Axes:
        if not self.moments:
            return Axes(plan.domain)
        return PrincipalAxes(plan.domain, plan.shares(), self.subspace_share)

    def density(self, plan: Plan) -> TreePoints | SketchPoints:
        if self.frequencies:
            return SketchPoints(plan.shares(), self.tree_share, self.frequencies)
        return TreePoints(
            plan.shares(), self.tree_share, self.tree_levels, axes=self.tree_axes, depth=self.tree_depth
        )

    def refinement(self, plan: Plan) -> FewRecordsRefinement:
        rounds = tuple(
            FewRecordsRound(plan.shares(), share, REFINE_SUMS, 1, f"refine-{number}-")
            for number, share in enumerate(self.refine_shares, start=1)
        )
        return FewRecordsRefinement(plan.domain, rounds)

    def run(self, plan: Plan, probe: Probe) -> Clusters:
        extent = self.extent(plan).run(probe)
        overview = Overview.of(plan.domain, extent, self.axes(plan).run(probe, extent))
        synthetic = self.density(plan).run(probe, overview)
        synthetic = SyntheticPoints(into_ball(synthetic.points), synthetic.weights)
        return self.refinement(plan).run(probe, overview, synthetic, self.explore_centres, plan.k)

    # --- what is said of a plan -----------------------------------------------------------------------------

    def smallest_cluster(self, plan: Plan) -> float:
        return self.density(plan).smallest_cluster(plan)

    def work(self, plan: Plan) -> Work:
        k, width, axes = plan.k, plan.domain.dimension, self.axes(plan)
        points = float(synthetic_point_count(k))
        rounds = lloyd_rounds(plan.domain, k, len(self.refine_shares))
        rounds += lloyd_rounds(plan.domain, self.explore_centres - k, 1)  # the first is about more centres
        rounds += OPERATIONS + best_kmeans_operations(points, width, k)
        stages = self.extent(plan).work() + axes.work() + self.density(plan).work(plan)
        return stages + Work(rounds, 40.0 * points * width) + memory_of(plan, axes.count)


class WeighedExtent(RecordExtent):
    """The extent of few records, whose noisy number is weighed against the declared one."""

    def size(self, probe: Probe) -> float:
        counted = np.array([super().size(probe)])
        declared = Known(np.array([self.domain.size], dtype=np.float64), SIZE_DOUBT)
        return float(declared.updated(counted, self.deviation(probe.plan, "size"))[0][0])
