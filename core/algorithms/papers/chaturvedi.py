"""Chaturvedi et al. (2021) for k-means: maximum coverage over a grid in a projection, noisy averages."""

import numpy as np

from core.algorithms.papers.projected_coverage import (
    RECOVERY,
    ProjectedCoverage,
    coverage_in_projection,
    refinement,
)
from core.algorithms.papers.stages.max_coverage import MaxCoverage, in_few_dimensions
from core.algorithms.papers.stages.recovery import CONSTANTS, GroupMeans
from core.arrays import Floats, Integers
from core.blocks.base import Clusters
from core.blocks.rounds import Refinement
from core.blocks.work import coverage_picks, lloyd_rounds, projection
from core.coverage.grid_balls import GridBalls
from core.data import UNITS
from core.options import Option
from core.plan import Plan, Work
from core.postprocessing.kmeans import weighted_kmeans
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.views import Assigned

#: Grid points lie this part of the radius apart; a grid point's set holds cells within sqrt(REACH) steps.
SPACING = 0.75
REACH = 2


class Chaturvedi(ProjectedCoverage):
    """The paper's Algorithms 1 to 3, corrected; the argument is in `chaturvedi.md`."""

    name = "chaturvedi"
    summary = "maximum coverage over a grid in a projection, noisy averages, one round of Lloyd's algorithm"
    lengths = "spacings"
    purposes = ("grid points near uncovered records", "records nearest to each grid point")
    options = (
        *coverage_in_projection(32.0, "chaturvedi"),
        Option("lloyd", int, 1, "rounds of Lloyd's algorithm at the end", least=0, most=100),
        Option.word("averages", "constants of the noise in averages", *CONSTANTS),
    )

    def lengths_of(self, radii: tuple[int, ...]) -> list[int]:
        return sorted({max(1, round(SPACING * radius)) for radius in radii})

    def blocks(
        self, plan: Plan
    ) -> tuple[MaxCoverage, GroupMeans] | tuple[MaxCoverage, GroupMeans, Refinement]:
        rounds, constants = plan.parameters["lloyd"], plan.parameters["averages"]
        coverage = self.coverage(plan.shares(), plan.parameters)
        first, rest = RECOVERY if rounds else 1.0, coverage.rest
        if constants == "tight":
            means, last, left = GroupMeans(plan.domain, rest, first), rest, 1 - first
        else:  # the paper's averages do not compose as Gaussian DP, so they get their own budget
            delta = 0.5 if rounds else 1.0
            means = GroupMeans(plan.domain, rest.portion(first, delta), 1.0, constants=constants)
            last, left = rest.portion(1 - first, delta) if rounds else rest, 1.0
        return (coverage, means, refinement(plan, last, left, rounds)) if rounds else (coverage, means)

    def work(self, plan: Plan) -> Work:
        size, width, dimension = float(plan.domain.size), plan.domain.dimension, plan.parameters["dimension"]
        picks = self.coverage(plan.shares(), plan.parameters).picks
        around = float(len(GridBalls.offsets_within(dimension, REACH)))
        # Sparse rows hardly share cells: nearly each record has its own, with neighbours, at every level.
        listed = 480.0 if plan.domain.kind == "sparse" else 120.0
        return Work(
            operations=projection(plan.domain, dimension)
            + lloyd_rounds(plan.domain, plan.k, plan.parameters["lloyd"] + 1)
            + 4 * coverage_picks(picks)  # occupied cells are listed again for each pick
            + size * plan.parameters["kept"] * (listed * around + (20.0 + 16.0 * dimension) * picks),
            memory_bytes=size * (8.0 * dimension + 24.0 + 16.0 * around) + 32.0 * plan.k * width,
        )

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        coverage, means, *last = self.blocks(plan)
        view = in_few_dimensions(probe)
        family = GridBalls(view, tuple(plan.parameters["spacings"]), REACH)
        picks = coverage.run(probe, family)
        points = np.unique(
            np.concatenate([family.points(level, found) for level, found in enumerate(picks)]), axis=0
        )
        weights = coverage.weights(probe, ClusterCounts(Assigned(view, points)))
        seeds = _seeds(points, weights, plan.k, probe.draw("proxy"))
        return self.finish(probe, view, np.rint(seeds).astype(np.int64), means, *last)


def _seeds(points: Integers, weights: Floats, k: int, draw: np.random.Generator) -> Floats:
    """k centres of the weighted points; what is missing is filled with random points of the ball."""
    seeds = weighted_kmeans(points.astype(np.float64), weights, k, draw)
    filling = draw.normal(size=(k - len(seeds), points.shape[1]))
    filling *= UNITS / np.maximum(np.linalg.norm(filling, axis=1, keepdims=True), 1.0)
    return np.concatenate([seeds, filling])
