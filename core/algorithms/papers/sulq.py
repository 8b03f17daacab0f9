"""DP-Lloyd (Blum et al. 2005): rounds of noisy averages from data-independent starting points."""

from collections.abc import Mapping
from typing import Any

from core.algorithms.papers.base import PaperAlgorithm
from core.algorithms.papers.stages.lloyd import LloydRounds
from core.blocks.base import Clusters
from core.blocks.work import lloyd_rounds
from core.data import UNITS, Domain
from core.options import Option
from core.plan import KEPT_BYTES, Plan, Request, Work
from core.postprocessing.bounds import spread_centres
from core.probe import Probe


class Sulq(PaperAlgorithm):
    """The classic baseline; its privacy argument is in `sulq.md`."""

    name = "sulq"
    summary = "Lloyd's rounds with noisy averages, from public starting points"
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

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"rounds": options["rounds"], "radius": max(1, round(options["clip"] * UNITS))}

    def blocks(self, plan: Plan) -> tuple[LloydRounds]:
        given = plan.parameters
        return (LloydRounds(plan.domain, plan.shares(), 1.0, given["rounds"], given["radius"]),)

    def work(self, plan: Plan) -> Work:
        size, width, k = plan.domain.size, plan.domain.dimension, plan.k
        return Work(
            operations=lloyd_rounds(plan.domain, k, plan.parameters["rounds"]),
            memory_bytes=min(16.0 * size, KEPT_BYTES) + 16.0 * k * width,
        )

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        (lloyd,) = self.blocks(plan)
        return lloyd.run(probe, spread_centres(plan.domain, plan.k, probe.draw("starts")))
