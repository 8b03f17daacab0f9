"""Jones et al. (2021) in Euclidean space: released candidates, maximum coverage over them, noisy averages."""

import numpy as np

from core.algorithms.papers.projected_coverage import (
    RECOVERY,
    ProjectedCoverage,
    coverage_in_projection,
    refinement,
)
from core.algorithms.papers.stages.candidates import HashedCandidates, TreeCandidates
from core.algorithms.papers.stages.max_coverage import MaxCoverage, in_few_dimensions
from core.algorithms.papers.stages.recovery import GroupMeans
from core.blocks.base import Clusters
from core.blocks.rounds import Refinement
from core.blocks.work import coverage_picks, lloyd_rounds, partition_levels, projection
from core.coverage.families import Balls
from core.data import UNITS
from core.options import Option
from core.plan import Plan, Work
from core.postprocessing.kmeans import weighted_kmeans
from core.postprocessing.medoids import weighted_medians
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.views import Assigned

#: The share of the Gaussian part that candidates get; the last round gets what they and averages leave.
CANDIDATES = 0.2
_LISTED = 1000  # Candidates of a run, and cubes or buckets that a level or a table keeps, at least.
_PER_CLUSTER = 2  # The same for each cluster.
TREES = 4  # Partition trees.
DEPTH = 6  # Levels of a partition tree.
#: Widths of the buckets of six tables: a half, a quarter and an eighth of the ball's radius, each twice.
_BUCKET_WIDTHS = tuple(UNITS >> halvings for halvings in (1, 2, 3) for _ in range(2))

Candidates = TreeCandidates | HashedCandidates


class JonesEuclidean(ProjectedCoverage):
    """The paper's section 5 with released candidates; the argument is in `jones_euclidean.md`."""

    name = "jones-euclidean"
    summary = "candidates from partition trees or hashing, maximum coverage over them, noisy averages"
    objectives = ("means", "medians")
    lengths = "radii"
    purposes = ("candidates near records not covered before", "records nearest to each of them")
    options = (
        Option.word("candidates", "where candidates come from", "trees", "hashing"),
        *coverage_in_projection(16.0, "jones"),
    )

    def blocks(self, plan: Plan) -> tuple[Candidates, MaxCoverage, GroupMeans, Refinement]:
        coverage, dimension = self.coverage(plan.shares(), plan.parameters), plan.parameters["dimension"]
        rest = coverage.rest
        candidates: Candidates
        if plan.parameters["candidates"] == "hashing":
            candidates = HashedCandidates(rest, CANDIDATES, _BUCKET_WIDTHS, dimension, _listed(plan.k))
        else:
            purpose = "cubes with many records"
            candidates = TreeCandidates(
                rest, CANDIDATES, TREES, DEPTH, dimension, _listed(plan.k), name="trees", purpose=purpose
            )
        means = GroupMeans(plan.domain, rest, RECOVERY)
        return candidates, coverage, means, refinement(plan, rest, 1 - CANDIDATES - RECOVERY, 1)

    def work(self, plan: Plan) -> Work:
        size, width, dimension = float(plan.domain.size), plan.domain.dimension, plan.parameters["dimension"]
        coverage = self.coverage(plan.shares(), plan.parameters)
        return Work(
            operations=projection(plan.domain, dimension)
            + lloyd_rounds(plan.domain, plan.k, 2)
            + partition_levels(plan.domain, dimension, TREES * DEPTH)
            + coverage_picks(coverage.picks)
            # The records that take part: distances to all candidates at each level and when they leave, and
            # to each pick.
            + size
            * plan.parameters["kept"]
            * (3.0 * _listed(plan.k) * (coverage.levels + 1) + (60.0 + 8.0 * dimension) * coverage.picks),
            memory_bytes=size * (8.0 * dimension + 64.0) + 64.0 * plan.k * width + 1e8,
        )

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        source, coverage, means, last = self.blocks(plan)
        view, draw = in_few_dimensions(probe), probe.draw("candidates")
        candidates = source.run(probe, view, draw).candidates(_listed(plan.k), draw)
        family = Balls(view, candidates, tuple(plan.parameters["radii"]))
        points = candidates[np.unique(np.concatenate(coverage.run(probe, family)))]
        weights = coverage.weights(probe, ClusterCounts(Assigned(view, points)))
        solve = weighted_medians if plan.objective == "medians" else weighted_kmeans
        seeds = solve(points.astype(np.float64), weights, plan.k, probe.draw("proxy"))
        seeds = np.rint(np.concatenate([seeds, candidates[: plan.k - len(seeds)]])).astype(np.int64)
        return self.finish(probe, view, seeds, means, last)


def _listed(k: int) -> int:
    """The candidates of a run."""
    return max(_LISTED, _PER_CLUSTER * k)
