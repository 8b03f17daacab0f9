"""Jones et al. (2021): k centres among public sites, by maximum coverage over growing radii."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.algorithms.papers.base import SiteAlgorithm, coverage_options
from core.algorithms.papers.stages.max_coverage import MOST_ROUNDS, MaxCoverage, growing_radii
from core.blocks.base import Clusters
from core.blocks.work import coverage_picks
from core.coverage.families import SiteBalls
from core.data import Domain
from core.errors import InvalidRequest
from core.options import Option
from core.plan import Plan, Request, Work
from core.postprocessing.medoids import weighted_medoids
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.counts import SiteCounts
from core.views import SiteDistances

COVER_SHARE = 0.5  # The paper's split: half for coverage, half for counts.
_PURPOSES = ("sites near many records not covered before", "how many records each picked site is nearest to")
SPAN = 64.0  # Radii reach from the largest distance down to this part of it.

_POWER = "the cost of a distance is this power of it; by default 1 for medians, 2 for means"


class Jones(SiteAlgorithm):
    """Facility location for private demand; its privacy argument is in `jones.md`."""

    name = "jones"
    summary = "maximum coverage over public sites, then weighted k-medians on noisy counts"
    objectives = ("medians", "means")
    options = (
        SiteAlgorithm.SITES,
        Option("power", int, None, _POWER, least=1, most=8),
        *coverage_options("two for each cluster", 1.1, "jones"),
    )

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        if options["accounting"] != "pure" and request.budget.is_pure:
            raise InvalidRequest(
                f"accounting {options['accounting']} needs a delta above zero", parameter="options.accounting"
            )
        radii = growing_radii(options["sites"].facts(domain).reach, SPAN, options["growth"])
        public = {
            **{name: value for name, value in options.items() if name != "sites"},
            "power": options["power"] or (1 if request.objective == "medians" else 2),
            "rounds": options["rounds"] or min(2 * request.clusters, MOST_ROUNDS),
            "radii": list(radii),
        }
        return {**public, **_coverage(Shares(request.budget, domain.rows_per_person), public).facts()}

    def blocks(self, plan: Plan) -> tuple[MaxCoverage]:
        return (_coverage(plan.shares(), plan.parameters),)

    def work(self, plan: Plan) -> Work:
        (coverage,), sites, size = self.blocks(plan), self.count(plan), plan.domain.size
        width = plan.domain.dimension
        # Of the records that take part: distances to all sites at each level and when they leave, and to the
        # site of each pick.
        visits = coverage.levels + 1
        covered = visits * sites * (2.1 + 0.02 * width) + (visits + coverage.picks) * (46.0 + 2.6 * width)
        return Work(
            operations=size * (plan.parameters["kept"] * covered + sites) + coverage_picks(coverage.picks),
            memory_bytes=24.0 * size + 40.0 * coverage.picks * sites,
        )

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        (coverage,) = self.blocks(plan)
        distances = SiteDistances.of(plan.domain, self.sites(plan))
        family = SiteBalls(distances, tuple(plan.parameters["radii"]))
        listed = np.unique(np.concatenate(coverage.run(probe, family)))
        weights = coverage.weights(probe, SiteCounts(distances, listed))
        costs = (distances.between(listed) / distances.reach) ** plan.parameters["power"]
        picked = weighted_medoids(costs, weights, plan.k)
        nearest = costs[:, picked].argmin(axis=1)
        sizes = np.bincount(nearest, weights, minlength=plan.k).astype(np.float64)
        return Clusters(picked.astype(np.float64), sizes, details={"sites": picked.tolist()})


def _coverage(shares: Shares, public: Mapping[str, Any]) -> MaxCoverage:
    rounds, levels, split = public["rounds"], len(public["radii"]), (COVER_SHARE, 1 - COVER_SHARE)
    return MaxCoverage(shares, split, public["accounting"], rounds, levels, SiteCounts, _PURPOSES)
