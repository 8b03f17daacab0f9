"""Synthetic points that stand for few records, drawn from a released density: of a tree, or of a sketch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.algorithms.summit.exploration import BOX_DEVIATIONS, LEVEL_OPERATIONS
from core.algorithms.summit.overview import Overview
from core.arrays import Floats, Integers
from core.blocks.adaptive_tree import CountTree, LevelRule, halvings
from core.blocks.base import Block
from core.blocks.work import RECORD, VALUE
from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE
from core.kernels.fourier import TURN
from core.mechanisms.noise import vector_noise
from core.plan import Plan, Step, Work
from core.postprocessing.mixture import MixtureFit
from core.postprocessing.synthetic_points import (
    Leaves,
    SyntheticPoints,
    cell_chances,
    expected_counts,
    sample_leaves,
)
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.fourier import FourierSums
from core.views import LONGEST_COLUMN, PathCodes, RowView

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
CLUSTERS_APART = 1.22  # The same if there were k cells: clusters that fill space are at least this far apart.
LEAST_DEVIATION = 0.8  # Deviations along an axis count as at least this share of their mean.
SKETCH_AXES = 8  # Axes of a sketch, at most: others would add noise and separate no clusters.
OF_LARGEST = 0.35  # Share of the largest deviation that an axis has unless it exceeds the noise.
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
class TreePoints(CountTree):
    """Points drawn from the counts of a tree along the first axes, weighed against a prior."""

    axes: int
    depth: int

    def run(self, probe: Probe, overview: Overview) -> SyntheticPoints:
        """Points in the projected view; their weights add up to all records."""
        k, deviations = probe.plan.k, overview.deviations[: self.axes]
        reach = np.clip(BOX_DEVIATIONS * deviations, 1.0, UNITS)
        codes, noise = halvings(overview.view, reach, self.depth), self.deviation(probe.plan, "tree")
        bits = level_rule(self.depth).bits(overview.size, noise, self.levels)
        spread, clump = np.maximum(deviations, 1.0), overview.size / k
        leaves = self.leaves(probe, codes, bits, overview.size, spread, clump)
        draw = probe.draw("synthetic-points")
        return sample_leaves(leaves, overview.deviations, OUTSIDE_SPREAD, synthetic_point_count(k), draw)

    def leaves(
        self,
        probe: Probe,
        codes: PathCodes,
        bits: Sequence[int],
        total: float,
        deviations: Floats,
        clump: float,
    ) -> Leaves:
        """Cells, and the expected number of records in each.

        The prior is a normal distribution of these `deviations`, with most records in clumps of `clump`.
        """
        leaves: list[Leaves] = []
        held = np.array([total])
        for level in self.grow(probe, codes, bits, total, KEEP):
            low, high = codes.corners(level.children, level.depth)
            chances = cell_chances(low, high, deviations).reshape(level.counts.shape)
            chances = (chances / chances.sum(axis=1, keepdims=True) + 0.5**level.bits) / 2
            expected = expected_counts(level.counts, level.errors, held[:, None] * chances, clump)
            expected = (expected * (held / expected.sum(axis=1))[:, None]).reshape(-1)
            goes_on = level.kept.reshape(-1)
            leaves.append(Leaves(low[~goes_on], high[~goes_on], expected[~goes_on]))
            low, high, held = low[goes_on], high[goes_on], expected[goes_on]
        return Leaves.joined([*leaves, Leaves(low, high, held)])

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        return FOUND * KEEP * self.deviation(plan, "tree")

    def work(self, plan: Plan) -> Work:
        return Work(plan.domain.size * (RECORD / 4 + LEVEL_OPERATIONS * self.levels), 0.0)


@dataclass(frozen=True)
class SketchPoints(Block):
    """Points drawn from a mixture of round clusters that is fitted to a Fourier sketch.

    The sketch is one vector of noisy sums of cosines and sines, at frequencies drawn without looking at
    records. A cell as wide as a cluster holds it only if it happens to lie in its middle; a sketch treats all
    places alike, and shows the density at any of them with the noise of one count.
    """

    shares: Shares
    fraction: float
    frequencies: int

    def steps(self) -> tuple[Step, ...]:
        noise = vector_noise(self.shares.noise(self.fraction))
        return (self.step("sketch", noise, FourierSums, 1, "where records crowd"),)

    def run(self, probe: Probe, overview: Overview) -> SyntheticPoints:
        """Points in the projected view; their weights add up to all records."""
        power, k = overview.size * probe.plan.shares().total, probe.plan.k
        axes = _separating_axes(overview.deviations, overview.subspace.clear, power, k)
        overall = math.sqrt(float(np.mean(overview.deviations[:axes] ** 2)))
        deviations = np.maximum(overview.deviations[:axes], max(LEAST_DEVIATION * overall, 1.0))
        length = _resolution(deviations, power, k)
        view = replace(overview.view, matrix=overview.view.matrix[:, :axes])
        fit, draw = self.fit(probe, view, deviations, length, overview.size), probe.draw("synthetic-points")
        synthetic = fit.mixture(k, draw).sample(overview.size, synthetic_point_count(k), draw)
        others = np.zeros((len(synthetic.points), overview.view.width - axes))
        return SyntheticPoints(np.concatenate([synthetic.points, others], axis=1), synthetic.weights)

    def fit(self, probe: Probe, view: RowView, deviations: Floats, length: float, total: float) -> MixtureFit:
        """Measure a sketch with a resolution of about `length`, given deviations of all records."""
        drawn = probe.draw("frequencies").normal(size=(self.frequencies, view.width)) / length
        matrix = _steps_of_turns(drawn)
        statistic = FourierSums(view, matrix)
        summed = self.measure(probe, "sketch", statistic)[0] / statistic.length
        cosines, sines = summed.astype(np.float32).reshape(2, -1)
        frequencies = matrix.T * (2 * math.pi / (TURN * WEIGHT_ONE))
        return MixtureFit(
            frequencies=frequencies.astype(np.float32),
            cosines=cosines,
            sines=sines,
            noise=self.density_noise(probe.plan),
            total=total,
            deviations=deviations,
            length=length,
        )

    def density_noise(self, plan: Plan) -> float:
        """Standard deviation of the noise in the number of records near a place."""
        return self.deviation(plan, "sketch", 2 * self.frequencies)

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        return SKETCH_FOUND * self.density_noise(plan)

    def work(self, plan: Plan) -> Work:
        size, frequencies = float(plan.domain.size), float(self.frequencies)
        operations = size * RECORD / 4 + size * frequencies * FREQUENCY_OPERATIONS + 2 * VALUE * frequencies
        operations += frequencies * (FIT_OPERATIONS + COMPONENT_OPERATIONS * plan.k)
        return Work(operations, 1e5 * frequencies)


def _steps_of_turns(frequencies: Floats) -> Integers:
    """Frequencies as an integer matrix; those too high for exact phases are lowered."""
    steps = frequencies.T * (TURN * WEIGHT_ONE / (2 * math.pi))
    lengths = np.sqrt((steps**2).sum(axis=0))
    steps *= np.minimum(1.0, LONGEST_COLUMN / (2 * np.maximum(lengths, 1.0)))  # half of it: they are rounded
    rounded: Integers = np.rint(steps).astype(np.int64)
    return rounded


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
