"""Profiles: who is in each cluster of an earlier clustering, column by column."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from core.data import Stored
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts, pooled_totals
from core.probe import Probe
from core.questions.base import BINS, NOISE, Kind, assigned, count_deviation, noise_sentence
from core.questions.columns import EVERYONE, BinnedColumn, binned_columns, bins_of
from core.questions.view import Bars, Lines, Part, Series, bin_names, clusters, exact_bin_names
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
        described = []
        for column, histogram in zip(self.columns(plan), parts[1:], strict=True):
            counts = nearest_counts(histogram, totals)
            described.append({**column.to_json(), "counts": counts.tolist(), **column.moments(counts)})
        return {"sizes": totals.tolist(), "columns": described, "noise": {"count": self.noise(plan)}}

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        sizes = answer["sizes"]
        histograms = (
            Bars(
                column["column"],
                bin_names(column),
                tuple(map(Series, clusters(sizes), column["counts"], sizes)),
            )
            for column in answer["columns"]
        )
        return (noise_sentence(answer), *histograms)

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        rows: list[list[Any]] = []
        for cluster, size in enumerate(answer["sizes"]):
            rows.append([cluster + 1, "", "", size])
            for column in answer["columns"]:
                counts = zip(exact_bin_names(column), column["counts"][cluster], strict=True)
                rows += ([cluster + 1, column["column"], name, count] for name, count in counts)
        return Lines(("cluster", "column", "bin", "count"), rows)
