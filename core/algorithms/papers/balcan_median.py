"""Balcan et al. (2017), section 6.2, for k-medians: the same selection, then private medians of clusters."""

from core.algorithms.papers.balcan import Balcan, LastStage, balcan_options
from core.algorithms.papers.stages.lloyd import median_moves, sum_share
from core.algorithms.papers.stages.recovery import NetMedians
from core.blocks.rounds import ClippedRounds, Refinement
from core.plan import Plan
from core.privacy.shares import Shares


class BalcanMedian(Balcan):
    """The paper's k-median extension, corrected; the argument is in `balcan_median.md`."""

    name = "balcan-median"
    summary = "candidates from partition trees in a projection, local swaps, private medians of each cluster"
    objectives = ("medians",)
    domains = ("dense", "table")
    recovery_share, choice = 0.2, "recovery"
    options = balcan_options(
        "steps of the search for each cluster's median",
        "recovery",
        "noisy steps along unit gradients, or choices from a net around each centre",
        "gradient",
        "net",
    )

    def last_stage(self, plan: Plan, shares: Shares, fraction: float) -> LastStage:
        domain, rounds = plan.domain, plan.parameters["rounds"]
        if plan.parameters["recovery"] == "net":
            return NetMedians(domain, shares, fraction, rounds)
        clipped = ClippedRounds(shares, fraction, sum_share(domain.dimension), rounds)
        # Searched medians are not noisy means: how far they err depends on the rows.
        return Refinement(domain, (clipped,), median_moves, medians=True, clip=None)
