"""Few records of real tables: `python -m benchmarks modest_tables FOLDER`, for docs/accuracy.md.

Reads every CSV file of a folder, keeps its numeric columns, and compares the plan for few records with the
one for plenty of records on the same rows. The tables behind the figures of the page are those that the
package `pydataset` bundles; nothing was chosen on them.
"""

from __future__ import annotations

import math
import statistics
import zlib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import typer

from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from benchmarks.modest import Cell, Made, exploring, in_box

__all__ = ["main"]

Floats = npt.NDArray[np.float64]

#: k, and records * epsilon / k.
ASKED = ((5, 60), (10, 30), (10, 100), (30, 30), (30, 95))
#: Tables of fewer rows or columns are passed over; of longer ones a sample is taken.
LEAST_ROWS, MOST_ROWS, LEAST_COLUMNS, MOST_COLUMNS = 900, 10_000, 3, 64
#: Larger epsilons are not asked for: with so few records a curator would rather not cluster at all.
MOST_EPSILON = 4.0


def numeric(path: Path) -> Floats | None:
    """Complete rows of numeric columns with more than two values, scaled to their bulk; None if too few."""
    table = pd.read_csv(path, index_col=0, low_memory=False).select_dtypes("number")
    table = table.dropna(axis=1, thresh=math.ceil(0.9 * len(table))).dropna()
    rows = table.loc[:, table.nunique() > 2].to_numpy(dtype=np.float64)
    if len(rows) < LEAST_ROWS or not LEAST_COLUMNS <= rows.shape[1] <= MOST_COLUMNS:
        return None
    draw = np.random.default_rng(zlib.crc32(path.stem.encode()))
    rows = draw.permutation(rows)[:MOST_ROWS]
    low, high = np.quantile(rows, [0.001, 0.999], axis=0)
    scaled: Floats = 0.5 + 0.9 * (rows - (low + high) / 2) / np.maximum(high - low, 1e-9)
    return scaled


def cells(path: Path, rows: Floats) -> Iterator[tuple[Cell, Made]]:
    """What is asked of a table, where the plan for few records is another one."""
    for k, wanted in ASKED:
        epsilon = wanted * k / len(rows)

        def make(cell: Cell, _: np.random.Generator) -> Made:
            return in_box(cell, rows, None)

        cell = Cell(path.stem, len(rows), rows.shape[1], k, f"{epsilon:.3g}", make)
        if epsilon <= MOST_EPSILON and cell.has_few_records:
            yield cell, cell.make(cell, np.random.default_rng(0))


def summarise(runs: list[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each k and number of records: losses and quotients, of which every table counts once."""
    by_asked: dict[tuple[int, int], dict[str, list[tuple[float, float]]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for run in runs:
        pair = float(run["few"]), float(run["plenty"])
        by_asked[int(run["k"]), int(run["asked"])][run["table"]].append(pair)
    lines: list[dict[str, object]] = []
    for (k, asked), tables in sorted(by_asked.items()):
        means = [tuple(map(statistics.fmean, zip(*pairs, strict=True))) for pairs in tables.values()]
        quotients = [few / plenty for few, plenty in means]
        lines.append(
            {
                "k": k,
                "records * epsilon / k": asked,
                "tables": len(tables),
                "loss, median": f"{statistics.median(few for few, _ in means):.3f}",
                "exploring, median": f"{statistics.median(plenty for _, plenty in means):.3f}",
                "quotient, mean": f"{statistics.geometric_mean(quotients):.3f}",
                "worst": f"{max(quotients):.3f}",
                "above 1.02": sum(quotient > 1.02 for quotient in quotients),
            }
        )
    return lines


def main(
    folder: Annotated[
        Path, typer.Argument(help="A folder of CSV files; their first column is a row number.")
    ],
    runs: Annotated[int, typer.Option(help="Runs of each plan on each table.")] = 2,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Print the loss of plans for few records on real tables, beside that of plans for plenty of records."""
    path, lines = results / "modest-tables.csv", list[dict[str, Any]]()
    for table in sorted(folder.glob("*.csv")):
        rows = numeric(table)
        if rows is None:
            continue
        for cell, made in cells(table, rows):
            for _ in range(runs):
                few = made.loss_of(cell.centres(made))
                with exploring():
                    plenty = made.loss_of(cell.centres(made))
                asked = round(cell.size * float(cell.epsilon) / cell.k)
                lines.append(
                    {
                        "table": cell.name,
                        "rows": cell.size,
                        "columns": cell.columns,
                        "k": cell.k,
                        "asked": asked,
                    }
                    | {"epsilon": cell.epsilon, "few": f"{few:.4f}", "plenty": f"{plenty:.4f}"}
                )
        write_csv(path, lines)
    print_table("few records of real tables", summarise(read_csv(path)))
