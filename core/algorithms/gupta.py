"""Gupta et al. (2010): k-medians over a public finite set of sites, by private local swaps."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.blocks.local_search import local_swaps
from core.blocks.selection import LIMIT
from core.data import Dense, Domain, Ids, read_sites
from core.mechanisms import Choice
from core.plan import Plan, Request, Step, Work
from core.privacy import Split
from core.probe import Probe
from core.statistics import SetLosses, SwapLosses
from core.views import SiteDistances


class Gupta(Algorithm):
    """k-medians among public sites; the argument is in `gupta.md`."""

    name = "gupta"
    summary = "k public sites near private records, by private swaps of one site for another"
    objectives = ("medians",)
    guarantee = "either"
    domains = ("dense", "ids")
    options = (
        Option("sites", dict, None, "public sites: coordinates with a metric, or a matrix of distances"),
        Option("swaps", int, None, "how many swaps of local search", least=0, most=1_000_000),
    )

    def example_options(self, domain: Domain) -> dict[str, Any]:
        if isinstance(domain, Ids):
            places = np.arange(domain.count)
            matrix = np.abs(places[:, None] - places[None, :]).astype(float)
            return {"sites": {"kind": "distances", "matrix": matrix.tolist()}}
        assert isinstance(domain, Dense)
        steps = np.linspace(-0.5, 0.5, 8)[:, None] * np.ones(domain.dimension)
        low, high = (domain.decode(np.full((1, domain.dimension), end))[0] for end in (-1e6, 1e6))
        points = (low + high) / 2 + steps * (high - low) * 0.5
        return {"sites": {"kind": "coordinates", "metric": "euclidean", "points": points.tolist()}}

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        sites = read_sites(domain, chosen["sites"], request.k)
        swaps = chosen["swaps"] if chosen["swaps"] is not None else 2 * request.k
        rows = float(len(sites) if isinstance(domain, Ids) else domain.size)
        work = Work(
            operations=rows * len(sites) * (swaps + 1.0) * (domain.dimension + 10.0),
            memory_bytes=32.0 * request.k * len(sites) + 8.0 * len(sites) ** 2 + 1e8,
        )
        work.require_within(LIMIT)
        epsilon = Split(request.budget, domain.rows_per_person).choice(1.0, swaps + 1)
        steps = [Step("pick", Choice(epsilon), SetLosses.kind, 1, "the best set of sites on the way")]
        if swaps:
            steps.insert(
                0, Step("swap", Choice(epsilon), SwapLosses.kind, swaps, "which site to swap for which")
            )
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=tuple(steps),
            parameters={"swaps": swaps, "sites": sites.to_json(), "sites_digest": sites.digest},
            work=work,
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        sites = read_sites(plan.domain, plan.parameters["sites"], plan.k)
        distances = SiteDistances.of(plan.domain, sites)
        start = np.sort(probe.draw("start").choice(len(sites), plan.k, replace=False)).astype(np.int64)
        chosen = local_swaps(probe, "swap", "pick", distances, start, plan.parameters["swaps"])
        return Clustering(sites.centres(chosen), None, plan, dict(probe.draws), {"sites": chosen.tolist()})
