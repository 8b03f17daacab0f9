"""The bases of the algorithms from the literature, and the options that several of them have."""

from collections.abc import Sequence

import numpy as np

from core.algorithms.base import Algorithm
from core.arrays import Floats
from core.data import Sites
from core.errors import PlanViolation
from core.options import Option
from core.plan import Plan, Step


class PaperAlgorithm(Algorithm):
    """A published algorithm; its page says what was wrong in print and what is built instead."""

    origin = "literature"


class SiteAlgorithm(PaperAlgorithm):
    """An algorithm that chooses k of some public sites; its centres are numbers of sites until decoded."""

    domains = ("dense", "ids")
    SITES = Option("sites", dict, None, "public sites: coordinates with a metric, or a matrix of distances")

    def sites(self, plan: Plan) -> Sites:
        """The sites themselves, for a run."""
        if not isinstance(plan.sites, Sites):
            raise PlanViolation("this plan was read without its sites and cannot be run")
        return plan.sites

    def count(self, plan: Plan) -> int:
        """Number of sites."""
        assert plan.sites is not None  # `plan` puts them in
        return len(plan.sites)

    def forecast(self, plan: Plan, steps: Sequence[Step]) -> dict[str, float]:
        """Empty: how good a choice of sites is depends on the records."""
        return {}

    def decode(self, plan: Plan, centres: Floats) -> Floats:
        return self.sites(plan).centres(centres.astype(np.int64))


def coverage_options(rounds: str, growth: float, accounting: str) -> tuple[Option, ...]:
    """Options of a coverage loop, given default rounds in words, least growth and the paper's accounting."""
    return (
        Option("rounds", int, None, f"picks at each radius; by default {rounds}", least=1, most=1000),
        Option("growth", float, 2.0, "each radius is this many times the one before", least=growth, most=16),
        Option.word(
            "accounting", "how the coverage loop is accounted for", "pure", "approximate", accounting
        ),
    )
