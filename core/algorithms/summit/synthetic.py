"""Synthetic points that stand for few records, drawn from a released density: of a tree, or of a sketch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from core.algorithms.summit.exploration import BOX_DEVIATIONS, LEVEL_OPERATIONS
from core.algorithms.summit.overview import Overview
from core.arrays import Floats
from core.blocks.adaptive_tree import LevelRule, halvings
from core.blocks.base import Block
from core.blocks.density_tree import DensityTree
from core.blocks.fourier_sketch import FourierSketch
from core.blocks.work import RECORD, VALUE
from core.data import UNITS
from core.plan import Plan, Step, Work
from core.postprocessing.synthetic_points import SyntheticPoints, sample_leaves
from core.probe import Probe

POINTS_PER_CENTRE = 40  # Synthetic points for each centre.
LEAST_POINTS = 1000  # Synthetic points at least.
MOST_POINTS = 6000  # Synthetic points at most, but three for each centre.
HEAD = 0.5  # Standard deviations in an average cell of the first level: few levels have little noise each.
LATER = (3,) * 9  # Halvings of the levels after the first.
KEEP = 2.0  # Standard deviations of the noise above which the count of a cell keeps it active.
OUTSIDE_SPREAD = 0.5  # Deviation of points along axes that the tree does not cut, over that of all records.
FOUND = 3.0  # Times what a cell needs that a group needs to be found: counts of empty cells are weighed, too.
CELLS = 2.1  # The last level, or a sketch, has about 2 to this power, times N * mu, cells.
RESOLUTION = 3.4  # Deviations, over the cells along an axis, as far as noise lets clusters be told apart.
CLUSTERS_APART = 1.22  # The same if there were k cells: clusters that fill space are no closer.
LEAST_DEVIATION = 0.8  # Deviations along an axis count as at least this share of their mean.
SKETCH_AXES = 8  # Axes of a sketch, at most: others would add noise and separate no clusters.
OF_LARGEST = 0.35  # Share of the largest deviation that an axis has unless it stands out from noise.
OF_RESOLUTION = 0.4  # Share of the resolution that the deviation along every axis has.
SKETCH_FOUND = 6.0  # Standard deviations of the noise in the density that a group must hold to be found.
FREQUENCY_OPERATIONS = 12.0  # Operations to add a record to one frequency.
FIT_OPERATIONS = 1.2e5  # Operations for each frequency to fit a mixture of any size.
COMPONENT_OPERATIONS = 1.9e4  # Operations for each frequency and each component of the mixture.


def synthetic_point_count(k: int) -> int:
    """The number of synthetic points for k clusters."""
    return max(min(max(POINTS_PER_CENTRE * k, LEAST_POINTS), MOST_POINTS), 3 * k)


def level_rule(depth: int) -> LevelRule:
    """How a tree of this depth is divided into levels."""
    return LevelRule(depth, HEAD, LATER)


@dataclass(frozen=True)
class TreePoints(Block):
    """Points drawn from the counts of a tree along the first axes."""

    tree: DensityTree
    axes: int
    depth: int

    def steps(self) -> tuple[Step, ...]:
        return self.tree.steps()

    def run(self, probe: Probe, overview: Overview) -> SyntheticPoints:
        """Points in the projected view; their weights add up to all records."""
        k, deviations = probe.plan.k, overview.deviations[: self.axes]
        reach = np.clip(BOX_DEVIATIONS * deviations, 1.0, UNITS)
        codes, noise = halvings(overview.view, reach, self.depth), self.tree.deviation(probe.plan, "tree")
        bits = level_rule(self.depth).bits(overview.size, noise, self.tree.levels)
        spread, clump = np.maximum(deviations, 1.0), overview.size / k
        leaves = self.tree.run(probe, codes, bits, overview.size, KEEP, spread, clump)
        draw = probe.draw("synthetic-points")
        return sample_leaves(leaves, overview.deviations, OUTSIDE_SPREAD, synthetic_point_count(k), draw)

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        return FOUND * KEEP * self.tree.deviation(plan, "tree")

    def work(self, plan: Plan) -> Work:
        return Work(plan.domain.size * (RECORD / 4 + LEVEL_OPERATIONS * self.tree.levels), 0.0)


@dataclass(frozen=True)
class SketchPoints(Block):
    """Points drawn from a mixture of round clusters that is fitted to a Fourier sketch."""

    sketch: FourierSketch

    def steps(self) -> tuple[Step, ...]:
        return self.sketch.steps()

    def run(self, probe: Probe, overview: Overview) -> SyntheticPoints:
        """Points in the projected view; their weights add up to all records."""
        power, k = overview.size * probe.plan.shares().total, probe.plan.k
        axes = _separating_axes(overview.deviations, overview.subspace.clear, power, k)
        overall = math.sqrt(float(np.mean(overview.deviations[:axes] ** 2)))
        deviations = np.maximum(overview.deviations[:axes], max(LEAST_DEVIATION * overall, 1.0))
        length = _resolution(deviations, power, k)
        view = replace(overview.view, matrix=overview.view.matrix[:, :axes])
        fit = self.sketch.run(probe, view, deviations, length, overview.size)
        draw = probe.draw("synthetic-points")
        synthetic = fit.mixture(k, draw).sample(overview.size, synthetic_point_count(k), draw)
        others = np.zeros((len(synthetic.points), overview.view.width - axes))
        return SyntheticPoints(np.concatenate([synthetic.points, others], axis=1), synthetic.weights)

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        return SKETCH_FOUND * self.sketch.density_noise(plan)

    def work(self, plan: Plan) -> Work:
        size, frequencies = float(plan.domain.size), float(self.sketch.frequencies)
        operations = size * RECORD / 4 + size * frequencies * FREQUENCY_OPERATIONS + 2 * VALUE * frequencies
        operations += frequencies * (FIT_OPERATIONS + COMPONENT_OPERATIONS * plan.k)
        return Work(operations, 1e5 * frequencies)


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
