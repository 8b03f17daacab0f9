"""How epsilon, k and the number of records trade off: `python -m benchmarks choosing`, for docs/choosing.md.

Rows lie about `k` centres in a box; the private loss is divided by the loss of the true centres, so that 1.00
is as good as knowing them. Every run is a line of `results/choosing.csv`.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.baselines import loss
from benchmarks.document import rewrite_table
from benchmarks.measuring import RESULTS, Lines, print_table
from core.algorithms import registry
from core.data import ArraySource, Dense
from core.plan import Request
from core.privacy import Budget, default_delta

__all__ = ["main"]

SIZES = (1_000, 10_000, 100_000)
CLUSTERS = (3, 10, 30)
EPSILONS = ("0.1", "0.3", "1", "3")
_KEY = ("columns", "records", "k", "epsilon")


def ratio(size: int, k: int, epsilon: str, columns: int, seed: int) -> float:
    """The loss of one private clustering over that of the true centres; new rows for every seed."""
    draw = np.random.default_rng(seed)
    centres = draw.uniform(0.15, 0.85, size=(k, columns))
    rows = centres[draw.integers(k, size=size)] + draw.normal(scale=0.04, size=(size, columns))
    rows = np.clip(rows, 0.0, 1.0)
    domain = Dense.box(0.0, 1.0, dimension=columns, size=size)
    budget = Budget.at_most(epsilon, default_delta(size))
    plan = registry.plan(domain, Request(k, budget))
    found = registry.run(plan, ArraySource(domain, rows))
    return loss(rows, found.centres, "means") / loss(rows, centres, "means")


def measured(columns: int, runs: int, sizes: Sequence[int]) -> Iterator[dict[str, object]]:
    """Every cell of the table, `runs` times."""
    for size in sizes:
        for k in CLUSTERS:
            for epsilon in EPSILONS:
                for seed in range(runs):
                    found = ratio(size, k, epsilon, columns, seed)
                    where = dict(zip(_KEY, (columns, size, k, epsilon), strict=True))
                    yield {**where, "seed": seed, "ratio": f"{found:.5f}"}


def summarise(lines: Sequence[dict[str, str]], columns: int) -> list[dict[str, object]]:
    """Median and worst of each cell."""
    ratios: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for line in lines:
        ratios[tuple(line[name] for name in _KEY)].append(float(line["ratio"]))
    table: list[dict[str, object]] = []
    for size in SIZES:
        for k in CLUSTERS:
            row: dict[str, object] = {"records": f"{size:,}", "k": k}
            for epsilon in EPSILONS:
                cell = ratios.get((str(columns), str(size), str(k), epsilon))
                words = f"{statistics.median(cell):.2f} ({max(cell):.2f})" if cell else "-"
                row[f"epsilon {epsilon}"] = words
            table.append(row)
    return table


def main(
    columns: Annotated[int, typer.Option(help="Columns of the rows.")] = 4,
    runs: Annotated[int, typer.Option(help="Datasets per cell; the median and the worst count.")] = 5,
    size: Annotated[list[int] | None, typer.Option(help="Numbers of records; all by default.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    page: Annotated[Path | None, typer.Option(help="Markdown page whose table is rewritten.")] = None,
    reprint: Annotated[bool, typer.Option(help="Only print what the CSV file holds.")] = False,
) -> None:
    """Print the loss over that of the true centres, by records, k and epsilon."""
    lines = Lines(results / "choosing.csv", (*_KEY, "seed"))
    if not reprint:
        lines.add(measured(columns, runs, size or SIZES))
    table = summarise(lines.rows, columns)
    print_table("loss over that of the true centres: median (worst)", table)
    if page:
        rewrite_table(page, f"choosing-{columns}", table)
