"""Seeds along the axes: a tree of counts, rounds about more centres than asked for, and a merge."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from core.algorithms.summit.overview import Overview, round_edges
from core.algorithms.summit.shrinkage import moved_along_axes
from core.arrays import Floats
from core.blocks.adaptive_tree import AdaptiveTree, LevelRule, halvings
from core.blocks.base import Block
from core.blocks.rounds import ClippedRounds, Round
from core.blocks.work import RECORD, dense_rounds
from core.data import UNITS
from core.plan import Plan, Step, Work
from core.postprocessing.kmeans import many_points_operations, merge_operations, weighted_kmeans
from core.postprocessing.seeds import Coreset, merged, padded, reseeded
from core.probe import Probe

BOX_DEVIATIONS = 2.5  # The box of the tree, in standard deviations along each axis.
KEEP = 2.75  # Standard deviations of the noise above which the count of a cell keeps it active.
FOUND = 2.0  # A group is spread over cells: to be found it needs this many times what a cell needs.
HEAD = 8.0  # Standard deviations of the noise that an average cell of the first level should hold.
LATER = (1, 1, 2, 2, 3, 3, 3, 3, 3)  # Halvings of the levels after the first.
SEED_STARTS = 5  # Starts of k-means on the leaves of the tree, of which the best gives the seeds.
OVERSEED = 2.0  # Seeds for each centre that is asked for: more to merge from.
ENOUGH_SEEDS = 64  # Seeds that are followed at least, where counts allow.
SEED_COORDINATES = 1280  # Coordinates of all seeds together: in few columns a seed is measured fast.
SEED_NOISES = 3.0  # Standard deviations of its size that a seed must be able to hold.
SPARE_SEED_NOISES = 10.0  # Standard deviations of its size that a seed beyond `OVERSEED` must hold.
LEAST_SEEDS = 8  # Seeds that are followed whatever counts allow, unless fewer centres are asked for.
SEED_OPERATIONS = 1.2e6  # Operations to find a seed among the leaves.
CLUSTER_OPERATIONS = 5e5  # Operations to merge seeds into a cluster.
LEVEL_OPERATIONS = 8.0  # Operations to count a record in a level of the tree.


def level_rule(depth: int) -> LevelRule:
    """How a tree of this depth is divided into levels."""
    return LevelRule(depth, HEAD, LATER)


def enough_seeds(k: int) -> int:
    """Seeds to follow at most, where columns are many."""
    return max(round(OVERSEED * k), ENOUGH_SEEDS)


def affordable_seeds(size: float, noise: float, k: int, most: int) -> int:
    """Number of seeds to follow, given about how many records there are and the noise in the size of one."""
    asked = min(round(OVERSEED * k), size / (SEED_NOISES * noise))
    spare = min(most, size / (SPARE_SEED_NOISES * noise))
    return int(max(asked, spare, min(k, LEAST_SEEDS), 2))


@dataclass(frozen=True)
class Exploration(Block):
    """The tree and the exploring rounds of a run."""

    k: int
    tree: AdaptiveTree
    rounds: ClippedRounds
    #: Axes that the tree cuts, and how often it cuts them in all.
    tree_axes: int
    depth: int
    most_seeds: int

    def steps(self) -> tuple[Step, ...]:
        return (*self.tree.steps(), *self.rounds.steps())

    def run(self, probe: Probe, overview: Overview) -> Floats:
        """At most k centres in the projected view."""
        return self.seeds(probe, overview, self.coreset(probe, overview))

    def coreset(self, probe: Probe, overview: Overview) -> Coreset:
        """Points in the projected view that stand for all records."""
        axes = min(self.tree_axes, overview.view.width)
        reach = np.clip(BOX_DEVIATIONS * overview.deviations[:axes], 1.0, UNITS)
        codes = halvings(overview.view, reach, self.depth, overview.outer)
        noise = self.tree.deviation(probe.plan, "tree")
        bits = level_rule(self.depth).bits(overview.size, noise, self.tree.levels)
        leaves = self.tree.run(probe, codes, bits, overview.size, KEEP)
        points = np.zeros((len(leaves.points), overview.view.width))
        points[:, :axes] = leaves.points
        return Coreset(points, leaves.weights)

    def seeds(self, probe: Probe, overview: Overview, coreset: Coreset) -> Floats:
        """At most k centres: rounds on more seeds than asked for, then a merge."""
        draw, rounds = probe.draw("seeding"), replace(self.rounds, own_scales=overview.extent.far_out)
        noise = rounds.deviation(probe.plan, "sizes")
        count = affordable_seeds(overview.size, noise, self.k, self.most_seeds)
        coreset = padded(coreset, count + 2, overview.deviations, draw)
        centres = weighted_kmeans(coreset.points, coreset.weights, count, draw, SEED_STARTS)
        weights = np.ones(len(centres))
        for left in reversed(range(rounds.rounds)):
            outcome = rounds.run(probe, overview.view, centres, round_edges(), overview.view.width)
            centres = self.moved(outcome, left)
            weights = np.where(outcome.sizes > outcome.size_error, outcome.sizes, 0.0)
            if left:
                centres = reseeded(centres, weights, outcome.spreads, coreset, overview.deviations, draw)
        return self.chosen(overview, outcome, centres, weights, draw)

    def moved(self, outcome: Round, left: int) -> Floats:
        """Centres after a round, with this many rounds left."""
        return moved_along_axes(outcome)

    def chosen(
        self, overview: Overview, last: Round, centres: Floats, weights: Floats, draw: np.random.Generator
    ) -> Floats:
        """At most k centres, given all that were explored."""
        return merged(centres, weights, self.k, draw)

    def smallest_cluster(self, plan: Plan) -> float:
        """About how many records a group far from all others needs to be found."""
        cell, seed = self.tree.deviation(plan, "tree"), self.rounds.deviation(plan, "sizes")
        return FOUND * max(KEEP * cell, SEED_NOISES * seed)

    def work(self, plan: Plan, axes: float) -> Work:
        """The work along this many axes."""
        size, noise = float(plan.domain.size), self.rounds.deviation(plan, "sizes")
        seeds = float(affordable_seeds(size, noise, self.k, self.most_seeds))
        cells = size / (KEEP * self.tree.deviation(plan, "tree"))  # as many as may stay active; about half do
        operations = size * (RECORD / 4 + LEVEL_OPERATIONS * self.tree.levels)
        operations += dense_rounds(size, axes, seeds, self.rounds.rounds)
        operations += SEED_OPERATIONS * seeds + CLUSTER_OPERATIONS * min(self.k, seeds)
        operations += merge_operations(cells) + many_points_operations(cells / 2, axes, seeds)
        return Work(operations, 0.0)
