"""DP-Lloyd (Blum et al. 2005): rounds of noisy averages from starting points that owe nothing to the rows."""

from __future__ import annotations

import math

import numpy as np

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.arithmetic import WEIGHT_ONE
from core.blocks.starts import clip_into, spread_centres
from core.domain import UNITS, Domain
from core.mechanisms import additive_noise, vector_noise
from core.plan import Plan, Request, Step, Work
from core.privacy import Shares
from core.probe import Probe
from core.statistics import ClusterCounts, ResidualSums
from core.views import Assigned, Encoded

__all__ = ["Sulq"]


class Sulq(Algorithm):
    """The classic baseline; its privacy argument is in `sulq.md`."""

    name = "sulq"
    summary = "Lloyd's rounds with noisy averages, from public starting points"
    objectives = ("means",)
    guarantee = "either"
    domains = ("dense", "sparse")
    options = (Option("rounds", int, 5, "how many rounds of noisy averages", least=1, most=100),)

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        rounds, width = chosen["rounds"], domain.dimension
        shares = Shares(request.budget, domain.rows_per_person)
        # The split between sums and counts that minimises the error of their quotient.
        root = math.sqrt(width)
        sums = shares.of(root / (1 + root) / rounds)
        counts = shares.of(1 / (1 + root) / rounds)
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=(
                Step("counts", additive_noise(counts), ClusterCounts.kind, rounds, "size of each cluster"),
                Step(
                    "sums",
                    vector_noise(sums),
                    ResidualSums.kind,
                    rounds,
                    "where the mean of each cluster lies",
                ),
            ),
            parameters=chosen,
            work=Work(
                operations=2.0 * domain.size * width * (request.k + 1) * rounds,
                memory_bytes=16.0 * domain.size + 16.0 * request.k * width,
            ),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        domain = plan.domain
        rows = Encoded.of(domain)
        centres = spread_centres(domain, plan.k, probe.draw("starts"))
        radii = np.full(plan.k, UNITS, dtype=np.int64)
        sizes = np.zeros(plan.k)
        for _ in range(plan.parameters["rounds"]):
            assigned = Assigned(rows, np.rint(centres).astype(np.int64))
            counts = probe.measure("counts", ClusterCounts(assigned))
            sums = probe.measure("sums", ResidualSums(assigned, radii))
            sizes = np.maximum(counts, 0).astype(np.float64)
            moves = sums / WEIGHT_ONE / np.maximum(counts, 1)[:, None]
            centres = clip_into(domain, assigned.centres + moves)
        return Clustering(domain.decode(centres), sizes, plan, dict(probe.draws))
