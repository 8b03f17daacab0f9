"""Comparisons: how the clusters of two earlier clusterings overlap."""

from typing import Any

import numpy as np

from core.data import Stored
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import rand_index
from core.probe import Probe
from core.questions.base import NOISE, Kind, assigned, count_deviation
from core.questions.columns import bins_of
from core.questions.table import consistent_table
from core.statistics.histograms import CellCounts


class Compare(Kind):
    """Counts of records by their clusters in two clusterings; the argument is in `compare.md`."""

    name = "compare"
    summary = "how many records are in each cluster of one clustering and each of another"
    options = (NOISE,)
    clusterings = 2
    most_columns = 0

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        return {}

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        noise = additive_noise(self.shares(plan).noise(1.0))
        return (Step("overlaps", noise, CellCounts.kind, 1, "number of records in both of two clusters"),)

    def entries(self, plan: Plan) -> int:
        return 1

    def cells(self, plan: Plan) -> int:
        first, second = plan.partitions
        return first.k * second.k

    def noise(self, plan: Plan) -> float:
        return count_deviation(plan.step("overlaps"), CellCounts(bins_of(plan.stored, ())).sensitivity)

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        groups = (assigned(plan, 0), assigned(plan, 1))
        statistic = CellCounts(bins_of(plan.stored, ()), groups)
        released = probe.measure("overlaps", statistic).astype(np.float64)
        counts, sizes = consistent_table(released)
        return {
            "counts": counts,
            "sizes": sizes,
            "agreement": rand_index(np.array(counts)),
            "noise": {"count": self.noise(plan)},
        }
