"""Comparisons: how the clusters of two earlier clusterings overlap."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.data import Stored
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import rand_index
from core.postprocessing.intervals import rand_index_interval
from core.probe import Probe
from core.questions.base import NOISE, Kind, assigned, count_deviation, count_reach, noise_sentence
from core.questions.columns import bins_of
from core.questions.table import ENDS, consistent_table
from core.questions.view import (
    Estimate,
    Grid,
    Heading,
    Lines,
    Part,
    Sentence,
    estimates,
    lines_of,
    rounded,
)
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
        table = consistent_table(released, count_reach(plan.step("overlaps"), statistic.sensitivity))
        counts, draw = np.array(table.cells["counts"]), probe.draw("agreement")
        found = rand_index(counts)
        low, high = rand_index_interval(counts, self.noise(plan), found, draw)
        return {
            **table.cells,
            "sizes": [margin["counts"] for margin in table.margins],
            "sizes_low": [margin["counts_low"] for margin in table.margins],
            "sizes_high": [margin["counts_high"] for margin in table.margins],
            "agreement": found,
            "agreement_low": low,
            "agreement_high": high,
            "noise": {"count": self.noise(plan)},
        }

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        parts: list[Part] = [noise_sentence(answer)]
        if answer["agreement"] is not None:
            ends = (answer.get(f"agreement{end}", answer["agreement"]) for end in ("_low", "_high"))
            index = Estimate.of_number(answer["agreement"], *ends).text
            alike = "1 means that both divide the records alike"
            parts.append(Sentence(f"Agreement (adjusted Rand index): {index}. {alike}."))
        second = (Heading(f"Second, {number}", "number") for number in range(1, len(answer["sizes"][1]) + 1))
        rows = [[f"First, {number}", *row] for number, row in enumerate(_rows(answer), 1)]
        return (*parts, Grid("Overlap of clusters", (Heading("Cluster"), *second), rows))

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        names = ("cluster_of_first", "cluster_of_second", *lines_of("count"))
        rows = enumerate(_rows(answer), 1)
        return Lines(
            names,
            [[first, second, *rounded(each)] for first, row in rows for second, each in enumerate(row, 1)],
        )


def _rows(answer: Mapping[str, Any]) -> list[list[Estimate]]:
    """The counts with their intervals, a row for each cluster of the first clustering."""
    noise, known = answer["noise"]["count"], [name for name in ENDS if name in answer]
    rows = zip(*(answer[name] for name in known), strict=True)
    return [estimates(dict(zip(known, row, strict=True)), "counts", Estimate.of_count, noise) for row in rows]
