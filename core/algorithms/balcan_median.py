"""Balcan et al. (2017), section 6.2, for k-medians: the same selection, then private medians of clusters."""

from core.algorithms.balcan import SELECTION_OPTIONS, Balcan, LastStage
from core.algorithms.base import Option
from core.blocks.lloyd import sum_share
from core.blocks.recovery import NetMedians
from core.blocks.rounds import ClippedRounds, Refinement, median_moves
from core.plan import Plan
from core.privacy import Shares


class BalcanMedian(Balcan):
    """The paper's k-median extension, corrected; the argument is in `balcan_median.md`."""

    name = "balcan-median"
    summary = "candidates from partition trees in a projection, local swaps, private medians of each cluster"
    objectives = ("medians",)
    domains = ("dense",)
    recovery_share, choice = 0.2, "recovery"
    options = (
        *SELECTION_OPTIONS,
        Option("rounds", int, 8, "steps of the search for each cluster's median", least=0, most=100),
        Option(
            "recovery",
            str,
            "gradient",
            "noisy steps along unit gradients, or choices from a net around each centre",
            choices=("gradient", "net"),
        ),
    )

    def last_stage(self, plan: Plan, shares: Shares, fraction: float) -> LastStage:
        domain, rounds = plan.domain, plan.parameters["rounds"]
        if plan.parameters["recovery"] == "net":
            return NetMedians(domain, shares, fraction, rounds)
        clipped = ClippedRounds(shares, fraction, sum_share(domain.dimension), rounds)
        # Searched medians are not noisy means: how far they err depends on the rows.
        return Refinement(domain, (clipped,), median_moves, medians=True, clip=None)
