"""Gupta et al. (2010): k-medians over a public finite set of sites, by private local swaps."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.algorithms.papers.base import SiteAlgorithm
from core.algorithms.papers.stages.local_search import LocalSearch
from core.algorithms.papers.stages.selection import LIMIT
from core.blocks.base import Clusters
from core.blocks.work import PASS
from core.data import Domain, Ids
from core.options import Option
from core.plan import Plan, Request, Work
from core.probe import Probe
from core.views import SiteDistances


class Gupta(SiteAlgorithm):
    """k-medians among public sites; the argument is in `gupta.md`."""

    name = "gupta"
    summary = "k public sites near private records, by private swaps of one site for another"
    objectives = ("medians",)
    options = (
        SiteAlgorithm.SITES,
        Option("swaps", int, None, "how many swaps of local search", least=0, most=1_000_000),
    )

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        swaps = options["swaps"] if options["swaps"] is not None else 2 * request.clusters
        _work(domain, request.clusters, len(options["sites"]), swaps).require_within(LIMIT)
        return {"swaps": swaps}

    def blocks(self, plan: Plan) -> tuple[LocalSearch]:
        return (LocalSearch(plan.shares(with_choices=True), 1.0, plan.parameters["swaps"], noun="site"),)

    def work(self, plan: Plan) -> Work:
        return _work(plan.domain, plan.k, self.count(plan), plan.parameters["swaps"])

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        (search,) = self.blocks(plan)
        distances = SiteDistances.of(plan.domain, self.sites(plan))
        start = np.sort(probe.draw("start").choice(distances.count, plan.k, replace=False)).astype(np.int64)
        chosen = search.run(probe, distances, start)
        return Clusters(chosen.astype(np.float64), details={"sites": chosen.tolist()})


def _work(domain: Domain, k: int, sites: int, swaps: int) -> Work:
    rows = float(sites if isinstance(domain, Ids) else domain.size)
    return Work(
        operations=rows * sites * (swaps + 1) * (9.0 * PASS + 0.5 * domain.dimension),
        memory_bytes=32.0 * k * sites + 8.0 * sites**2 + 1e8,
    )
