"""Tables: counts over the cells of up to three columns."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from core.data import Stored
from core.errors import InvalidRequest
from core.mechanisms.noise import additive_noise
from core.plan import Plan, Step
from core.postprocessing.consistency import nearest_counts
from core.probe import Probe
from core.questions.base import BINS, NOISE, Kind, Question, count_deviation, noise_sentence
from core.questions.columns import BinnedColumn, binned_columns, bins_of
from core.questions.view import Grid, Heading, Lines, Part, bin_names, exact_bin_names
from core.statistics.histograms import CellCounts

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
        counts, margins = consistent_table(released)
        columns = [
            {**column.to_json(), "counts": margin}
            for column, margin in zip(self.columns(plan), margins, strict=True)
        ]
        return {
            "counts": counts,
            "columns": columns,
            "total": float(np.sum(margins[0])),
            "noise": {"count": self.noise(plan)},
        }

    def view(self, answer: Mapping[str, Any]) -> tuple[Part, ...]:
        named = [Heading(column["column"]) for column in answer["columns"]]
        columns = (*named, Heading("Records", "count"))
        return noise_sentence(answer), Grid("Table of counts", columns, list(_cells(answer, bin_names)))

    def lines(self, answer: Mapping[str, Any]) -> Lines:
        names = [column["column"] for column in answer["columns"]]
        return Lines((*names, "count"), list(_cells(answer, exact_bin_names)))


def _cells(answer: Mapping[str, Any], names: Callable[[Mapping[str, Any]], list[str]]) -> Iterator[list[Any]]:
    """The bins and the count of each cell."""
    for cell in product(*(enumerate(names(column)) for column in answer["columns"])):
        count = answer["counts"]
        for place, _ in cell:
            count = count[place]
        yield [*(name for _, name in cell), count]


def consistent_table(released: Any) -> tuple[list[Any], list[list[float]]]:
    """Cells that are at least zero and add up to the noisy total, and their sums along each axis."""
    total = np.maximum(released.sum(), 0.0)
    cells = nearest_counts(released.reshape(1, -1), np.array([total])).reshape(released.shape)
    axes = range(cells.ndim)
    margins = [cells.sum(axis=tuple(other for other in axes if other != axis)).tolist() for axis in axes]
    return cells.tolist(), margins
