"""Comparisons: how the clusters of two earlier clusterings overlap."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.data import Stored
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import rand_index
from core.probe import Probe
from core.questions.base import NOISE, Kind, assigned, count_deviation, noise_sentence
from core.questions.columns import bins_of
from core.questions.table import consistent_table
from core.questions.view import Grid, Heading, Lines, Part, Sentence, number_text
from core.statistics.histograms import CellCounts


class Compare(Kind):
    """Counts of records by their clusters in two clusterings; the argument is in `compare.md`."""

    name = "compare"
    title = "Comparison"
    label = "how two clusterings overlap"
    released = "Counts of records by their clusters in two earlier clusterings"
    summary = "how many records are in each cluster of one clustering and each of another"
    options = (NOISE,)
    clusterings = 2
    most_columns = 0
    offers_columns = False

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

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        parts: list[Part] = [noise_sentence(answer)]
        if answer["agreement"] is not None:
            index = number_text(answer["agreement"], 2)
            alike = "1 means that both divide the records alike"
            parts.append(Sentence(f"Agreement (adjusted Rand index): {index}. {alike}."))
        second = (Heading(f"Second, {number}", "count") for number in range(1, len(answer["sizes"][1]) + 1))
        rows = [[f"First, {number}", *row] for number, row in enumerate(answer["counts"], 1)]
        return (*parts, Grid("Overlap of clusters", (Heading("Cluster"), *second), rows))

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        names = ("cluster_of_first", "cluster_of_second", "count")
        counts = enumerate(answer["counts"], 1)
        return Lines(
            names, [[first, second, each] for first, row in counts for second, each in enumerate(row, 1)]
        )
