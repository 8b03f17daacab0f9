"""Private scaling: a small part of the budget measures the range of each column of a table."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from core.arrays import Floats
from core.blocks.base import Block
from core.data import Geometry
from core.errors import InvalidRequest
from core.mechanisms.noise import additive_noise
from core.plan import SCALING_SHARE, Plan, Step
from core.privacy.composition import MARGIN, compose, gaussian_mu
from core.privacy.losses import Gaussian, Pure
from core.probe import Probe
from core.statistics.counts import ColumnHistograms
from core.views import ColumnBins

BINS = 256  # Bins of each column.
FILLED = 4.0  # A bin counts as filled above this many standard deviations of its noise.
#: Filled bins make a range if what lies outside, with one standard deviation of its noise, is at most this
#: share of what lies inside. Else the noise hides too much, and one frequent value would pass for a column.
MOST_OUTSIDE = 0.2


@dataclass(frozen=True)
class ColumnRanges(Block):
    """One histogram for each column with bounds; columns are then clipped to their filled bins."""

    geometry: Geometry
    loss: Gaussian | Pure
    prefix: str = "scaling-"

    @classmethod
    def of(cls, plan: Plan, others: Sequence[Step]) -> Self:
        """The block that spends what the steps of the clustering leave of a plan's budget."""
        assert isinstance(plan.domain, Geometry)
        if not plan.domain.lines:
            raise InvalidRequest(
                "private scaling is for numbers, dates and times; the chosen columns have none: leave it out",
                parameter="scaling",
            )
        rows, budget = plan.domain.rows_per_person, plan.budget
        pure = Pure(budget.epsilon * SCALING_SHARE * (1 - MARGIN) / rows)
        if budget.is_pure:
            return cls(plan.domain, pure)
        left = gaussian_mu(budget) ** 2 - gaussian_mu(plan.clustering_budget) ** 2
        gaussian = Gaussian(math.sqrt(left) * (1 - MARGIN) / rows)
        losses = [(step.mechanism.loss.for_group(rows), step.uses) for step in others]
        # Gaussian steps compose exactly; next to steps of other kinds only a pure one is sure to fit.
        fits = compose([*losses, (gaussian.for_group(rows), 1)]).within(budget)
        return cls(plan.domain, gaussian if fits else pure)

    def steps(self) -> tuple[Step, ...]:
        purpose = "the range of each column, to scale by"
        return (self.step("ranges", additive_noise(self.loss), ColumnHistograms, 1, purpose),)

    def run(self, probe: Probe) -> Geometry:
        """The geometry clipped to the ranges that were released."""
        histograms = ColumnHistograms(ColumnBins(self.geometry, BINS))
        counts = self.measure(probe, "ranges", histograms).astype(np.float64)
        mechanism = additive_noise(self.loss)
        noise = mechanism.deviation() * getattr(histograms.sensitivity, mechanism.norm)
        return self.geometry.clipped(
            {
                line.column.name: _range(row, noise, line.column.codes)
                for line, row in zip(self.geometry.lines, counts, strict=True)
            }
        )


def _range(counts: Floats, noise: float, codes: int) -> tuple[int, int]:
    """First and last code of the filled bins and those between; all codes where these hold too little."""
    filled = np.flatnonzero(counts > FILLED * noise)
    first, last = (filled[0], filled[-1]) if len(filled) else (0, len(counts) - 1)
    inside = counts[first : last + 1]
    hidden = noise * math.sqrt(len(counts) - len(inside))
    if counts.sum() - inside.sum() + hidden > MOST_OUTSIDE * inside.sum():
        first, last = 0, len(counts) - 1
    # The codes c with first <= c * bins // codes <= last.
    lowest = -(-int(first) * codes // len(counts))
    highest = -(-(int(last) + 1) * codes // len(counts)) - 1
    if lowest >= highest:  # a bin of one code: a range needs two ends
        lowest, highest = max(0, min(lowest, codes - 2)), min(codes - 1, max(highest, lowest) + 1)
    return lowest, highest
