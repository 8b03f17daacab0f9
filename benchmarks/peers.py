"""Cairn beside other private k-means on the same rows: `python -m benchmarks peers`, for docs/comparison.md.

All get the same rows, bounds and epsilon. Those marked pure spend no delta. The loss is divided by that of
scikit-learn's k-means on the same rows. Every run is a line of a CSV file, from which a table is printed and
a picture is drawn. A run replaces the line of the same cell, method and seed; other lines are kept.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer
from sklearn import datasets as bundled

from benchmarks import diffprivlib
from benchmarks.baselines import k_means, loss
from benchmarks.datasets import gaussians
from benchmarks.document import rewrite_table
from benchmarks.measuring import RESULTS, Lines, print_table, usage
from benchmarks.modest import mean_and_error
from core.algorithms import registry
from core.data import ArraySource, Dense
from core.plan import Request
from core.privacy import Budget, default_delta

__all__ = ["CELLS", "METHODS", "Cell", "cairn", "main", "stated", "summarise"]

Floats = npt.NDArray[np.float64]
EPSILONS = ("0.1", "0.25", "1", "3")


@dataclass(frozen=True)
class Cell:
    """Rows between 0 and 1 and the number of clusters that is asked of them."""

    name: str
    size: int
    columns: int
    k: int
    make: Callable[[Cell, np.random.Generator], Floats]

    @property
    def label(self) -> str:
        """Such as `groups-1000x4-k10`; patterns of the command match it."""
        return f"{self.name}-{self.size}x{self.columns}-k{self.k}"

    @property
    def domain(self) -> Dense:
        """What is public about the rows."""
        return Dense.box(0.0, 1.0, dimension=self.columns, size=self.size)


def _about(spread: float, cell: Cell, draw: np.random.Generator) -> Floats:
    """Rows about centres that are uniform in the middle of the box; fresh for every seed."""
    centres = draw.uniform(0.15, 0.85, size=(cell.k, cell.columns))
    return np.clip(gaussians(draw, cell.size, centres, spread), 0.0, 1.0)


#: Bounds of tables whose columns have one unit: centimetres, and pixels of four bits.
_ONE_UNIT = {"iris": 8.0, "digits": 16.0}


def _bundled(cell: Cell, draw: np.random.Generator) -> Floats:
    """A table that ships with scikit-learn: the same rows in every run, divided by bounds taken as public.

    Where columns have units of their own, bounds are the next of 1, 2, 5, 10, 20, ... above what they hold.
    """
    rows = getattr(bundled, f"load_{cell.name}")().data
    if cell.name in _ONE_UNIT:
        return np.asarray(rows / _ONE_UNIT[cell.name], dtype=np.float64)
    largest = rows.max(axis=0)
    tens = 10.0 ** np.floor(np.log10(largest))
    steps = np.stack([tens, 2 * tens, 5 * tens, 10 * tens])
    return np.asarray(rows / np.where(steps >= largest, steps, np.inf).min(axis=0), dtype=np.float64)


groups, overlap = partial(_about, 0.04), partial(_about, 0.12)

CELLS: tuple[Cell, ...] = (
    Cell("groups", 1_000, 2, 4, groups),
    Cell("groups", 1_000, 4, 16, groups),
    Cell("groups", 10_000, 4, 16, groups),
    Cell("groups", 10_000, 16, 16, groups),
    Cell("groups", 10_000, 128, 4, groups),
    Cell("groups", 20_000, 16, 64, groups),
    Cell("groups", 100_000, 4, 16, groups),
    Cell("groups", 100_000, 32, 16, groups),
    Cell("overlap", 10_000, 8, 16, overlap),
    Cell("iris", 150, 4, 3, _bundled),
    Cell("wine", 178, 13, 3, _bundled),
    Cell("breast_cancer", 569, 30, 2, _bundled),
    Cell("digits", 1_797, 64, 10, _bundled),
)


@dataclass(frozen=True)
class Method:
    """A way to cluster: from rows, what is public about them, k and epsilon to centres."""

    name: str
    cluster: Callable[[Floats, Dense, int, str], Floats]
    serves: Callable[[Cell], bool] = lambda cell: True


def cairn(rows: Floats, domain: Dense, request: Request) -> Floats:
    """Centres that the library releases."""
    return registry.run(registry.plan(domain, request), ArraySource(domain, rows)).centres


def _house(rows: Floats, domain: Dense, k: int, epsilon: str) -> Floats:
    return cairn(rows, domain, Request(k, Budget.at_most(epsilon, default_delta(domain.size))))


def _pure(algorithm: str, rows: Floats, domain: Dense, k: int, epsilon: str) -> Floats:
    return cairn(rows, domain, Request(k, Budget.at_most(epsilon, 0), "means", algorithm))


def _diffprivlib(rows: Floats, domain: Dense, k: int, epsilon: str) -> Floats:
    return diffprivlib.centres(rows, 0.0, 1.0, k, float(epsilon))


METHODS: tuple[Method, ...] = (
    Method("Cairn", _house),
    Method("Cairn, pure", partial(_pure, "auto")),
    Method("diffprivlib", _diffprivlib),
    Method("sulq, pure", partial(_pure, "sulq")),
    Method("grid, pure", partial(_pure, "grid"), lambda cell: cell.columns <= 4),
)


def measured(cell: Cell, methods: Sequence[Method], seed: int) -> Iterator[dict[str, object]]:
    """Every method at every epsilon on the rows of one seed."""
    rows = cell.make(cell, np.random.default_rng(seed))
    baseline = loss(rows, k_means(rows, cell.k), "means")
    for epsilon in EPSILONS:
        for method in methods:
            if method.serves(cell):
                with usage() as taken:
                    centres = method.cluster(rows, cell.domain, cell.k, epsilon)
                ratio = loss(rows, centres, "means") / baseline
                where = {"cell": cell.label, "epsilon": epsilon, "method": method.name, "seed": seed}
                yield {**where, "ratio": f"{ratio:.5f}", "cpu": f"{taken.cpu_seconds:.3f}"}


def stated(values: Sequence[float]) -> str:
    """The mean with its standard error, to as many digits as that leaves of use; a dash if there is none."""
    if not values:
        return "-"
    mean, error = mean_and_error(values)
    digits = 0 if mean >= 100 else 1 if mean >= 10 else 2 if mean >= 1.1 else 3
    return f"{mean:.{digits}f} ± {error:.{digits}f}" if math.isfinite(error) else f"{mean:.{digits}f}"


def _ratios(lines: Sequence[dict[str, str]]) -> dict[tuple[str, str, str], list[float]]:
    """Losses by cell, epsilon and method."""
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for line in lines:
        found[line["cell"], line["epsilon"], line["method"]].append(float(line["ratio"]))
    return found


def summarise(lines: Sequence[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each cell and epsilon that has runs: means and standard errors of all methods."""
    ratios = _ratios(lines)
    return [
        {"data": cell.name, "rows": f"{cell.size:,} x {cell.columns}", "k": cell.k, "epsilon": epsilon}
        | {method.name: stated(ratios.get((cell.label, epsilon, method.name), [])) for method in METHODS}
        for cell in CELLS
        for epsilon in EPSILONS
        if any((cell.label, epsilon, method.name) in ratios for method in METHODS)
    ]


def draw(lines: Sequence[dict[str, str]], path: Path) -> None:
    """A panel for each cell: losses against epsilon, a curve for each method, bars of one standard error."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    ratios = _ratios(lines)
    cells = [cell for cell in CELLS if any(cell.label == label for label, _, _ in ratios)]
    columns = min(4, len(cells))
    height = math.ceil(len(cells) / columns)
    picture, panels = pyplot.subplots(height, columns, figsize=(3.2 * columns, 2.7 * height), squeeze=False)
    for axes, cell in zip(panels.flat, cells, strict=False):
        for colour, method in enumerate(METHODS):
            found = [(e, ratios[cell.label, e, method.name]) for e in EPSILONS]
            points = [(float(e), *mean_and_error(values)) for e, values in found if values]
            if points:
                epsilons, means, errors = zip(*points, strict=True)
                bars = np.nan_to_num(np.array(errors))
                style: dict[str, Any] = {"marker": "o", "markersize": 3, "capsize": 2, "color": f"C{colour}"}
                axes.errorbar(epsilons, means, bars, label=method.name, **style)
        axes.axhline(1, color="grey", linewidth=0.8)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks([float(e) for e in EPSILONS], EPSILONS, fontsize=8)
        axes.tick_params(axis="y", which="both", labelsize=7)
        axes.minorticks_off()
        low, high = max(0.8, axes.get_ylim()[0]), axes.get_ylim()[1]
        axes.set_ylim(low, high)
        fine = (1, 1.2, 1.5, 2, 3, 5, 7) if high < 10 else (1, 2, 5, 10, 20, 50, 100, 200)
        ticks = [tick for tick in fine if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_title(f"{cell.name}, {cell.size:,} x {cell.columns}, k = {cell.k}", fontsize=8)
    for axes in panels.flat[len(cells) :]:
        axes.axis("off")
    handles, names = panels.flat[0].get_legend_handles_labels()
    picture.legend(handles, names, loc="lower right", fontsize=11, frameon=False)
    picture.supxlabel("epsilon", fontsize=9)
    picture.supylabel("loss over that of k-means without privacy", fontsize=9)
    picture.tight_layout()
    picture.savefig(path, dpi=100)
    pyplot.close(picture)


def main(
    runs: Annotated[int, typer.Option(help="Runs of each cell.")] = 5,
    first: Annotated[int, typer.Option(help="Seed of the first rows.")] = 0,
    only: Annotated[str, typer.Option(help="Only cells such as `groups-*x4-*`.")] = "*",
    method: Annotated[list[str] | None, typer.Option(help="Names of methods; all by default.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file and of the picture.")] = RESULTS,
    page: Annotated[Path | None, typer.Option(help="Markdown page whose table is rewritten.")] = None,
    replot: Annotated[bool, typer.Option(help="Only print and draw what the CSV file holds.")] = False,
) -> None:
    """Print the losses of Cairn and of other private k-means over that of k-means without privacy."""
    path = results / "peers.csv"
    chosen = [one for one in METHODS if not method or one.name in method]
    if not diffprivlib.installed():
        print("diffprivlib is not installed: its runs are left as they are (`pip install diffprivlib`).")
        chosen = [one for one in chosen if one.name != "diffprivlib"]
    seeds = range(first, first + (0 if replot else runs))
    lines = Lines(path, ("cell", "epsilon", "method", "seed"))
    for seed in seeds:  # a campaign that is stopped has about as many runs of every cell
        for cell in CELLS:
            if fnmatch(cell.label, only):
                lines.add(measured(cell, chosen, seed))
    table = summarise(lines.rows)
    print_table("loss over that of k-means without privacy", table)
    draw(lines.rows, results / "peers.png")
    if page:
        rewrite_table(page, "peers", table)
