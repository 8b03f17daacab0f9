"""The regime for few records: k-means on synthetic points, which every round corrects."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from core.algorithms.summit.axes import Axes, PrincipalAxes
from core.algorithms.summit.base import Regime, memory_of
from core.algorithms.summit.exploration import BOX_DEVIATIONS, LEVEL_OPERATIONS
from core.algorithms.summit.exploring import LEAST_DEPTH, LEAST_TURN, REFINE_SUMS, TREE_AXES, moments_wanted
from core.algorithms.summit.overview import CENTRE, Overview, RecordExtent, radius_share
from core.algorithms.summit.shrinkage import Shrinkage
from core.algorithms.summit.signal import PLENTY, Signal
from core.arrays import Floats
from core.blocks.adaptive_tree import LevelRule, halvings
from core.blocks.base import Block, Clusters
from core.blocks.density_tree import DensityTree
from core.blocks.few_records_rounds import FewRecordsRound
from core.blocks.fourier_sketch import FourierSketch
from core.blocks.noise import RELEASED
from core.blocks.work import RECORD, VALUE, lloyd_rounds
from core.data import UNITS, Domain
from core.kernels.clipping import into_ball
from core.plan import Plan, Step, Work
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import agglomerated, best_kmeans_operations
from core.postprocessing.precision import Known
from core.postprocessing.shrinkage import shorten
from core.postprocessing.synthetic_points import SyntheticPoints, sample_leaves
from core.probe import Probe
from core.views import Encoded

# --- which requests ---------------------------------------------------------------------------------------
#: With at least this many records for each centre, times mu, exploring loses less,
MOST_PER_CENTRE = PLENTY
#: where the density is a tree's, already from this many over log2(k) on.
MOST_PER_CENTRE_IN_TREE = 125.0
#: Columns at most: in more, rounds along few axes are better than rounds in all columns.
MOST_COLUMNS = 128
#: Records times mu at least: with less signal synthetic points follow noise.
LEAST_POWER = 8.0
#: In more columns than this, records for each centre, times mu, must be at least
NARROW = 8
#: the number of columns and `NARROW`, divided by this.
COLUMNS_STEP = 7.0
#: From this many columns on the density is a mixture fitted to a Fourier sketch: in fewer, cells are fine.
SKETCH_COLUMNS = 3
#: Centres of a sketch at most: more take too long to fit.
SKETCH_CENTRES = 64
#: Records of a sketch at most: more take too long to add up.
SKETCH_RECORDS = 50_000

# --- shares of the budget -----------------------------------------------------------------------------------
#: Weight of the density when stages divide what is left of the budget.
DENSITY = 0.4
#: Weight of the rounds, in no columns;
REFINE = 0.5
#: it is twice as large in this many columns.
REFINE_COLUMNS = 32
#: Most weight of second moments, in proportion less in fewer than `REFINE_COLUMNS`.
MOST_MOMENTS = 0.5
#: Share of the mean eigenvalue to which moments of few columns bring the edge of the noise's spectrum.
MOMENTS_SIGNAL = 0.2
#: Rounds of every run.
ROUNDS = 3
#: Each round gets this many times the budget of the one before.
ROUND_GROWTH = 1.3

# --- the density --------------------------------------------------------------------------------------------
#: An average cell of the first level holds this many standard deviations: few levels have little noise.
HEAD = 0.5
#: Halvings of the levels after the first.
LATER = (3,) * 9
#: A cell stays active while its count is this many standard deviations of the noise.
KEEP = 2.0
#: The last level has about 2 to this power, times N * mu, cells.
CELLS = 2.1
#: Halvings of the tree for each of its axes, at most.
HALVINGS_PER_AXIS = 3.5
#: Frequencies of a sketch for each centre: the more clusters, the more it takes to tell them apart.
FREQUENCIES_PER_CENTRE = 32
#: Frequencies at least.
LEAST_FREQUENCIES = 1000
#: Frequencies at most.
MOST_FREQUENCIES = 2048
#: Least distance of clusters that a sketch resolves, in standard deviations of all records: this, divided by
#: the cells along an axis that a tree would have,
RESOLUTION = 3.4
#: and at least this, divided by the cells along an axis if there were k cells: then they fill space.
CLUSTERS_APART = 1.22
#: Deviations along an axis count as at least this share of their mean.
LEAST_DEVIATION = 0.8
#: Axes of a sketch at most.
SKETCH_AXES = 8
#: An axis that does not stand out from noise must have this share of the largest deviation,
OF_LARGEST = 0.35
#: and every axis this share of the resolution: others would add noise and separate no clusters.
OF_RESOLUTION = 0.4

# --- synthetic points and rounds ----------------------------------------------------------------------------
#: Synthetic points for each centre.
POINTS_PER_CENTRE = 40
#: Synthetic points at least.
LEAST_POINTS = 1000
#: Synthetic points at most.
MOST_POINTS = 6000
#: Deviation of points along axes that the tree does not cut, as a share of that of all records.
OUTSIDE_SPREAD = 0.5
#: The first round has up to this many centres for each one asked for: two clusters may look like one,
OVERSEED = 1.5
#: if each has this many records, divided by mu, on average.
SEED_RECORDS = 10.0
#: Move of a mean by clipping, as a share of the mean overshoot, by round: the first centres are far off.
CLIPPING_BIAS = (0.7, 0.5, 0.35)
#: Relative error of the declared number of records, where noise hides the true one.
SIZE_DOUBT = 0.5
#: Relative error of cluster sizes in the synthetic points before the first round,
DOUBT = 0.5
#: and after a round.
LATER_DOUBT = 0.4
#: No cluster is expected to have less than this share of N / k records.
LEAST_SIZE = 0.1
#: Weight of clusters that are likely noise, as a share of N / k.
LEAST_WEIGHT = 0.01

# --- what is said of a plan ---------------------------------------------------------------------------------
#: Cells' worth of noise that a group must hold to be found: counts of empty cells are weighed, too.
FOUND = 3.0
#: Standard deviations of the noise in the sketch's density that a group must hold to be found.
SKETCH_FOUND = 6.0
#: Operations of every run in this regime.
OPERATIONS = 1.2e8
#: Operations to add a record to one frequency.
FREQUENCY_OPERATIONS = 12.0
#: Operations for each frequency to fit a mixture, in any case,
FIT_OPERATIONS = 1.2e5
#: and for each of its components.
COMPONENT_OPERATIONS = 1.9e4


def uses_sketch(signal: Signal) -> bool:
    """Whether a Fourier sketch takes the place of a tree."""
    return signal.width >= SKETCH_COLUMNS and signal.k <= SKETCH_CENTRES and signal.size <= SKETCH_RECORDS


def synthetic_point_count(k: int) -> int:
    """The number of synthetic points for k clusters."""
    return max(min(max(POINTS_PER_CENTRE * k, LEAST_POINTS), MOST_POINTS), 3 * k)


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
            below = min(below, MOST_PER_CENTRE_IN_TREE / math.log2(max(signal.k, 2)))
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
            levels = LevelRule(depth, HEAD, LATER).levels(signal.size, shares, DENSITY / whole)
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

    def density(self, plan: Plan) -> DensityTree | FourierSketch:
        """The measured density, from which synthetic points are drawn."""
        if self.frequencies:
            return FourierSketch(plan.shares(), self.tree_share, self.frequencies)
        return DensityTree(plan.shares(), self.tree_share, self.tree_levels)

    def refinement(self, plan: Plan) -> FewRecordsRefinement:
        rounds = tuple(
            FewRecordsRound(plan.shares(), share, REFINE_SUMS, 1, f"refine-{number}-")
            for number, share in enumerate(self.refine_shares, start=1)
        )
        return FewRecordsRefinement(plan.domain, rounds)

    def run(self, plan: Plan, probe: Probe) -> Clusters:
        extent = self.extent(plan).run(probe)
        overview = Overview.of(plan.domain, extent, self.axes(plan).run(probe, extent))
        density = self.density(plan)
        if isinstance(density, FourierSketch):
            synthetic = self._points_from_sketch(plan, probe, overview, density)
        else:
            synthetic = self._points_from_tree(plan, probe, overview, density)
        synthetic = SyntheticPoints(into_ball(synthetic.points), synthetic.weights)
        return self.refinement(plan).run(probe, overview, synthetic, self.explore_centres, plan.k)

    def _points_from_tree(
        self, plan: Plan, probe: Probe, overview: Overview, tree: DensityTree
    ) -> SyntheticPoints:
        """Points in the subspace, drawn from the counts of a tree; their weights add up to all records."""
        deviations = overview.deviations[: self.tree_axes]
        reach = np.clip(BOX_DEVIATIONS * deviations, 1.0, UNITS)
        codes, noise = halvings(overview.view, reach, self.tree_depth), tree.deviation(plan, "tree")
        bits = LevelRule(self.tree_depth, HEAD, LATER).bits(overview.size, noise, self.tree_levels)
        spread, clump = np.maximum(deviations, 1.0), overview.size / plan.k
        leaves = tree.run(probe, codes, bits, overview.size, KEEP, spread, clump)
        count, draw = synthetic_point_count(plan.k), probe.draw("synthetic-points")
        return sample_leaves(leaves, overview.deviations, OUTSIDE_SPREAD, count, draw)

    def _points_from_sketch(
        self, plan: Plan, probe: Probe, overview: Overview, sketch: FourierSketch
    ) -> SyntheticPoints:
        """The same, drawn from a mixture of round clusters that is fitted to a sketch."""
        power, k = overview.size * plan.shares().total, plan.k
        axes = _separating_axes(overview.deviations, overview.subspace.clear, power, k)
        overall = math.sqrt(float(np.mean(overview.deviations[:axes] ** 2)))
        deviations = np.maximum(overview.deviations[:axes], max(LEAST_DEVIATION * overall, 1.0))
        length = _resolution(deviations, power, k)
        view = replace(overview.view, matrix=overview.view.matrix[:, :axes])
        fit, draw = sketch.run(probe, view, deviations, length, overview.size), probe.draw("synthetic-points")
        synthetic = fit.mixture(k, draw).sample(overview.size, synthetic_point_count(k), draw)
        others = np.zeros((len(synthetic.points), overview.view.width - axes))
        return SyntheticPoints(np.concatenate([synthetic.points, others], axis=1), synthetic.weights)

    # --- what is said of a plan -----------------------------------------------------------------------------

    def smallest_cluster(self, plan: Plan) -> float:
        density = self.density(plan)
        if isinstance(density, FourierSketch):
            return SKETCH_FOUND * density.density_noise(plan)
        return FOUND * KEEP * density.deviation(plan, "tree")

    def work(self, plan: Plan) -> Work:
        size, k, axes = float(plan.domain.size), plan.k, self.axes(plan)
        points, frequencies = float(synthetic_point_count(k)), float(self.frequencies)
        density = size * (RECORD / 4 + LEVEL_OPERATIONS * self.tree_levels)
        density += size * frequencies * FREQUENCY_OPERATIONS + 2 * VALUE * frequencies
        density += frequencies * (FIT_OPERATIONS + COMPONENT_OPERATIONS * k)
        rounds = lloyd_rounds(plan.domain, k, len(self.refine_shares))
        rounds += lloyd_rounds(plan.domain, self.explore_centres - k, 1)  # the first is about more centres
        rounds += OPERATIONS + best_kmeans_operations(points, plan.domain.dimension, k)
        memory = 40.0 * points * plan.domain.dimension + 1e5 * frequencies
        work = memory_of(plan, axes.count) + self.extent(plan).work() + axes.work()
        return work + Work(density + rounds, memory)


class WeighedExtent(RecordExtent):
    """The extent of few records, whose noisy number is weighed against the declared one."""

    def size(self, probe: Probe) -> float:
        counted = np.array([super().size(probe)])
        declared = Known(np.array([self.domain.size], dtype=np.float64), SIZE_DOUBT)
        return float(declared.updated(counted, self.deviation(probe.plan, "size"))[0][0])


def _separating_axes(deviations: Floats, clear: int, power: float, k: int) -> int:
    """The number of axes along which a sketch can separate clusters.

    `deviations` of all records along the axes are in falling order; the first `clear` axes stand out from
    noise; `power` is N * mu.
    """
    likely = max(clear, int((deviations >= OF_LARGEST * deviations[0]).sum()))
    axes, most = 1, min(likely, len(deviations), SKETCH_AXES)
    while axes < most and deviations[axes] >= OF_RESOLUTION * _resolution(deviations[: axes + 1], power, k):
        axes += 1
    return axes


def _resolution(deviations: Floats, power: float, k: int) -> float:
    """The least distance of clusters that a sketch can separate; `power` is N * mu."""
    side = 1 / len(deviations)
    by_noise = RESOLUTION / max(2.0**CELLS * power, 1.0) ** side
    mean = float(np.exp(np.log(np.maximum(deviations, 1e-6)).mean()))
    return mean * float(max(by_noise, CLUSTERS_APART / k**side))


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
            anew = each is not self.rounds[-1]
            centres = clip_into(self.domain, synthetic.means(k, draw, start, anew))
            sizes = np.maximum(synthetic.masses(centres), LEAST_SIZE * overview.size / k)
            known = Known(sizes, LATER_DOUBT)
        radii = found.radii.astype(np.float64)
        return overview.detailed(self.domain, Clusters(centres, np.maximum(found.sizes, 0.0), radii))
