"""Balcan et al. (2017) for k-means: candidates in a projection, swaps, noisy averages, Lloyd's rounds."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from core.algorithms.papers.base import PaperAlgorithm
from core.algorithms.papers.stages.lloyd import LloydRounds, sum_share
from core.algorithms.papers.stages.recovery import GroupMeans, NetMedians
from core.algorithms.papers.stages.selection import BestTrial, Selection, settings_for
from core.blocks.base import Clusters
from core.blocks.rounds import ClippedRounds, Refinement
from core.blocks.work import lloyd_rounds
from core.data import Domain
from core.options import Option
from core.plan import Plan, Request, Work
from core.privacy.shares import Shares
from core.probe import Probe

SELECTION_OPTIONS = (
    Option.word(
        "constants",
        "where unset options come from: the paper's experiments, or its theorems",
        "experiments",
        "printed",
    ),
    Option("dimension", int, None, "dimensions of the projection", least=1, most=1000),
    Option("trees", int, None, "how many shifted partition trees are grown", least=1, most=1_000_000),
    Option("depth", int, None, "levels of a partition tree", least=1, most=17),
    Option("threshold", int, None, "noisy count above which a cube is split further", least=0, most=10**9),
    Option("candidates", int, None, "how many candidates are searched", least=1, most=1_000_000),
    Option("swaps", int, None, "how many swaps of local search", least=0, most=1_000_000),
    Option(
        "trials", int, None, "independent trials, of which the best is picked privately", least=1, most=100
    ),
)


def balcan_options(rounds: str, *choice: str) -> tuple[Option, ...]:
    """Options of selection, of a last stage of some rounds, and of the choice of that stage."""
    return *SELECTION_OPTIONS, Option("rounds", int, 8, rounds, least=0, most=100), Option.word(*choice)


TREES = 0.1  # Share of the budget (of epsilon, or of rho) of the partition trees.
SWAPS = 0.1  # Share of local swaps.
TRIAL = 0.05  # Share of the choice between several trials. The last stage gets what all of these leave.

LastStage = LloydRounds | Refinement | NetMedians


class Balcan(PaperAlgorithm):
    """The paper's Algorithms 1 to 4, corrected; the argument is in `balcan.md`."""

    name = "balcan"
    summary = "candidates from partition trees in a projection, local swaps, noisy averages, Lloyd's rounds"
    #: The share of the budget that noisy averages get, and the option that chooses the last stage.
    recovery_share, choice = 0.1, "clipping"
    options = balcan_options(
        "rounds of Lloyd's algorithm that refine the centres",
        "clipping",
        "what refinement clips to: radii that each round releases, or the radius of the domain",
        "released",
        "domain",
    )

    def parameters(self, domain: Domain, request: Request, options: Mapping[str, Any]) -> dict[str, Any]:
        settings = settings_for(domain, request, options)
        return {**asdict(settings), "rounds": options["rounds"], self.choice: options[self.choice]}

    def blocks(self, plan: Plan) -> tuple[BestTrial] | tuple[BestTrial, LastStage]:
        domain, rounds, shares = plan.domain, plan.parameters["rounds"], plan.shares(with_choices=True)
        selection = Selection.of(plan, shares, TREES, SWAPS)
        left = 1.0 - TREES - SWAPS - (TRIAL if selection.settings.trials > 1 else 0.0)
        recovery = self.recovery_share if rounds else left
        means = GroupMeans(domain, shares, recovery, selection.settings.trials)
        trial = BestTrial(selection, means, TRIAL)
        return (trial, self.last_stage(plan, shares, left - recovery)) if rounds else (trial,)

    def last_stage(self, plan: Plan, shares: Shares, fraction: float) -> LastStage:
        """The rounds that refine the centres of the best trial."""
        domain, rounds = plan.domain, plan.parameters["rounds"]
        if plan.parameters["clipping"] == "domain":
            return LloydRounds(domain, shares, fraction, rounds, prefix="refine-")
        clipped = ClippedRounds(shares, fraction, sum_share(domain.dimension), rounds)
        return Refinement(domain, (clipped,))

    def work(self, plan: Plan) -> Work:
        return selection_work(self.blocks(plan)[0].selection, plan.parameters["rounds"])

    def cluster(self, plan: Plan, probe: Probe) -> Clusters:
        trial, *stages = self.blocks(plan)
        found = trial.run(probe)
        for stage in stages:
            refined = stage.run(probe, found.centres)
            found = replace(refined, sizes=found.sizes if refined.sizes is None else refined.sizes)
        return found


def selection_work(selection: Selection, rounds: int) -> Work:
    """The work of selection, recovery and this many rounds of refinement together."""
    domain, k, found = selection.domain, selection.k, selection.work
    lloyd = lloyd_rounds(domain, k, rounds + selection.settings.trials)
    return Work(found.operations + lloyd, found.memory_bytes + 32.0 * k * domain.dimension)
