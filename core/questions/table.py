"""Tables: counts over the cells of up to three columns."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from core.arrays import Floats
from core.data import Stored
from core.errors import InvalidRequest
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts
from core.postprocessing.intervals import counts_interval
from core.probe import Probe
from core.questions.base import (
    BINS,
    NOISE,
    Kind,
    Question,
    count_deviation,
    count_reach,
    noise_sentence,
)
from core.questions.columns import BinnedColumn, binned_columns, bins_of
from core.questions.view import (
    Estimate,
    Grid,
    Heading,
    Lines,
    Part,
    bin_names,
    estimates,
    exact_bin_names,
    lines_of,
    rounded,
)
from core.statistics.histograms import CellCounts

#: The names of cells and of the ends of their intervals.
ENDS = ("counts", "counts_low", "counts_high")
#: Most cells of a table.
MOST_TABLE_CELLS = 10_000


class CrossTable(Kind):
    """Counts over the cells of some columns; the argument is in `table.md`."""

    name = "table"
    title = "Table"
    label = "a table of up to three columns"
    released = "Counts of records by some columns"
    summary = "counts over the cells of up to three columns"
    options = (BINS, NOISE)
    most_columns = 3

    def parameters(self, stored: Stored, columns: tuple[str, ...], options: dict[str, Any]) -> dict[str, Any]:
        widths = [column.bins for column in binned_columns(stored, columns, options["bins"])]
        if math.prod(widths) > MOST_TABLE_CELLS:
            raise InvalidRequest(
                f"this table would have {math.prod(widths):,} cells; the most are {MOST_TABLE_CELLS:,}: name "
                "fewer columns, or ask for fewer bins",
                parameter="columns",
            )
        return {"columns": list(columns), "bins": options["bins"]}

    def typical(self, stored: Stored, question: Question) -> Question:
        return replace(question, columns=stored.columns[:2])

    def columns(self, plan: Plan) -> tuple[BinnedColumn, ...]:
        return binned_columns(plan.stored, plan.parameters["columns"], plan.parameters["bins"])

    def statistic(self, plan: Plan) -> CellCounts:
        return CellCounts(bins_of(plan.stored, [column.binning for column in self.columns(plan)]))

    def steps(self, plan: Plan) -> tuple[Step, ...]:
        noise = additive_noise(self.shares(plan).noise(1.0))
        return (Step("cells", noise, CellCounts.kind, 1, "number of records in each cell"),)

    def entries(self, plan: Plan) -> int:
        return 1

    def cells(self, plan: Plan) -> int:
        return math.prod(self.statistic(plan).shape)

    def noise(self, plan: Plan) -> float:
        return count_deviation(plan.step("cells"), self.statistic(plan).sensitivity)

    def ask(self, plan: Plan, probe: Probe) -> dict[str, Any]:
        released = probe.measure("cells", self.statistic(plan)).astype(np.float64)
        reach = count_reach(plan.step("cells"), self.statistic(plan).sensitivity)
        table = consistent_table(released, reach)
        columns = [
            {**column.to_json(), **margin}
            for column, margin in zip(self.columns(plan), table.margins, strict=True)
        ]
        return {**table.cells, "columns": columns, **table.total, "noise": {"count": self.noise(plan)}}

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        named = [Heading(column["column"]) for column in answer["columns"]]
        columns = (*named, Heading("Records", "number"))
        return noise_sentence(answer), Grid("Table of counts", columns, list(_cells(answer, bin_names)))

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        names = [column["column"] for column in answer["columns"]]
        rows = [[*cell, *rounded(count)] for *cell, count in _cells(answer, exact_bin_names)]
        return Lines((*names, *lines_of("count")), rows)


def _cells(answer: Mapping[str, Any], names: Callable[[Mapping[str, Any]], list[str]]) -> Iterator[list[Any]]:
    """The bins and the count of each cell."""
    flat = {name: np.ravel(answer[name]).tolist() for name in ENDS if name in answer}
    counts = estimates(flat, "counts", Estimate.of_count, answer["noise"]["count"])
    for cell, count in zip(product(*map(names, answer["columns"])), counts, strict=True):
        yield [*cell, count]


@dataclass(frozen=True)
class ConsistentTable:
    """Cells that are at least zero and add up to the noisy total, their sums along each axis, and the total.

    All are JSON, with intervals.
    """

    cells: dict[str, Any]
    margins: list[dict[str, Any]]
    total: dict[str, Any]


def consistent_table(released: Floats, reach: float) -> ConsistentTable:
    """A table as it was released, made consistent; the noise of a count stays within `reach`."""
    total = np.maximum(released.sum(), 0.0)
    cells = nearest_counts(released.reshape(1, -1), np.array([total])).reshape(released.shape)
    margins = []
    for axis in range(cells.ndim):
        others = tuple(other for other in range(cells.ndim) if other != axis)
        sums, added = cells.sum(axis=others), cells.size / cells.shape[axis]
        ends = counts_interval(released.sum(axis=others), reach * math.sqrt(added), sums)
        margins.append({"counts": sums.tolist(), **ends.to_json("counts")})
    everyone = counts_interval(released.sum(), reach * math.sqrt(cells.size), total)
    return ConsistentTable(
        {"counts": cells.tolist(), **counts_interval(released, reach, cells).to_json("counts")},
        margins,
        {"total": float(total), **everyone.to_json("total")},
    )
