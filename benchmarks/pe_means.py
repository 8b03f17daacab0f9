"""The table of PE-means, rebuilt as far as its rows can be made: `python -m benchmarks pe_means`.

PE-means (arXiv 2606.00342) states the area under the loss per row over epsilon from 0.25 to 4, on rows that
are centred and scaled to a largest norm of one. Its figures are in `results/pe-means-published.csv`, taken
from the output of `notebooks/paper_tables.ipynb` of the authors' repository, t3humphries/PE-means. Of its 34
datasets, 17 can be made here: 12 of `make_blobs`, with the same seed and hence the same rows; iris; and four
of two Gaussians (`g2`), of which only the law is known, so that their losses compare only after division by
the non-private one.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Annotated

import numpy as np
import numpy.typing as npt
import typer
from sklearn.datasets import load_iris

from benchmarks import diffprivlib
from benchmarks.accuracy import delta_for
from benchmarks.baselines import k_means, loss
from benchmarks.datasets import in_unit_ball, pe_blobs
from benchmarks.document import rewrite_table
from benchmarks.measuring import RESULTS, Lines, print_table, read_csv
from benchmarks.peers import cairn, stated
from core.data import Dense
from core.plan import Request
from core.privacy import Budget

__all__ = ["area", "main", "non_private", "published", "rebuilt"]

Floats = npt.NDArray[np.float64]
EPSILONS = ("0.25", "0.5", "1", "2", "4")
#: Their delta.
DELTA = "N^-1.1"
#: Private algorithms of their table other than their own two.
OTHERS = ("google", "fastlloyd", "diffprivlib", "balcan")
AREAS = ("non_private", "pe", "projected", *OTHERS)


@cache
def published() -> dict[str, dict[str, str]]:
    """Rows of their table by the names of their datasets."""
    return {row["data"]: row for row in read_csv(RESULTS / "pe-means-published.csv")}


def can_be_made(name: str) -> bool:
    """Whether `rebuilt` makes this dataset."""
    return name == "iris" or name.startswith(("blobs_", "g2_"))


def rebuilt(name: str) -> Floats:
    """The rows of that dataset, centred and scaled to a largest norm of one, as theirs are."""
    row = published()[name]
    size, columns, k = int(row["rows"]), int(row["columns"]), int(row["k"])
    if name.startswith("blobs_"):
        return pe_blobs(size, columns, k)
    if name == "iris":
        return in_unit_ball(load_iris().data)
    noise = np.random.default_rng(columns).normal(0, 50, size=(size, columns)).round()
    return in_unit_ball(np.repeat([500.0, 600.0], size // 2)[:, None] + noise)


def area(losses: Sequence[float]) -> float:
    """The area under losses at the five values of epsilon, by the trapezoidal rule."""
    return float(np.trapezoid(losses, [float(epsilon) for epsilon in EPSILONS]))


#: The area under a loss of one.
_CONSTANT = area([1.0] * len(EPSILONS))


def non_private(rows: Floats, k: int) -> float:
    """The area under the constant loss per row of k-means without privacy."""
    return loss(rows, k_means(rows, k), "means") / len(rows) * _CONSTANT


def measured(name: str, methods: Sequence[str], seeds: Sequence[int]) -> Iterator[dict[str, object]]:
    """Losses per row of every method at every epsilon, under fresh noise for each seed."""
    rows, k = rebuilt(name), int(published()[name]["k"])
    domain = Dense.ball(1.0, dimension=rows.shape[1], size=len(rows))
    largest = float(np.abs(rows).max())
    without = f"{non_private(rows, k):.6g}"
    for seed in seeds:
        for method in methods:
            for epsilon in EPSILONS:
                if method == "diffprivlib":
                    centres = diffprivlib.centres(rows, -largest, largest, k, float(epsilon))
                else:
                    budget = Budget.at_most(epsilon, delta_for(DELTA, len(rows)))
                    centres = cairn(rows, domain, Request(k, budget))
                found = f"{loss(rows, centres, 'means') / len(rows):.6g}"
                where = {"data": name, "method": method, "epsilon": epsilon, "seed": seed}
                yield {**where, "loss": found, "non_private": without}


def _relative(lines: Sequence[dict[str, str]]) -> dict[tuple[str, str], list[dict[str, float]]]:
    """Of each dataset and method the whole runs: by epsilon the loss over that of k-means without privacy."""
    runs: dict[tuple[str, str], dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in lines:
        without = float(line["non_private"]) / _CONSTANT
        runs[line["data"], line["method"]][line["seed"]][line["epsilon"]] = float(line["loss"]) / without
    return {key: [run for run in found.values() if len(run) == len(EPSILONS)] for key, found in runs.items()}


def summarise(lines: Sequence[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each dataset that was rebuilt: areas over that of k-means without privacy on the same rows.

    Published areas of `g2` are divided by the published non-private area, since the rows are others.
    """
    runs = _relative(lines)
    here = {line["data"]: float(line["non_private"]) for line in lines}

    def areas(name: str, method: str) -> str:
        found = runs.get((name, method), [])
        return stated([area([run[epsilon] for epsilon in EPSILONS]) / _CONSTANT for run in found])

    table: list[dict[str, object]] = []
    for name in filter(here.__contains__, published()):
        row = published()[name]
        unit = float(row["non_private"]) if name.startswith("g2_") else here[name]
        over = {column: float(row[column]) / unit for column in AREAS if row[column]}
        other = min(OTHERS, key=over.__getitem__)
        table.append(
            {
                "data": name.split("_")[0],
                "rows": f"{int(row['rows']):,} x {row['columns']}",
                "k": row["k"],
                "non-private, published": f"{over['non_private']:.3f}",
                "PE-means, published": f"{min(over['pe'], over.get('projected', math.inf)):.3f}",
                "best other, published": f"{over[other]:.3f} ({other})",
                "diffprivlib, published": f"{over['diffprivlib']:.3f}",
                "diffprivlib, here": areas(name, "diffprivlib"),
                "Cairn": areas(name, "Cairn"),
                f"Cairn at {EPSILONS[0]}": stated(
                    [run[EPSILONS[0]] for run in runs.get((name, "Cairn"), [])]
                ),
            }
        )
    return table


def main(
    runs: Annotated[int, typer.Option(help="Runs of each method at each epsilon.")] = 5,
    first: Annotated[int, typer.Option(help="Number of the first run.")] = 0,
    only: Annotated[str, typer.Option(help="Only datasets such as `blobs_64_*`.")] = "*",
    method: Annotated[list[str] | None, typer.Option(help="Cairn (by default) or diffprivlib.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    page: Annotated[Path | None, typer.Option(help="Markdown page whose table is rewritten.")] = None,
    reprint: Annotated[bool, typer.Option(help="Only print what the CSV file holds.")] = False,
) -> None:
    """Print areas under the loss over epsilon, those that PE-means published beside those measured here."""
    lines = Lines(results / "pe-means.csv", ("data", "method", "epsilon", "seed"))
    for name in published():
        if can_be_made(name) and fnmatch(name, only) and not reprint:
            lines.add(measured(name, method or ["Cairn"], range(first, first + runs)))
    table = summarise(lines.rows)
    print_table("area under the loss over epsilon, over that of k-means without privacy", table)
    if page:
        rewrite_table(page, "pe-means", table)
