"""Profiles: who is in each cluster of an earlier clustering, column by column."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from core.data import Stored
from core.errors import InvalidRequest
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts, pooled_totals
from core.postprocessing.intervals import NoisyHistograms, difference_interval
from core.probe import Probe
from core.questions.base import BINS, NOISE, Kind, assigned, count_deviation, count_reach, noise_sentence
from core.questions.columns import EVERYONE, BinnedColumn, binned_columns, bins_of, with_intervals
from core.questions.view import (
    Estimate,
    Grid,
    Heading,
    Lines,
    Part,
    Sentence,
    bars_of,
    bin_names,
    estimates,
    exact_bin_names,
    group,
    histogram,
    lines_of,
    rounded,
)
from core.statistics.histograms import Histograms
from core.views import Assigned

#: Differences that are listed where two profiles stand side by side.
_MOST_CHANGES = 200
#: Histograms that are drawn there.
_MOST_BARS = 60


class Profile(Kind):
    """A histogram of each column for each cluster, with sizes; the argument is in `profile.md`."""

    name = "profile"
    title = "Profile"
    label = "who is in each cluster"
    released = "Histograms of columns for each cluster of an earlier clustering"
    summary = "for each cluster of a clustering its size and a histogram of each column"
    options = (BINS, NOISE)
    clusterings = 1
    has_differences = True

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

    def differences(self, first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[Part, ...]:
        pairs = _same_bins(first, second)
        if len(first["sizes"]) != len(second["sizes"]) or "sizes_low" not in first or not pairs:
            raise InvalidRequest("these profiles have no clusters and columns in common, or no intervals")
        sizes = [estimates(each, "sizes", Estimate.of_count) for each in (first, second)]
        rows = [row for pair in pairs for row in _changes(*pair)]
        certain = [row for row in rows if row.least > 0]
        rows.sort(key=lambda row: (-row.least, -abs(row.value)))
        shown = [row.cells for row in rows[:_MOST_CHANGES]]
        names = ("First", "Second")
        bars = [
            histogram(
                {**one, "column": f"{one['column']}, cluster {place + 1}"},
                {
                    name: bars_of(group(column, place), 0.0, 0.0)
                    for name, column in zip(names, (one, other), strict=True)
                },
            )
            for one, other in pairs
            for place in range(len(first["sizes"]))
        ]
        ends = tuple(Heading(name, "number") for name in names)
        return (
            Sentence(
                f"{len(certain)} of {len(rows)} differences are certain at 95%, each by itself; noise alone "
                f"would make about {len(rows) / 20:.0f} of them look so."
            ),
            Grid(
                "Sizes",
                (Heading("Cluster"), *ends),
                [[f"Cluster {number}", *pair] for number, pair in enumerate(zip(*sizes, strict=True), 1)],
            ),
            Grid(
                "Differences in shares, the most certain first",
                (
                    Heading("Cluster"),
                    Heading("Column"),
                    Heading("Value"),
                    *ends,
                    Heading("Difference", "number"),
                ),
                shown,
            ),
            *bars[:_MOST_BARS],
        )

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


@dataclass(frozen=True)
class _Change:
    """The difference of a share between two profiles."""

    value: float
    #: How far from zero it is for certain; negative if it may be zero.
    least: float
    cells: list[Any]


def _same_bins(
    first: Mapping[str, Any], second: Mapping[str, Any]
) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
    """The columns of two profiles that have the same bins."""
    others = {column["column"]: column for column in second["columns"] if "shares_low" in column}
    pairs = ((column, others.get(column["column"])) for column in first["columns"] if "shares_low" in column)
    return [(one, other) for one, other in pairs if other and exact_bin_names(one) == exact_bin_names(other)]


def _changes(first: Mapping[str, Any], second: Mapping[str, Any]) -> Iterator[_Change]:
    """The difference in each bin of each cluster."""
    one, other = (
        [np.array(each[f"shares{end}"]) for end in ("", "_low", "_high")] for each in (first, second)
    )
    values, ends = other[0] - one[0], difference_interval(one, other)
    for place, name in product(range(len(values)), enumerate(bin_names(first))):
        cell = (place, name[0])
        value, low, high = (float(each[cell]) for each in (values, *ends))
        shares = (Estimate.of_share(*(float(part[cell]) for part in each)) for each in (one, other))
        difference = Estimate.of_difference(value, low, high)
        cells = [f"Cluster {place + 1}", first["column"], name[1], *shares, difference]
        yield _Change(value, max(low, -high), cells)


def _means(column: Mapping[str, Any]) -> list[Estimate]:
    """The mean or the rate of each cluster; none of categories, nor of an earlier version's answers."""
    if "means_low" in column:
        return estimates(column, "means", Estimate.of_number)
    return estimates(column, "rates", Estimate.of_share) if "rates_low" in column else []
