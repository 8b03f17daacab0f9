"""DP-Lloyd (Blum et al. 2005): rounds of noisy averages from starting points that owe nothing to the rows."""

from __future__ import annotations

from core.algorithms.base import Algorithm, Clustering, Option, read_options
from core.blocks.forecast import forecast_of
from core.blocks.lloyd import lloyd_rounds, lloyd_steps, sum_share
from core.data import UNITS, Domain
from core.plan import KEPT_BYTES, Plan, Request, Work
from core.postprocessing.bounds import spread_centres
from core.privacy import Shares
from core.probe import Probe


class Sulq(Algorithm):
    """The classic baseline; its privacy argument is in `sulq.md`."""

    name = "sulq"
    summary = "Lloyd's rounds with noisy averages, from public starting points"
    objectives = ("means",)
    guarantee = "either"
    domains = ("dense", "sparse")
    options = (
        Option("rounds", int, 8, "how many rounds of noisy averages", least=1, most=100),
        Option(
            "clip",
            float,
            1.0,
            "residuals are clipped to this share of the domain's radius",
            least=0.001,
            most=2,
        ),
    )

    def plan(self, domain: Domain, request: Request) -> Plan:
        chosen = read_options(self.options, request.options)
        rounds, width = chosen["rounds"], domain.dimension
        shares = Shares(request.budget, domain.rows_per_person)
        share, radius = sum_share(width), max(1, round(chosen["clip"] * UNITS))
        steps = lloyd_steps(shares.of(share / rounds), shares.of((1 - share) / rounds), rounds)
        return Plan(
            algorithm=self.name,
            objective=request.objective,
            k=request.k,
            domain=domain,
            budget=request.budget,
            steps=steps,
            parameters={"rounds": rounds, "radius": radius},
            forecast=forecast_of(steps, domain, request.k, radius=radius),
            work=Work(
                operations=2.0 * domain.size * width * (request.k + 1) * rounds,
                memory_bytes=min(16.0 * domain.size, KEPT_BYTES) + 16.0 * request.k * width,
            ),
        )

    def run(self, plan: Plan, probe: Probe) -> Clustering:
        starts = spread_centres(plan.domain, plan.k, probe.draw("starts"))
        radius, rounds = plan.parameters["radius"], plan.parameters["rounds"]
        centres, sizes = lloyd_rounds(probe, starts, radius, rounds)
        return Clustering(plan.domain.decode(centres), sizes, plan, dict(probe.draws))
