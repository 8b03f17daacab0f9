"""Profiles: who is in each cluster of an earlier clustering, column by column."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.data import Stored
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts, pooled_totals
from core.postprocessing.intervals import NoisyHistograms
from core.probe import Probe
from core.questions.base import BINS, NOISE, Kind, assigned, count_deviation, count_reach, noise_sentence
from core.questions.columns import EVERYONE, BinnedColumn, binned_columns, bins_of, with_intervals
from core.questions.view import (
    Estimate,
    Grid,
    Heading,
    Lines,
    Part,
    bars_of,
    estimates,
    exact_bin_names,
    group,
    histogram,
    lines_of,
    rounded,
)
from core.statistics.histograms import Histograms
from core.views import Assigned


class Profile(Kind):
    """A histogram of each column for each cluster, with sizes; the argument is in `profile.md`."""

    name = "profile"
    title = "Profile"
    label = "who is in each cluster"
    released = "Histograms of columns for each cluster of an earlier clustering"
    summary = "for each cluster of a clustering its size and a histogram of each column"
    options = (BINS, NOISE)
    clusterings = 1

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        return {"columns": list(columns), "bins": options["bins"]}

    def columns(self, plan: Plan) -> tuple[BinnedColumn, ...]:
        return binned_columns(plan.stored, plan.parameters["columns"], plan.parameters["bins"])

    def statistic(self, plan: Plan, group: Assigned | None = None) -> Histograms:
        """One bin for everyone gives the sizes; then the bins of each column."""
        binnings = (EVERYONE, *(column.binning for column in self.columns(plan)))
        return Histograms(bins_of(plan.stored, binnings), group)

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        noise = additive_noise(self.shares(plan).noise(1.0))
        purpose = "size of each cluster, and how its records are distributed in each column"
        return (Step("histograms", noise, Histograms.kind, 1, purpose),)

    def entries(self, plan: Plan) -> int:
        return 1 + len(plan.parameters["columns"])

    def cells(self, plan: Plan) -> int:
        return plan.k * sum(self.statistic(plan).view.widths)

    def noise(self, plan: Plan) -> float:
        return count_deviation(plan.step("histograms"), self.statistic(plan).sensitivity)

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        statistic = self.statistic(plan, assigned(plan))
        released = probe.measure("histograms", statistic).astype(np.float64)
        starts = np.cumsum(statistic.view.widths)[:-1]
        parts = np.split(released, starts, axis=1)
        totals = pooled_totals(parts)
        noisy = NoisyHistograms(parts, count_reach(plan.step("histograms"), statistic.sensitivity))
        described = []
        for place, column in enumerate(self.columns(plan), 1):
            counts = nearest_counts(parts[place], totals)
            moments = column.moments(noisy, place, counts)
            described.append({**column.to_json(), **with_intervals(noisy, place, counts, totals), **moments})
        return {
            "sizes": totals.tolist(),
            **noisy.sizes(totals).to_json("sizes"),
            "columns": described,
            "noise": {"count": self.noise(plan)},
        }

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        noise = answer["noise"]["count"]
        sizes = estimates(answer, "sizes", Estimate.of_count, noise)
        names = [f"Cluster {number}" for number in range(1, len(sizes) + 1)]
        rows = [["Records", *sizes], *([column["column"], *_means(column)] for column in answer["columns"])]
        headings = (Heading("Mean of"), *(Heading(name, "number") for name in names))
        means = Grid("Sizes and means", headings, [row for row in rows if len(row) == len(headings)])
        histograms = []
        for column in answer["columns"]:
            bars = (
                bars_of(group(column, place), answer["sizes"][place], noise) for place in range(len(names))
            )
            histograms.append(histogram(column, dict(zip(names, bars, strict=True))))
        return (noise_sentence(answer), means, *histograms)

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        rows: list[list[Any]] = []
        noise = answer["noise"]["count"]
        for cluster, size in enumerate(estimates(answer, "sizes", Estimate.of_count, noise)):
            rows.append([cluster + 1, "", "", *rounded(size, None)])
            for column in answer["columns"]:
                bars = bars_of(group(column, cluster), answer["sizes"][cluster], noise)
                rows += (
                    [cluster + 1, column["column"], name, *rounded(bar.count, bar.share)]
                    for name, bar in zip(exact_bin_names(column), bars, strict=True)
                )
        return Lines(("cluster", "column", "bin", *lines_of("count"), *lines_of("share")), rows)


def _means(column: Mapping[str, Any]) -> list[Estimate]:
    """The mean or the rate of each cluster; none of categories, nor of an earlier version's answers."""
    if "means_low" in column:
        return estimates(column, "means", Estimate.of_number)
    return estimates(column, "rates", Estimate.of_share) if "rates_low" in column else []
