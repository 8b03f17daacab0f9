"""Stages that two papers share: coverage in a projection, noisy counts, averages in all columns."""

import math
from collections.abc import Mapping
from typing import Any

from core.algorithms.papers.base import PaperAlgorithm, coverage_options
from core.algorithms.papers.stages.lloyd import stein_moves, sum_share
from core.algorithms.papers.stages.max_coverage import MOST_ROUNDS, MaxCoverage, growing_radii
from core.algorithms.papers.stages.projection import dimension_for
from core.algorithms.papers.stages.recovery import GroupMeans
from core.arrays import Integers
from core.blocks.base import Clusters
from core.blocks.noise import RELEASED
from core.blocks.rounds import ClippedRounds, Refinement
from core.data import UNITS, Domain
from core.options import Option
from core.plan import Plan, Request
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import ClusterCounts
from core.views import Assigned, RowView

COVER_SHARE = 0.15  # Share of epsilon of the coverage loop.
COUNT_SHARE = 0.1  # Share of epsilon of the counts; the rest is Gaussian.
RECOVERY = 0.3  # The part of the rest that the first averages get.
MOST_DIMENSIONS = 5  # A grid of more dimensions would be nearly all empty.


class ProjectedCoverage(PaperAlgorithm):
    """Base of the Euclidean algorithms by coverage; subclasses define the sets that cover records."""

    guarantee = "approximate"
    #: The parameter that lists a length for each level, and what the two coverage steps are for.
    lengths: str
    purposes: tuple[str, str]

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        wanted = options["dimension"] or MOST_DIMENSIONS
        public = {
            **options,
            "dimension": min(wanted, dimension_for(domain.size), domain.dimension),
            "rounds": options["rounds"] or min(math.ceil(1.5 * request.clusters), MOST_ROUNDS),
            self.lengths: self.lengths_of(growing_radii(UNITS, options["span"], options["growth"])),
        }
        return {**public, **self.coverage(Shares(request.budget, domain.rows_per_person), public).facts()}

    def lengths_of(self, radii: tuple[int, ...]) -> list[int]:
        """The length of each level, given its radius."""
        return list(radii)

    def coverage(self, shares: Shares, public: Mapping[str, Any]) -> MaxCoverage:
        rounds, levels, split = public["rounds"], len(public[self.lengths]), (COVER_SHARE, COUNT_SHARE)
        return MaxCoverage(shares, split, public["accounting"], rounds, levels, ClusterCounts, self.purposes)

    def finish(
        self, probe: Probe, view: RowView, middles: Integers, means: GroupMeans, *last: Refinement
    ) -> Clusters:
        """The noisy averages of the clusters about some points, and rounds that refine them."""
        found = means.run(probe, Assigned(view, middles))
        for refinement in last:
            found = refinement.run(probe, found.centres)
        return found


def coverage_in_projection(span: float, accounting: str) -> tuple[Option, ...]:
    """The options that both algorithms have."""
    return (
        Option("dimension", int, None, "dimensions of the projection", least=1, most=MOST_DIMENSIONS),
        *coverage_options("three for two clusters", 1.25, accounting),
        Option("span", float, span, "the largest radius is this many times the smallest", least=1, most=256),
    )


def refinement(plan: Plan, shares: Shares, fraction: float, rounds: int) -> Refinement:
    """The last rounds of both algorithms."""
    purposes = ("how far each cluster reaches", "where its middle lies", "how many records it has")
    share = sum_share(plan.domain.dimension)
    clipped = ClippedRounds(shares, fraction, share, rounds, purposes=purposes)
    medians = plan.objective == "medians"
    return Refinement(plan.domain, (clipped,), stein_moves, medians, None if medians else RELEASED)
