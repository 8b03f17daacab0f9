"""Quantiles of columns, from a tree of counts for each."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from core.arrays import Floats
from core.columns.line import Ranged
from core.data import Column, Stored
from core.mechanisms.noise import additive_noise
from core.options import Option
from core.plan import Plan, Step
from core.postprocessing.consistency import consistent_tree, place_of_rank
from core.postprocessing.intervals import counts_interval
from core.probe import Probe
from core.questions.base import NOISE, Kind, count_deviation, count_reach, noise_sentence
from core.questions.columns import BinnedColumn, binned_columns, bins_of
from core.questions.view import Estimate, Grid, Heading, Lines, Part, lines_of, rounded, share_text
from core.statistics.histograms import Histograms
from core.views import Binning

#: Children of a node.
BRANCHES = 16
#: Leaves of a whole tree: values that are closer together are not distinguished.
LEAVES = 4096


class Quantiles(Kind):
    """Quantiles at some levels; the argument is in `quantiles.md`."""

    name = "quantiles"
    title = "Quantiles"
    label = "quantiles of columns"
    released = "Quantiles of columns"
    used = "quantiles"
    summary = "quantiles of numbers, dates and times"
    options = (
        Option(
            "levels",
            list,
            [0.25, 0.5, 0.75],
            "shares of records below; 0.5 is the median",
            least=0.0,
            most=1.0,
            example=[0.01, 0.5, 0.99],
        ),
        NOISE,
    )
    most_columns = 100
    number_operations = 40.0  # in bins of several widths
    cell_operations = 5000.0  # the edges of its many bins are listed one by one, but not described

    def refusal(self, column: Column) -> str | None:
        if column.has_bounds:
            return None
        return f"is a {column.kind}, which has no order: ask for a table of it"

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        return {"columns": list(columns), "levels": sorted(float(level) for level in options["levels"])}

    def columns(self, plan: Plan) -> tuple[BinnedColumn, ...]:
        return binned_columns(plan.stored, plan.parameters["columns"], LEAVES)

    def statistic(self, plan: Plan) -> Histograms:
        trees = [_tree(column.binning) for column in self.columns(plan)]
        return Histograms(bins_of(plan.stored, [binning for tree in trees for binning in tree]), None)

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        noise = additive_noise(self.shares(plan).noise(1.0))
        purpose = "for each column counts in bins of several widths"
        return (Step("trees", noise, Histograms.kind, 1, purpose),)

    def entries(self, plan: Plan) -> int:
        return len(self.statistic(plan).view.binnings)

    def cells(self, plan: Plan) -> int:
        return sum(self.statistic(plan).view.widths)

    def noise(self, plan: Plan) -> float:
        return count_deviation(plan.step("trees"), self.statistic(plan).sensitivity)

    def forecast(self, plan: Plan) -> dict[str, float]:
        """As well as the noise of a count, that of a rank, which adds up some nodes of each level."""
        levels = max(len(_tree(column.binning)) for column in self.columns(plan))
        noise = self.noise(plan) * math.sqrt(rank_nodes(levels))
        return {**super().forecast(plan), "rank_noise": noise}

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        statistic, step = self.statistic(plan), plan.step("trees")
        counts = statistic.parts(probe.measure("trees", statistic)[0])
        reach = count_reach(step, statistic.sensitivity)
        described = []
        for column in self.columns(plan):
            tree = _tree(column.binning)
            levels, counts = counts[: len(tree)], counts[len(tree) :]
            described.append(_answer(column, tree, levels, plan.parameters["levels"], reach))
        return {
            "levels": plan.parameters["levels"],
            "columns": described,
            "noise": {"count": self.noise(plan), "rank": plan.forecast["rank_noise"]},
        }

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        levels = [Heading(share_text(level), "number") for level in answer["levels"]]
        rows = [[column["column"], *_values(column)] for column in answer["columns"]]
        return noise_sentence(answer), Grid("Quantiles", (Heading("Column"), *levels), rows)

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        rows = (
            [column["column"], level, *rounded(value)]
            for column in answer["columns"]
            for level, value in zip(answer["levels"], _values(column), strict=True)
        )
        return Lines(("column", "level", *lines_of("value")), list(rows))

    def bounds(self, answer: Mapping[str, Any], column: Ranged) -> tuple[Any, Any] | None:
        """The lowest and the highest quantile."""
        found = next((each for each in answer["columns"] if each["column"] == column.name), None)
        if found is None:
            return None
        places = [column.place(value) for value in found["values"]]
        return column.bounds_around(min(places), max(places))


def rank_nodes(levels: int) -> float:
    """Number of nodes of a tree whose noise a rank adds up, about: half of a node's children at most."""
    return levels * BRANCHES / 4


def _values(column: Mapping[str, Any]) -> list[Estimate]:
    """The quantiles of a column; those of an earlier version have no intervals."""
    ends = (column.get(f"values{end}", column["values"]) for end in ("_low", "_high"))
    return list(map(Estimate.of_number, column["values"], *ends))


def _answer(
    column: BinnedColumn, tree: list[Binning], released: list[Any], levels: list[float], reach: float
) -> dict[str, Any]:
    gaps = np.array([float(counts[-1]) for counts in released] if column.binning.missing else [])
    known = [
        counts[: len(each.edges) - 1].astype(np.float64) for each, counts in zip(tree, released, strict=True)
    ]
    parents = [np.arange(len(below)) // BRANCHES for below in known[1:]]
    leaves = consistent_tree(known, parents)
    count = float(leaves.sum())
    counted = counts_interval(known[0].sum(), reach * math.sqrt(len(known[0])), count)
    missing = {}
    if len(gaps):
        found = max(0.0, float(gaps.mean()))
        ends = counts_interval(gaps.mean(), reach / math.sqrt(len(gaps)), found)
        missing = {"missing": found, **ends.to_json("missing")}
    off = reach * math.sqrt(rank_nodes(len(tree))) / max(count, 1.0)
    between = [_between(column, leaves, level - off, level + off) for level in levels]
    return {
        "column": column.name,
        "kind": column.column.kind,
        "values": [column.value(_interpolated(column, place_of_rank(leaves, level))) for level in levels],
        "values_low": [low for low, _ in between],
        "values_high": [high for _, high in between],
        "count": count,
        **counted.to_json("count"),
        **missing,
    }


def _between(column: BinnedColumn, leaves: Floats, low: float, high: float) -> tuple[Any, Any]:
    """The first and the last value of the leaves that hold these ranks; of all where a rank is beyond."""
    first = math.floor(place_of_rank(leaves, low)) if low > 0 else 0
    last = math.ceil(place_of_rank(leaves, high)) if high < 1 else len(leaves)
    first, last = min(first, len(leaves) - 1), max(last, 1)
    # A leaf ends half way between its last value and the first one of the next.
    return column.value(column.starts[first]), column.value(2 * column.ends[last] - column.starts[last])


def _interpolated(column: BinnedColumn, place: float) -> float:
    ends: Floats = np.array(column.ends)
    return float(np.interp(place, np.arange(len(ends)), ends))


def _tree(finest: Binning) -> list[Binning]:
    """Binnings from the widest bins to the finest; a bin holds `BRANCHES` of the next, the last one fewer."""
    tree = [finest]
    while len(tree[0].edges) - 1 > BRANCHES:
        edges = tree[0].edges
        wider = edges[:-1:BRANCHES]
        tree.insert(0, Binning(finest.place, (*wider, edges[-1]), finest.missing))
    return tree
