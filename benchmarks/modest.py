"""Modest data and small epsilon: `python -m benchmarks modest`, for docs/accuracy.md.

Every run has rows of its own. The loss of the private centres is divided by that of the true ones or, where
clusters overlap, of k-means without privacy.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Annotated
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import typer
from sklearn.cluster import KMeans

from benchmarks.baselines import loss
from benchmarks.datasets import gaussians, power_shares
from benchmarks.measuring import print_table, usage
from core.algorithms import registry, summit_tuning
from core.data import ArraySource, Dense
from core.plan import Request
from core.privacy import Budget, default_delta

__all__ = ["main"]

Floats = npt.NDArray[np.float64]
#: Rows between 0 and 1, and true centres if those are what to compare with.
Made = tuple[Floats, Floats | None]


@dataclass(frozen=True)
class Cell:
    """A row of the table: how many rows of what, and what is asked of them."""

    name: str
    size: int
    columns: int
    k: int
    epsilon: str
    make: Callable[[np.random.Generator, Cell], Made]

    def run(self, seed: int) -> tuple[float, float]:
        """The loss over that of the baseline, and seconds of a core; rows anew for every seed."""
        rows, centres = self.make(np.random.default_rng(seed), self)
        rows = np.clip(rows, 0.0, 1.0)
        if centres is None:
            centres = KMeans(self.k, n_init=3, random_state=0).fit(rows).cluster_centers_
        domain = Dense.box(0.0, 1.0, dimension=self.columns, size=self.size)
        plan = registry.plan(domain, Request(self.k, Budget.at_most(self.epsilon, default_delta(self.size))))
        with usage() as taken:
            found = registry.run(plan, ArraySource(domain, rows))
        return loss(rows, found.centres, "means") / loss(rows, centres, "means"), taken.cpu_seconds


def groups(draw: np.random.Generator, cell: Cell) -> Made:
    """Groups that lie apart, as in the table of docs/choosing.md."""
    centres = draw.uniform(0.15, 0.85, size=(cell.k, cell.columns))
    return gaussians(draw, cell.size, centres, 0.04), centres


def zipf(draw: np.random.Generator, cell: Cell) -> Made:
    """The same in shares of 1, 1/2, 1/3 and so on."""
    centres = draw.uniform(0.15, 0.85, size=(cell.k, cell.columns))
    return gaussians(draw, cell.size, centres, 0.04, power_shares(cell.k, 1.0)), centres


def overlap(draw: np.random.Generator, cell: Cell) -> Made:
    """Groups three times as wide, which overlap."""
    return gaussians(draw, cell.size, draw.uniform(0.15, 0.85, size=(cell.k, cell.columns)), 0.12), None


def lognormal(draw: np.random.Generator, cell: Cell) -> Made:
    """No groups, but lognormal tails."""
    return draw.lognormal(0, 0.8, size=(cell.size, cell.columns)) / 20, None


def blobs(draw: np.random.Generator, cell: Cell) -> Made:
    """Centres uniform in two thirds of the box, a spread of a twentieth of theirs."""
    centres = draw.uniform(1 / 6, 5 / 6, size=(cell.k, cell.columns))
    return gaussians(draw, cell.size, centres, 1 / 30), centres


CELLS: tuple[Cell, ...] = (
    Cell("groups", 1_000, 4, 10, "1", groups),
    Cell("groups", 10_000, 4, 10, "0.1", groups),
    Cell("groups", 1_000, 4, 30, "1", groups),
    Cell("groups", 10_000, 4, 30, "0.1", groups),
    Cell("groups", 1_000, 4, 30, "3", groups),
    Cell("groups", 10_000, 4, 30, "0.3", groups),
    Cell("groups", 1_000, 4, 3, "0.1", groups),
    Cell("groups", 1_000, 32, 10, "1", groups),
    Cell("groups", 10_000, 32, 10, "0.1", groups),
    Cell("groups", 10_000, 32, 30, "0.1", groups),
    Cell("overlap", 10_000, 8, 30, "0.1", overlap),
    Cell("lognormal", 1_000, 8, 10, "1", lognormal),
    Cell("zipf", 10_000, 4, 10, "0.1", zipf),
    Cell("blobs", 20_000, 16, 64, "0.25", blobs),
    Cell("blobs", 20_000, 128, 64, "0.25", blobs),
)


@contextmanager
def exploring() -> Iterator[None]:
    """Plans for plenty of records, whatever their number."""
    with patch.object(summit_tuning, "PICTURE_BELOW", 0.0):
        yield


def mean_and_error(values: list[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    return statistics.fmean(values), statistics.stdev(values) / math.sqrt(len(values))


def table(cells: tuple[Cell, ...], runs: int, first: int, paired: bool) -> Iterator[dict[str, object]]:
    """A row for each cell; `paired` adds the plan for plenty of records on the same rows."""
    for cell in cells:
        found = [cell.run(first + run) for run in range(runs)]
        mean, error = mean_and_error([ratio for ratio, _ in found])
        row: dict[str, object] = {
            "data": cell.name,
            "rows": f"{cell.size:,} x {cell.columns}",
            "k": cell.k,
            "epsilon": cell.epsilon,
            "loss": f"{mean:.3f} +- {error:.3f}",
            "CPU seconds": f"{statistics.fmean(seconds for _, seconds in found):.2f}",
        }
        if paired:
            with exploring():
                before = [cell.run(first + run)[0] for run in range(runs)]
            row["exploring"] = "{:.3f} +- {:.3f}".format(*mean_and_error(before))
            gains = [ratio / old for (ratio, _), old in zip(found, before, strict=True)]
            row["quotient"] = "{:.3f} +- {:.3f}".format(*mean_and_error(gains))
        yield row


_RUNS = typer.Option(help="Datasets per cell.")
_FIRST = typer.Option(help="Seed of the first dataset.")
_PAIRED = typer.Option(help="Also the plan for plenty of records, on the same rows.")
_SWEEP = typer.Option(help="Groups over a range of epsilon instead of the table.")
_DATA = typer.Option(help="Only cells of this name and number of columns, such as `groups-32`.")


def main(
    runs: Annotated[int, _RUNS] = 20,
    first: Annotated[int, _FIRST] = 1000,
    paired: Annotated[bool, _PAIRED] = False,
    sweep: Annotated[bool, _SWEEP] = False,
    data: Annotated[str, _DATA] = "",
) -> None:
    """Print the loss over that of true or non-private centres: means and standard errors."""
    cells = CELLS
    if sweep:
        epsilons = ("0.3", "0.6", "1", "1.5", "2", "3", "4.5", "6")
        cells = tuple(Cell("groups", 1_000, d, 10, e, groups) for d in (4, 32) for e in epsilons)
    cells = tuple(cell for cell in cells if data in ("", f"{cell.name}-{cell.columns}"))
    print_table(f"means of {runs} runs", list(table(cells, runs, first, paired)))
