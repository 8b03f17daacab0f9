"""The house algorithm for few records: k-means on synthetic points, which every round corrects."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from core.algorithms import summit_tuning as tuning
from core.algorithms.summit_overview import Overview, OverviewSteps, overview_details
from core.algorithms.summit_shrinkage import Shrinkage
from core.algorithms.summit_tuning import Schedule
from core.arrays import Floats
from core.blocks.adaptive_tree import halvings
from core.blocks.base import Block, Clusters
from core.blocks.density_tree import DensityTree
from core.blocks.few_records_rounds import FewRecordsRound
from core.blocks.fourier_sketch import FourierSketch
from core.blocks.noise import RELEASED
from core.data import UNITS, Domain
from core.kernels.clipping import into_ball
from core.plan import Plan, Step
from core.postprocessing.bounds import clip_into
from core.postprocessing.kmeans import agglomerated
from core.postprocessing.precision import Known
from core.postprocessing.shrinkage import shorten
from core.postprocessing.synthetic_points import SyntheticPoints, sample_leaves
from core.probe import Probe
from core.views import Encoded

#: Relative errors of cluster sizes in the synthetic points, at first and after a round. No size is expected
#: below `_LEAST_SIZE * N / k`; clusters that are likely noise keep a weight of `_LEAST_WEIGHT * N / k`.
_DOUBT, _LATER_DOUBT, _LEAST_SIZE, _LEAST_WEIGHT = 0.5, 0.4, 0.1, 0.01
#: As `FOUND` of an exploring plan, but larger: counts of empty cells are weighed, too.
_FOUND = 3.0
#: The resolution of a sketch, in standard deviations of all records: `_RESOLUTION` over the number of cells
#: along an axis that a tree would have, and at least `_CLUSTERS_APART` over the number along an axis if there
#: were k cells: clusters that fill space are not closer. Deviations along an axis count as at least
#: `_LEAST_DEVIATION` of their mean.
_RESOLUTION, _CLUSTERS_APART, _LEAST_DEVIATION = 3.4, 1.22, 0.8
#: Frequencies lie in the first principal axes, `_SKETCH_AXES` at most: those that stand out from noise in
#: second moments, and others whose deviation is at least this share of the largest; of these, while the
#: deviation is at least this share of the resolution. Other axes would add noise and separate no clusters.
_SKETCH_AXES, _OF_LARGEST, _OF_RESOLUTION = 8, 0.35, 0.4
#: Size of a group that is found, in standard deviations of the noise in the sketch's density.
_SKETCH_FOUND = 6.0


@dataclass(frozen=True)
class FewRecordsBlocks:
    """The stages for few records, in order; a run holds released values only."""

    k: int
    overview: OverviewSteps
    #: The measured density, from which synthetic points are drawn.
    density: DensityTree | FourierSketch
    refine: FewRecordsRefinement

    @classmethod
    def of(cls, plan: Plan) -> FewRecordsBlocks:
        shares, schedule = plan.shares(), Schedule.from_json(plan.parameters)
        rounds = tuple(
            FewRecordsRound(shares, share, tuning.REFINE_SUMS, 1, f"refine-{number}-")
            for number, share in enumerate(schedule.refine_shares, start=1)
        )
        density: DensityTree | FourierSketch
        if schedule.frequencies:
            density = FourierSketch(shares, schedule.tree_share, schedule.frequencies)
        else:
            density = DensityTree(shares, schedule.tree_share, schedule.tree_levels)
        overview = OverviewSteps(plan.domain, shares, schedule)
        return cls(plan.k, overview, density, FewRecordsRefinement(plan.domain, rounds))

    @property
    def stages(self) -> tuple[Block, ...]:
        return self.overview, self.density, self.refine

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        if isinstance(self.density, FourierSketch):
            return _SKETCH_FOUND * self.density.density_noise(plan)
        return _FOUND * tuning.FEW_RECORDS_KEEP * self.density.deviation(plan, "tree")

    def run(self, probe: Probe) -> Clusters:
        overview = self.overview.run(probe)
        if isinstance(self.density, FourierSketch):
            synthetic = self._points_from_sketch(probe, overview, self.density)
        else:
            synthetic = self._points_from_tree(probe, overview, self.density)
        synthetic = SyntheticPoints(into_ball(synthetic.points), synthetic.weights)
        return self.refine.run(probe, overview, synthetic, self.overview.schedule.explore_centres, self.k)

    def _points_from_tree(self, probe: Probe, overview: Overview, tree: DensityTree) -> SyntheticPoints:
        """Points in the subspace, drawn from the counts of a tree; their weights add up to all records."""
        schedule = self.overview.schedule
        deviations = overview.deviations[: schedule.tree_axes]
        reach = np.clip(tuning.BOX_DEVIATIONS * deviations, 1.0, UNITS)
        codes = halvings(overview.view, reach, schedule.tree_depth)
        noise = tree.deviation(probe.plan, "tree")
        bits = tuning.tree_bits(overview.size, noise, schedule.tree_depth, schedule.tree_levels, True)
        spread, clump = np.maximum(deviations, 1.0), overview.size / self.k
        leaves = tree.run(probe, codes, bits, overview.size, tuning.FEW_RECORDS_KEEP, spread, clump)
        count, draw = tuning.synthetic_point_count(self.k), probe.draw("synthetic-points")
        return sample_leaves(leaves, overview.deviations, tuning.OUTSIDE_SPREAD, count, draw)

    def _points_from_sketch(self, probe: Probe, overview: Overview, sketch: FourierSketch) -> SyntheticPoints:
        """The same, drawn from a mixture of round clusters that is fitted to a sketch."""
        power = overview.size * probe.plan.shares().total
        axes = _separating_axes(overview.deviations, overview.subspace.clear, power, self.k)
        overall = math.sqrt(float(np.mean(overview.deviations[:axes] ** 2)))
        deviations = np.maximum(overview.deviations[:axes], max(_LEAST_DEVIATION * overall, 1.0))
        length = _resolution(deviations, power, self.k)
        view = replace(overview.view, matrix=overview.view.matrix[:, :axes])
        fit, draw = sketch.run(probe, view, deviations, length, overview.size), probe.draw("synthetic-points")
        count = tuning.synthetic_point_count(self.k)
        synthetic = fit.mixture(self.k, draw).sample(overview.size, count, draw)
        others = np.zeros((len(synthetic.points), overview.view.width - axes))
        return SyntheticPoints(np.concatenate([synthetic.points, others], axis=1), synthetic.weights)


def _separating_axes(deviations: Floats, clear: int, power: float, k: int) -> int:
    """The number of axes along which a sketch can separate clusters.

    `deviations` of all records along the axes are in falling order; the first `clear` axes stand out from
    noise; `power` is N * mu.
    """
    likely = max(clear, int((deviations >= _OF_LARGEST * deviations[0]).sum()))
    axes, most = 1, min(likely, len(deviations), _SKETCH_AXES)
    while axes < most and deviations[axes] >= _OF_RESOLUTION * _resolution(deviations[: axes + 1], power, k):
        axes += 1
    return axes


def _resolution(deviations: Floats, power: float, k: int) -> float:
    """The least distance of clusters that a sketch can separate; `power` is N * mu."""
    side = 1 / len(deviations)
    by_noise = _RESOLUTION / max(2.0**tuning.FEW_RECORDS_CELLS * power, 1.0) ** side
    mean = float(np.exp(np.log(np.maximum(deviations, 1e-6)).mean()))
    return mean * float(max(by_noise, _CLUSTERS_APART / k**side))


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
        known = Known((synthetic.masses(centres) + overview.size / followed) / 2, _DOUBT)
        synthetic = SyntheticPoints(overview.in_all_columns(synthetic.points), synthetic.weights)
        centres = clip_into(self.domain, overview.in_all_columns(centres))
        for each, bias in zip(self.rounds, tuning.FEW_RECORDS_BIAS, strict=True):
            found = each.run(probe, rows, centres, overview.edges, free, known, bias)
            moves = shorten(shrinkage.of(found.moves, found.errors), found.radii)
            if followed > k:
                weights = np.maximum(found.expected, _LEAST_WEIGHT * overview.size / len(centres))
            else:  # with so few records, counts hardly show which clusters are noise
                weights = np.maximum(found.sizes, _LEAST_SIZE * overview.size / len(centres))
            synthetic = synthetic.corrected(found.centres, moves, weights)
            start = found.centres + moves
            if len(start) > k:
                start = agglomerated(start, weights, k)
            # New starts may find missed clusters; not after the last round, as no round would measure them.
            anew = each is not self.rounds[-1]
            centres = clip_into(self.domain, synthetic.means(k, draw, start, anew))
            sizes = np.maximum(synthetic.masses(centres), _LEAST_SIZE * overview.size / k)
            known = Known(sizes, _LATER_DOUBT)
        radii = found.radii.astype(np.float64)
        details = overview_details(self.domain, overview, radii)
        return Clusters(centres, np.maximum(found.sizes, 0.0), radii, details)
