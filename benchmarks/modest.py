"""Modest data and small epsilon: `python -m benchmarks modest`, for docs/accuracy.md.

Made-up rows are fresh in every run; MNIST, `blobs` and the datasets of `datasets.py` are always the same,
under fresh noise. The loss of the private centres is divided by that of the true ones or, where clusters
overlap, of k-means without privacy. Every run is a line of a CSV file; a table of means is printed from it.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.accuracy import delta_for
from benchmarks.baselines import Baselines, k_means, loss
from benchmarks.datasets import Dataset, gaussians, load, pe_blobs, power_shares
from benchmarks.measuring import RESULTS, print_table, read_csv, usage, write_csv
from core.algorithms import registry
from core.algorithms.summit import few_records, regime_for
from core.data import ArraySource, Dense
from core.plan import Request
from core.privacy import Budget, default_delta

__all__ = ["main"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Made:
    """Rows with what is public about them, and the loss that a private one is divided by."""

    rows: Floats
    domain: Dense
    baseline: float

    def loss_of(self, centres: Floats) -> float:
        """The loss over that of the baseline."""
        return loss(self.rows, centres, "means") / self.baseline


@dataclass(frozen=True)
class Cell:
    """A row of the table: what is asked of how many rows, and the mean loss that was aimed for."""

    name: str
    size: int
    columns: int
    k: int
    epsilon: str
    make: Callable[[Cell, np.random.Generator], Made]
    bar: float | None = None
    #: A power of the public size; by default that of a service.
    delta: str = ""

    @property
    def label(self) -> str:
        """Such as `groups-1000x4-k10-e0.3`; patterns of the command match it."""
        return f"{self.name}-{self.size}x{self.columns}-k{self.k}-e{self.epsilon}"

    @property
    def request(self) -> Request:
        delta = delta_for(self.delta, self.size) if self.delta else default_delta(self.size)
        return Request(self.k, Budget.at_most(self.epsilon, delta))

    @property
    def has_few_records(self) -> bool:
        """Whether rows in a box would be planned for as few records; otherwise both plans are the same."""
        domain = Dense.box(0.0, 1.0, dimension=self.columns, size=self.size)
        return isinstance(regime_for(domain, self.request), few_records.FewRecords)

    def run(self, seed: int) -> tuple[float, float]:
        """The loss over that of the baseline, and seconds of a core; rows anew for every seed."""
        made = self.make(self, np.random.default_rng(seed))
        with usage() as taken:
            centres = self.centres(made)
        return made.loss_of(centres), taken.cpu_seconds

    def centres(self, made: Made) -> Floats:
        """Private centres of these rows."""
        plan = registry.plan(made.domain, self.request)
        return registry.run(plan, ArraySource(made.domain, made.rows)).centres


def in_box(cell: Cell, rows: Floats, centres: Floats | None) -> Made:
    """Rows between 0 and 1, compared with these centres or with those of k-means."""
    rows = np.clip(rows, 0.0, 1.0)
    domain = Dense.box(0.0, 1.0, dimension=cell.columns, size=cell.size)
    best = k_means(rows, cell.k) if centres is None else centres
    return Made(rows, domain, loss(rows, best, "means"))


def _uniform_centres(cell: Cell, draw: np.random.Generator, margin: float = 0.15) -> Floats:
    return draw.uniform(margin, 1 - margin, size=(cell.k, cell.columns))


def groups(cell: Cell, draw: np.random.Generator) -> Made:
    """Groups that lie apart, as in the table of docs/choosing.md."""
    centres = _uniform_centres(cell, draw)
    return in_box(cell, gaussians(draw, cell.size, centres, 0.04), centres)


def shares(cell: Cell, draw: np.random.Generator) -> Made:
    """The same in shares of 1, 1/2, 1/3 and so on."""
    centres = _uniform_centres(cell, draw)
    return in_box(cell, gaussians(draw, cell.size, centres, 0.04, power_shares(cell.k, 1.0)), centres)


def overlap(cell: Cell, draw: np.random.Generator) -> Made:
    """Groups three times as wide, which overlap."""
    return in_box(cell, gaussians(draw, cell.size, _uniform_centres(cell, draw), 0.12), None)


def lognormal(cell: Cell, draw: np.random.Generator) -> Made:
    """Groups with lognormal tails to both sides of their centres."""
    centres, shape = _uniform_centres(cell, draw), (cell.size, cell.columns)
    tails = 0.04 * draw.lognormal(0, 0.8, size=shape) * draw.choice([-1.0, 1.0], size=shape)
    return in_box(cell, centres[draw.integers(cell.k, size=cell.size)] + tails, None)


def skewed(cell: Cell, draw: np.random.Generator) -> Made:
    """No groups: every column is lognormal."""
    return in_box(cell, draw.lognormal(0, 0.8, size=(cell.size, cell.columns)) / 20, None)


def blobs(cell: Cell, draw: np.random.Generator) -> Made:
    """Those of PE-means' table: the same rows in every run, in a ball that just holds them."""
    rows = pe_blobs(cell.size, cell.columns, cell.k)
    baseline = Baselines(RESULTS / "baselines.csv").loss(cell.label, rows, cell.k, "means")
    return Made(rows, Dense.ball(1.0, dimension=cell.columns, size=cell.size), baseline)


@cache
def _stored(name: str) -> Dataset:
    return load(name)


def stored(cell: Cell, draw: np.random.Generator) -> Made:
    """A dataset of `datasets.py`: the same rows in every run."""
    data = _stored(cell.name)
    baseline = Baselines(RESULTS / "baselines.csv").loss(cell.name, data.rows, cell.k, "means")
    return Made(data.rows, data.domain, baseline)


def _mnist(k: int, epsilon: str, bar: float) -> Cell:
    return Cell("mnist", 60_000, 784, k, epsilon, stored, bar, "N^-1.5")


CELLS: tuple[Cell, ...] = (
    Cell("groups", 1_000, 4, 10, "1", groups, 1.2),
    Cell("groups", 10_000, 4, 10, "0.1", groups, 1.2),
    Cell("groups", 1_000, 4, 30, "1", groups, 2.3),
    Cell("groups", 10_000, 4, 30, "0.1", groups, 2.2),
    Cell("groups", 1_000, 4, 30, "3", groups, 1.3),
    Cell("groups", 10_000, 4, 30, "0.3", groups, 1.25),
    Cell("groups", 1_000, 4, 3, "0.1", groups, 4.0),
    Cell("groups", 1_000, 32, 10, "1", groups, 1.9),
    Cell("groups", 10_000, 32, 10, "0.1", groups, 1.4),
    Cell("groups", 10_000, 32, 30, "0.1", groups, 11.0),
    Cell("overlap", 10_000, 8, 30, "0.1", overlap, 1.7),
    Cell("lognormal", 1_000, 8, 10, "1", lognormal, 1.18),
    Cell("skewed", 1_000, 8, 10, "1", skewed),
    Cell("shares", 10_000, 4, 10, "0.1", shares, 1.6),
    _mnist(64, "0.1", 1.34),
    _mnist(64, "1", 1.045),
    _mnist(10, "0.1", 1.07),
    Cell("blobs", 20_000, 16, 64, "0.25", blobs, 1.8, "N^-1.1"),
    Cell("blobs", 20_000, 128, 64, "0.25", blobs, 9.0, "N^-1.1"),
    Cell("tails", 50_000, 3, 8, "1", stored, 1.4, "N^-1.5"),
    Cell("zipf", 100_000, 6, 30, "1", stored, 1.18, "N^-1.5"),
    Cell("mnist", 60_000, 784, 10, "1", stored, 1.25, "0"),
)

#: Records * epsilon / k at which both plans are compared, by k; from beyond the last on they are the same.
SWEEP_AT = {
    3: (10, 30, 60, 98, 115),
    10: (3, 10, 22, 30, 60, 98, 115, 128),
    30: (3, 10, 22, 30, 60, 98, 115, 128),
    100: (10, 30, 60, 80),
}

SWEEP: tuple[Cell, ...] = tuple(
    Cell(make.__name__, size, columns, k, f"{wanted * k / size:.3g}", make)
    for make, size, columns, k in (
        *((groups, 1_000, columns, 3) for columns in (4, 32)),
        *((groups, 1_000, columns, 10) for columns in (2, 4, 8, 32)),
        *((groups, 3_000, columns, 30) for columns in (2, 4, 32)),
        (groups, 10_000, 4, 30),
        (groups, 5_000, 4, 100),
        (groups, 2_000, 64, 10),
        (overlap, 1_000, 8, 10),
        (overlap, 3_000, 8, 30),
        (overlap, 3_000, 32, 30),
        (shares, 2_000, 4, 10),
        (lognormal, 1_000, 8, 10),
        (lognormal, 3_000, 8, 30),
    )
    for wanted in SWEEP_AT[k]
)


@contextmanager
def exploring() -> Iterator[None]:
    """Plans for plenty of records, whatever their number."""
    with patch.object(few_records, "MOST_PER_CENTRE", 0.0):
        yield


def mean_and_error(values: Sequence[float]) -> tuple[float, float]:
    """The mean and its standard error."""
    error = statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else math.nan
    return statistics.fmean(values), error


def quotient(pairs: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The mean of the first of each pair over that of the second, and its standard error.

    A mean of quotients would be above one even where both are alike.
    """
    first, second = (statistics.fmean(values) for values in zip(*pairs, strict=True))
    differences = [new - first / second * old for new, old in pairs]
    return first / second, mean_and_error(differences)[1] / second


def _stated(values: Sequence[float]) -> str:
    """The mean with its standard error, or nothing where there are no values."""
    if not values:
        return ""
    mean, error = mean_and_error(values)
    return f"{mean:.3f} ± {error:.3f}"


def measured(cell: Cell, seed: int, paired: bool) -> dict[str, object]:
    """One run of a cell; `paired` adds the plan for plenty of records on the same rows."""
    ratio, seconds = cell.run(seed)
    with exploring() if paired else nullcontext():
        before = f"{cell.run(seed)[0]:.6f}" if paired else ""
    taken = f"{seconds:.3f}"
    return {"cell": cell.label, "seed": seed, "ratio": f"{ratio:.6f}", "exploring": before, "cpu": taken}


def summarise(runs: Sequence[dict[str, str]], cells: Sequence[Cell]) -> list[dict[str, object]]:
    """A line for each cell that has runs: means and standard errors, the bar, and whether it is met.

    A bar counts as met where the mean is below it plus one standard error.
    """
    by_cell: dict[str, list[dict[str, str]]] = defaultdict(list)
    for run in runs:
        by_cell[run["cell"]].append(run)
    lines: list[dict[str, object]] = []
    for cell in cells:
        found = by_cell[cell.label]
        if not found:
            continue
        mean, error = mean_and_error([float(run["ratio"]) for run in found])
        pairs = [(float(run["ratio"]), float(run["exploring"])) for run in found if run["exploring"]]
        line: dict[str, object] = {
            "data": cell.name + (", pure" if cell.delta == "0" else ""),
            "rows": f"{cell.size:,} x {cell.columns}",
            "k": cell.k,
            "epsilon": cell.epsilon,
            "runs": len(found),
            "loss": _stated([float(run["ratio"]) for run in found]),
            "bar": "" if cell.bar is None else f"{cell.bar:g}",
            "met": "" if cell.bar is None else "yes" if mean < cell.bar + error else "no",
            "CPU seconds": f"{statistics.median(float(run['cpu']) for run in found):.2f}",
            "exploring": _stated([old for _, old in pairs]),
            "quotient": "{:.3f} ± {:.3f}".format(*quotient(pairs)) if len(pairs) > 1 else "",
        }
        lines.append(line)
    return lines


def main(
    runs: Annotated[int, typer.Option(help="Runs of each cell.")] = 20,
    first: Annotated[int, typer.Option(help="Seed of the first dataset.")] = 1000,
    paired: Annotated[bool, typer.Option(help="Also plan for plenty of records, on the same rows.")] = False,
    sweep: Annotated[bool, typer.Option(help="Groups over a range of epsilon instead of the table.")] = False,
    only: Annotated[str, typer.Option(help="Only cells such as `groups-*x4-k30-*`.")] = "*",
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    append: Annotated[bool, typer.Option(help="Keep the runs that the CSV file holds already.")] = False,
    reprint: Annotated[bool, typer.Option(help="Only print what the CSV file holds.")] = False,
) -> None:
    """Print the loss over that of true or non-private centres beside what was aimed for."""
    every = tuple(cell for cell in SWEEP if cell.has_few_records) if sweep else CELLS
    path = results / ("modest-sweep.csv" if sweep else "modest.csv")
    if not reprint:
        rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
        for seed in range(first, first + runs):
            for cell in every:
                if fnmatch(cell.label, only):
                    rows.append(measured(cell, seed, paired))
                    write_csv(path, rows)  # a long campaign that is stopped keeps what it has
    print_table("loss over that of true or non-private centres", summarise(read_csv(path), every))
