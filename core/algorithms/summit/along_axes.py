"""The regime for few records in very many columns: refining rounds, too, are taken along the axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.algorithms.summit.exploring import VARYING_FROM, Exploring, Refined
from core.algorithms.summit.overview import Overview, round_edges
from core.algorithms.summit.shrinkage import moved_along_axes
from core.algorithms.summit.signal import Signal
from core.arrays import Floats
from core.blocks.base import Clusters
from core.blocks.work import dense_rounds
from core.plan import Plan, Work
from core.postprocessing.bounds import clip_into
from core.probe import Probe

#: Columns, over the square of records for each centre times mu, from which on noise in a cluster's mean over
#: all columns is far larger than its records' spread.
COLUMNS_TO_SQUARE = 1.5
MOST_MOMENTS = 0.6  # Most weight of second moments: centres differ along the axes alone.


@dataclass(frozen=True, kw_only=True)
class AlongAxes(Exploring):
    """As exploring, but centres are refined along the principal axes only."""

    mark: ClassVar[str] = "along_axes"
    most_moments: ClassVar[float] = MOST_MOMENTS

    along_axes: bool = True

    @classmethod
    def suits(cls, signal: Signal) -> bool:
        far_more = signal.width > COLUMNS_TO_SQUARE * signal.per_centre**2
        return signal.single_means and signal.width >= VARYING_FROM and far_more

    def refined(self, plan: Plan, probe: Probe, overview: Overview, starts: Floats) -> Refined:
        centres = starts
        for rounds in self.refinement(plan).rounds:
            outcome = rounds.run(probe, overview.view, centres, round_edges(), overview.view.width)
            centres = moved_along_axes(outcome)
        found = clip_into(plan.domain, overview.in_all_columns(centres))
        clusters = Clusters(found, np.maximum(outcome.sizes, 0.0), outcome.reaches / overview.zoom)
        return Refined(overview, overview.detailed(plan.domain, clusters), outcome)

    def refining_work(self, plan: Plan, axes: int) -> Work:
        return Work(dense_rounds(float(plan.domain.size), axes, plan.k, len(self.refine_shares)), 0.0)
