"""Maximum coverage over growing radii, and noisy counts of the records near what was picked."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.algorithms.papers.stages.projection import random_projection
from core.arrays import Floats, Integers
from core.blocks.base import Block
from core.coverage.families import Family
from core.coverage.loop import CoverageLoop
from core.data import Dense
from core.mechanisms.coverage_choice import CoverageChoice
from core.mechanisms.noise import LaplaceNoise
from core.plan import Step
from core.privacy.shares import Shares
from core.probe import Probe
from core.statistics.base import Statistic
from core.views import Encoded, RowView

MOST_ROUNDS = 1000  # Picks at one radius at most.


def growing_radii(largest: float, span: float, growth: float) -> tuple[int, ...]:
    """Whole radii from largest / span up to the largest, each about `growth` times the one before."""
    levels = max(1, math.ceil(math.log(span) / math.log(growth)) + 1)
    radii = {max(1, round(largest / growth**level)) for level in range(levels)}
    return tuple(sorted(radii))


@dataclass(frozen=True)
class MaxCoverage(Block):
    """A coverage loop over a family of sets, then counts of the records near its picks.

    `split` is the shares of epsilon that loop and counts spend. `accounting` says how the loop is accounted
    for: all but "pure" spend half of delta as well. Counts are pure.
    """

    shares: Shares
    split: tuple[float, float]
    accounting: str
    #: Rounds at each level, and levels.
    rounds: int
    levels: int
    #: The kind of statistic that counts, and what both steps are for.
    counts: type[Any]
    purposes: tuple[str, str]

    @property
    def picks(self) -> int:
        return self.rounds * self.levels

    @property
    def loop(self) -> CoverageChoice:
        if self.accounting == "pure":
            return CoverageChoice(self.shares.pure(self.split[0]).epsilon)
        loss = self.shares.approximate(self.split[0], 0.5)
        return CoverageChoice(loss.epsilon, loss.delta, self.accounting)

    @property
    def rest(self) -> Shares:
        """The part of the budget that loop and counts leave."""
        return self.shares.portion(1 - sum(self.split), 1.0 if self.accounting == "pure" else 0.5)

    def facts(self) -> dict[str, Any]:
        """The loop in numbers, for the parameters of a plan."""
        return {"weight_per_record": self.loop.eta, "kept": self.loop.keep / 2**64}

    def steps(self) -> tuple[Step, ...]:
        counts = LaplaceNoise(self.shares.pure(self.split[1]).epsilon)
        return (
            self.step("cover", self.loop, CoverageLoop, self.picks, self.purposes[0]),
            self.step("counts", counts, self.counts, 1, self.purposes[1]),
        )

    def run(self, probe: Probe, family: Family) -> list[Integers]:
        """The indices that were picked at each level."""
        picks = self.measure(probe, "cover", CoverageLoop(family, (self.rounds,) * self.levels))
        return np.split(picks, self.levels)

    def weights(self, probe: Probe, statistic: Statistic) -> Floats:
        """Noisy counts as weights: zero where noise alone would explain them."""
        counts = self.measure(probe, "counts", statistic)
        return above_noise(counts, self.deviation(probe.plan, "counts") / math.sqrt(2))


def above_noise(counts: Integers, scale: float) -> Floats:
    """Counts with Laplace noise of this scale as weights: zero where noise alone would explain them.

    Of m counts without records, half a one exceeds log(m) times the scale on average.
    """
    return np.where(counts > math.log(max(len(counts), 2)) * scale, counts, 0).astype(np.float64)


def in_few_dimensions(probe: Probe) -> RowView:
    """Records in as many dimensions as the plan says: projected at random, or as they are."""
    domain, dimension = probe.plan.domain, probe.plan.parameters["dimension"]
    rows = Encoded.of(domain)
    if isinstance(domain, Dense) and domain.dimension == dimension:
        return rows
    return random_projection(rows, dimension, probe.draw("projection"))
