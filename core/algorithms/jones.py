"""Jones et al. (2021): k centres among public sites, by maximum coverage over growing radii."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.blocks.max_coverage import above_noise, cover, coverage_for, growing_radii, rest_of
from core.coverage import CoverageLoop, SiteBalls
from core.data import Dense, Domain, Ids, read_sites
from core.errors import InvalidRequest
from core.mechanisms import LaplaceNoise
from core.plan import Plan, Request, Step, Work
from core.postprocessing.medoids import weighted_medoids
from core.privacy import MARGIN
from core.probe import Probe
from core.statistics import SiteCounts
from core.views import SiteDistances

#: The paper's split: half for coverage, half for counts.
COVER_SHARE = 0.5
#: Radii reach from the largest distance down to this part of it.
SPAN = 64.0
GROWTH = 2.0
MOST_ROUNDS = 1000


class Jones(Algorithm):
    """Facility location for private demand; its privacy argument is in `jones.md`."""

    name = "jones"
    summary = "maximum coverage over public sites, then weighted k-medians on noisy counts"
    objectives = ("medians", "means")
    guarantee = "either"
    domains = ("dense", "ids")
    options = (
        Option("sites", dict, None, "public sites: coordinates with a metric, or a matrix of distances"),
        Option(
            "power",
            int,
            None,
            "the cost of a distance is this power of it; by default 1 for medians, 2 for means",
            least=1,
            most=8,
        ),
        Option(
            "rounds", int, None, "picks at each radius; by default two for each cluster", least=1, most=1000
        ),
        Option("growth", float, GROWTH, "each radius is this many times the one before", least=1.1, most=16),
        Option(
            "accounting",
            str,
            "pure",
            "how the coverage loop is accounted for",
            choices=("pure", "approximate", "jones"),
        ),
    )

    def example_options(self, domain: Domain) -> dict[str, Any]:
        if isinstance(domain, Ids):
            places = np.arange(domain.count, dtype=float)
            return {"sites": {"kind": "distances", "matrix": np.abs(places[:, None] - places).tolist()}}
        assert isinstance(domain, Dense)
        corner, step = domain.decode(np.zeros((1, domain.dimension)))[0], domain.unit_lengths() * 1000
        return {
            "sites": {"kind": "coordinates", "points": [(corner + i * step).tolist() for i in range(-4, 5)]}
        }

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        sites = read_sites(domain, chosen["sites"], request.k)
        if chosen["accounting"] != "pure" and request.budget.is_pure:
            raise InvalidRequest(
                f"accounting {chosen['accounting']} needs a delta above zero", parameter="options.accounting"
            )
        rounds = chosen["rounds"] or min(2 * request.k, MOST_ROUNDS)
        radii = growing_radii(SiteDistances.of(domain, sites).reach, SPAN, chosen["growth"])
        loop = coverage_for(request.budget, chosen["accounting"], COVER_SHARE, domain.rows_per_person)
        counts = rest_of(request.budget, chosen["accounting"], COVER_SHARE)
        picks = rounds * len(radii)
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=(
                Step("cover", loop, CoverageLoop.kind, picks, "sites near many records not covered before"),
                Step(
                    "counts",
                    LaplaceNoise(counts.epsilon * (1 - MARGIN) / domain.rows_per_person),
                    SiteCounts.kind,
                    1,
                    "how many records each picked site is nearest to",
                ),
            ),
            parameters={
                **chosen,
                "sites": sites.to_json(),
                "power": chosen["power"] or (1 if request.objective == "medians" else 2),
                "rounds": rounds,
                "radii": list(radii),
                "weight_per_record": loop.eta,
                "kept": loop.keep / 2**64,
            },
            work=Work(
                operations=4.0 * domain.size * (len(sites) * (len(radii) + 1) + picks),
                memory_bytes=24.0 * domain.size + 40.0 * picks * len(sites),
            ),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        given = plan.parameters
        sites = read_sites(plan.domain, given["sites"], plan.k)
        distances = SiteDistances.of(plan.domain, sites)
        family = SiteBalls(distances, tuple(given["radii"]))
        listed = np.unique(np.concatenate(cover(probe, "cover", family, given["rounds"])))
        counts = probe.measure("counts", SiteCounts(distances, listed))
        weights = above_noise(counts, plan.step("counts").mechanism)
        costs = (distances.between(listed) / distances.reach) ** given["power"]
        picked = weighted_medoids(costs, weights, plan.k)
        nearest = costs[:, picked].argmin(axis=1)
        sizes = np.bincount(nearest, weights, minlength=plan.k).astype(np.float64)
        return Clustering(sites.centres(picked), sizes, plan, dict(probe.draws), {"sites": picked.tolist()})
