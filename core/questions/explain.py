"""Explanations: for each cluster the columns that set it apart most, chosen privately."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from core.arrays import Floats, Integers
from core.data import Stored
from core.errors import InvalidRequest
from core.mechanisms.choice import TopChoice
from core.mechanisms.noise import additive_noise
from core.options import Option
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts, pooled_totals
from core.postprocessing.intervals import Interval, NoisyHistograms, distance_reach
from core.probe import Probe
from core.questions.base import (
    BINS,
    NOISE,
    Kind,
    Question,
    assigned,
    count_deviation,
    count_reach,
    noise_sentence,
)
from core.questions.columns import EVERYONE, BinnedColumn, binned_columns, bins_of, with_intervals
from core.questions.view import (
    Bar,
    Estimate,
    Grid,
    Heading,
    Lines,
    Part,
    Sentence,
    bars_of,
    estimates,
    exact_bin_names,
    histogram,
    lines_of,
    rounded,
)
from core.statistics.histograms import WHOLE, Departures, Histograms, PickedHistograms
from core.views import Bins

#: Share of the budget for histograms of all records.
_REFERENCE = 0.2
#: Share of the budget for the choice of columns.
_CHOICE = 0.4
#: Share of the budget for histograms of the columns that were chosen.
_PICKED = 0.4


class Explain(Kind):
    """A choice of columns for each cluster, then their histograms; the argument is in `explain.md`."""

    name = "explain"
    title = "Explanation"
    label = "what sets each cluster apart"
    released = "The columns that set clusters of an earlier clustering apart, with their histograms"
    summary = "for each cluster of a clustering the columns that set it apart most, with their histograms"
    options = (
        Option("picks", int, 3, "columns that are chosen for each cluster", least=1, most=20),
        BINS,
        NOISE,
    )
    clusterings = 1
    offers_columns = False  # it chooses among all of them
    chooses = True

    def options_for(self, columns: int) -> tuple[Option, ...]:
        picks, *others = self.options
        return (replace(picks, default=max(1, min(picks.default, columns - 1))), *others)

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        if len(columns) <= options["picks"]:
            raise InvalidRequest(
                f"of {len(columns)} columns {options['picks']} cannot be chosen: lower options.picks, or ask "
                "for a profile of all of them",
                parameter="options.picks",
            )
        return {"columns": list(columns), "bins": options["bins"], "picks": options["picks"]}

    def typical(self, stored: Stored, question: Question) -> Question:
        return replace(question, options={"picks": 1})

    def columns(self, plan: Plan) -> tuple[BinnedColumn, ...]:
        return binned_columns(plan.stored, plan.parameters["columns"], plan.parameters["bins"])

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        shares, picks = self.shares(plan), plan.parameters["picks"]
        choice = TopChoice(shares.amount(_CHOICE), picks, not plan.budget.is_pure)
        reference, picked = (additive_noise(shares.noise(part)) for part in (_REFERENCE, _PICKED))
        return (
            Step(
                "reference", reference, Histograms.kind, 1, "how all records are distributed in each column"
            ),
            Step("choice", choice, Departures.kind, 1, "in which columns each cluster departs from that"),
            Step("histograms", picked, PickedHistograms.kind, 1, "size of each cluster, and these columns"),
        )

    def entries(self, plan: Plan) -> int:
        return max(len(plan.parameters["columns"]), 1 + int(plan.parameters["picks"]))

    def cells(self, plan: Plan) -> int:
        widths = self._bins(plan).widths
        return sum(widths) + plan.k * (1 + int(plan.parameters["picks"])) * max(widths)

    def noise(self, plan: Plan) -> float:
        one = np.zeros((1, 1 + plan.parameters["picks"]), dtype=np.int64)
        one[0] = np.arange(one.shape[1])
        statistic = PickedHistograms(self._bins(plan, EVERYONE), None, one)
        return count_deviation(plan.step("histograms"), statistic.sensitivity)

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        group, columns = assigned(plan), self.columns(plan)
        everyone = Histograms(self._bins(plan), None)
        released = everyone.parts(probe.measure("reference", everyone)[0])
        every = _references([row[None, :].astype(np.float64) for row in released], plan, everyone)
        reference = np.concatenate([_of_whole(each.shares) for each in every])
        picks = probe.measure("choice", Departures(everyone.view, group, reference))
        # The first histogram of each cluster is one bin for everyone, its size.
        counted = np.concatenate([np.zeros((len(picks), 1), dtype=np.int64), picks + 1], axis=1)
        statistic = PickedHistograms(self._bins(plan, EVERYONE), group, counted)
        histograms = probe.measure("histograms", statistic).astype(np.float64)
        clusters = [
            _cluster(counts, [(columns[pick], every[pick]) for pick in row], plan, statistic)
            for counts, row in zip(histograms, picks, strict=True)
        ]
        return {"clusters": clusters, "noise": {"count": self.noise(plan)}}

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        parts: list[Part] = [noise_sentence(answer)]
        noise = answer["noise"]["count"]
        for number, cluster in enumerate(answer["clusters"], 1):
            (size,) = _sizes(cluster, noise)
            parts.append(Sentence(f"Cluster {number}: {size.text} records."))
            headings = (Heading("Column"), Heading("Distance from all records", "number"))
            rows = [[column["column"], *_distance(column)] for column in cluster["columns"]]
            if all(len(row) == len(headings) for row in rows):
                parts.append(Grid(f"What sets cluster {number} apart", headings, rows))
            for column in cluster["columns"]:
                here = bars_of(column, cluster["size"], noise)
                parts.append(histogram(column, {"This cluster": here, "All records": _overall(column)}))
        return tuple(parts)

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        rows: list[list[Any]] = []
        noise = answer["noise"]["count"]
        for number, cluster in enumerate(answer["clusters"], 1):
            rows.append([number, "", "", *rounded(*_sizes(cluster, noise), None, None)])
            for column in cluster["columns"]:
                bars = bars_of(column, cluster["size"], noise)
                rows += (
                    [number, column["column"], name, *rounded(bar.count, bar.share, every.share)]
                    for name, bar, every in zip(exact_bin_names(column), bars, _overall(column), strict=True)
                )
        named = (name for each in ("count", "share", "overall_share") for name in lines_of(each))
        return Lines(("cluster", "column", "bin", *named), rows)

    def _bins(self, plan: Plan, *before: Any) -> Bins:
        return bins_of(plan.stored, [*before, *(column.binning for column in self.columns(plan))])


def _sizes(cluster: Mapping[str, Any], noise: float) -> list[Estimate]:
    """The size of a cluster, alone in a list."""
    named = {name: [value] for name, value in cluster.items() if name.startswith("size")}
    return estimates(named, "size", Estimate.of_count, noise)


def _distance(column: Mapping[str, Any]) -> list[Estimate]:
    """The distance of a column; an earlier version's has no interval."""
    names = ("distance", "distance_low", "distance_high")
    return [Estimate.of_share(*(column[name] for name in names))] if "distance_low" in column else []


def _overall(column: Mapping[str, Any]) -> list[Bar]:
    """The histogram of all records, as shares."""
    return list(map(Bar, estimates(column, "overall", Estimate.of_share)))


def _of_whole(shares: Floats) -> Integers:
    """Whole numbers near these shares that add up to `WHOLE`."""
    ends = np.rint(np.cumsum(shares) / shares.sum() * WHOLE).astype(np.int64)
    ends[-1] = WHOLE
    parts: Integers = np.diff(ends, prepend=0)
    return parts


@dataclass(frozen=True, eq=False)
class _Reference:
    """How all records are distributed in a column."""

    shares: Floats
    interval: Interval
    #: Standard deviation of the noise in a share.
    deviation: float


def _references(parts: list[Floats], plan: Plan, everyone: Histograms) -> list[_Reference]:
    """Shares of all records in each bin of each column: at least zero, adding up to one."""
    step, total = plan.step("reference"), np.maximum(pooled_totals(parts), 1.0)
    noisy = NoisyHistograms(parts, count_reach(step, everyone.sensitivity))
    deviation = count_deviation(step, everyone.sensitivity) / float(total[0])
    found = []
    for place, row in enumerate(parts):
        shares = nearest_counts(row, total) / total
        found.append(_Reference(shares[0], noisy.shares(place, shares), deviation))
    return found


def _cluster(
    released: Floats, picked: list[tuple[BinnedColumn, _Reference]], plan: Plan, statistic: PickedHistograms
) -> dict[str, Any]:
    """The size of a cluster and its histograms, made consistent, with shares of all records to compare."""
    size, *histograms = released
    cut = [row[None, : column.bins] for row, (column, _) in zip(histograms, picked, strict=True)]
    parts = [size[None, :1], *cut]
    total, step = pooled_totals(parts), plan.step("histograms")
    noisy = NoisyHistograms(parts, count_reach(step, statistic.sensitivity))
    sizes = noisy.sizes(total)
    deviation = count_deviation(step, statistic.sensitivity) / max(float(sizes.low[0]), 1.0)
    described = []
    for place, (column, every) in enumerate(picked, 1):
        counted = with_intervals(noisy, place, nearest_counts(parts[place], total), total)
        one = {name: values[0] for name, values in counted.items()}
        distance = float(np.abs(np.array(one["shares"]) - every.shares).sum() / 2)
        off = sum(distance_reach(column.bins + 1, each) for each in (deviation, every.deviation))
        described.append(
            {
                **column.to_json(),
                **one,
                "overall": every.shares.tolist(),
                **{name: ends[0] for name, ends in every.interval.to_json("overall").items()},
                "distance": distance,
                "distance_low": max(distance - off, 0.0),
                "distance_high": min(distance + off, 1.0),
            }
        )
    # Those that are certain to set the cluster apart come first.
    described.sort(key=lambda each: (-each["distance_low"], -each["distance"]))
    ends = {name: values[0] for name, values in sizes.to_json("size").items()}
    return {"size": float(total[0]), **ends, "columns": described}
