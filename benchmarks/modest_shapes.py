"""Few records of many shapes: `python -m benchmarks modest_shapes`, for docs/accuracy-log.md.

Groups that lie apart are not what most tables look like. Here are tails, planes, whole numbers, categories of
sizes, rows without groups, and tables that scikit-learn bundles, all with few records for each centre. Three
plans run on the same rows: today's, one with a tree in place of the sketch, and that for plenty of records.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import typer
from sklearn import datasets

from benchmarks.datasets import gaussians, power_shares
from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from benchmarks.modest import (
    Cell,
    Made,
    exploring,
    groups,
    in_box,
    lognormal,
    mean_and_error,
    overlap,
    quotient,
    skewed,
)
from core.algorithms.summit import few_records

__all__ = ["main"]

Floats = npt.NDArray[np.float64]
Generator = np.random.Generator


def _scaled(cell: Cell, rows: Floats) -> Made:
    """Each column from its lowest to its highest values, those few of a thousand beyond them clipped."""
    low, high = np.quantile(rows, [0.001, 0.999], axis=0)
    return in_box(cell, 0.5 + 0.9 * (rows - (low + high) / 2) / np.maximum(high - low, 1e-9), None)


def students(cell: Cell, draw: Generator) -> Made:
    """Student's t with three degrees of freedom about eight middles."""
    middles = draw.uniform(-8, 8, size=(8, cell.columns))
    return _scaled(cell, _about(cell, middles, draw) + draw.standard_t(3, size=(cell.size, cell.columns)))


def plane(cell: Cell, draw: Generator) -> Made:
    """Ten groups in a plane, with little noise across it."""
    axes = np.linalg.qr(draw.normal(size=(cell.columns, 2)))[0]
    within = _about(cell, draw.uniform(-8, 8, size=(10, 2)), draw) + 0.5 * draw.normal(size=(cell.size, 2))
    across = 0.1 * draw.normal(size=(cell.size, cell.columns))
    return in_box(cell, 0.5 + (within @ axes.T + across) / 22, None)


def stretched(cell: Cell, draw: Generator) -> Made:
    """Twelve groups, each with a spread of its own in every column."""
    owners = draw.integers(12, size=cell.size)
    middles = draw.uniform(-8, 8, size=(12, cell.columns))
    spreads = draw.uniform(0.3, 2.5, size=(12, cell.columns))
    noise = draw.normal(size=(cell.size, cell.columns))
    return _scaled(cell, middles[owners] + spreads[owners] * noise)


def few_axes(cell: Cell, draw: Generator) -> Made:
    """Groups in up to six dimensions, each less wide than the one before."""
    count = min(6, cell.columns)
    widths = np.array([1, 0.8, 0.6, 0.5, 0.4, 0.3])[:count]
    axes = np.linalg.qr(draw.normal(size=(cell.columns, count)))[0] * widths
    within = _about(cell, draw.normal(size=(cell.k, count)), draw)
    rows = (within + 0.3 * draw.normal(size=within.shape)) @ axes.T
    rows += 0.05 * draw.normal(size=rows.shape)
    return in_box(cell, 0.5 + rows / (2.2 * np.abs(rows).max()), None)


def uniform(cell: Cell, draw: Generator) -> Made:
    """No groups at all."""
    return in_box(cell, draw.uniform(0.1, 0.9, size=(cell.size, cell.columns)), None)


def zipf(cell: Cell, draw: Generator) -> Made:
    """Fifteen groups in shares of 1, 1/2, 1/3 and so on."""
    centres = draw.uniform(0.15, 0.85, size=(15, cell.columns))
    return in_box(cell, gaussians(draw, cell.size, centres, 0.04, power_shares(15, 1.0)), None)


def levels(cell: Cell, draw: Generator) -> Made:
    """Whole numbers from 0 to 5 that go together, as answers of a questionnaire do."""
    liking = draw.beta(0.7, 0.7, size=(cell.size, 1))
    return in_box(cell, draw.binomial(5, liking, size=(cell.size, cell.columns)) / 5, None)


def _bundled(load: Callable[[], Any]) -> Callable[[Cell, Generator], Made]:
    """A table of scikit-learn: some of its columns, its rows drawn again and again with a little noise."""

    def make(cell: Cell, draw: Generator) -> Made:
        table = load().data
        table = table[:, table.std(axis=0) > 0][:, : cell.columns]
        rows = table[draw.integers(len(table), size=cell.size)]
        return _scaled(cell, rows + 0.01 * table.std(axis=0) * draw.normal(size=rows.shape))

    return make


def _about(cell: Cell, middles: Floats, draw: Generator) -> Floats:
    return middles[draw.integers(len(middles), size=cell.size)]


SHAPES: dict[str, Callable[[Cell, Generator], Made]] = {
    **{make.__name__: make for make in (groups, overlap, lognormal, skewed, students, plane, stretched)},
    **{make.__name__: make for make in (few_axes, uniform, zipf, levels)},
    "cancer": _bundled(datasets.load_breast_cancer),
    "digits": _bundled(datasets.load_digits),
    "wine": _bundled(datasets.load_wine),
}
#: Bundled tables have no more columns than these.
MOST_COLUMNS = {"wine": 13, "cancer": 30}
#: Rows, columns, k and epsilon; most are below the limit from which on plans explore, the last next to it.
SETTINGS = (
    (1_000, 4, 10, "1"),
    (3_000, 3, 30, "0.95"),
    (3_000, 4, 30, "0.95"),
    (1_000, 8, 10, "1"),
    (3_000, 8, 30, "0.95"),
    (2_000, 12, 20, "0.8"),
    (2_000, 20, 10, "0.6"),
    (1_000, 8, 10, "1.28"),
    (3_000, 4, 30, "1.28"),
    (3_000, 8, 30, "1.28"),
    (3_000, 16, 30, "1.28"),
    (2_000, 12, 20, "1.28"),
    (6_400, 8, 64, "1.28"),
)
#: Other plans on the same rows.
PLANS: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "today": nullcontext,
    "tree": lambda: patch.object(few_records, "SKETCH_COLUMNS", 1 << 30),
    "exploring": exploring,
}


def measured(cell: Cell, seed: int) -> Iterator[dict[str, object]]:
    """The loss of every plan on the same rows, over that of k-means without privacy."""
    for name, planned in PLANS.items():
        with planned():
            ratio, seconds = cell.run(seed)
        yield {
            "cell": cell.label,
            "plan": name,
            "seed": seed,
            "ratio": f"{ratio:.6f}",
            "cpu": f"{seconds:.3f}",
        }


def summarise(rows: list[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each cell: the loss of today's plan, and its quotients over the others."""
    losses: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in rows:
        losses[row["cell"]][row["plan"]][row["seed"]] = float(row["ratio"])
    lines: list[dict[str, object]] = []
    for cell, plans in losses.items():
        today = plans["today"]
        line: dict[str, object] = {"cell": cell, "pairs": len(today)}
        line["loss"] = "{:.3f} ± {:.3f}".format(*mean_and_error(list(today.values())))
        for name, other in plans.items():
            if name != "today":
                pairs = [(today[seed], other[seed]) for seed in today if seed in other]
                line[f"over {name}"] = "{:.2f} ± {:.2f}".format(*quotient(pairs)) if len(pairs) > 1 else ""
        lines.append(line)
    return lines


def main(
    runs: Annotated[int, typer.Option(help="Datasets of each shape.")] = 8,
    first: Annotated[int, typer.Option(help="Seed of the first dataset.")] = 0,
    columns: Annotated[list[int] | None, typer.Option(help="Only settings of so many columns.")] = None,
    only: Annotated[str, typer.Option(help="Only cells such as `levels-*-k30-*`.")] = "*",
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    append: Annotated[bool, typer.Option(help="Keep the runs that the CSV file holds already.")] = False,
) -> None:
    """Print the loss on rows of many shapes, and quotients over other plans on the same rows."""
    path = results / "modest-shapes.csv"
    rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
    for size, width, k, epsilon in SETTINGS:
        if columns is None or width in columns:
            for name, make in SHAPES.items():
                if width > MOST_COLUMNS.get(name, width):
                    continue
                cell = Cell(name, size, width, k, epsilon, make)
                if not fnmatch(cell.label, only):
                    continue
                for seed in range(first, first + runs):
                    rows += measured(cell, seed)
                write_csv(path, rows)
    print_table("few records of many shapes", summarise(read_csv(path)))
