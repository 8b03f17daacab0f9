"""What public rows bring on MNIST: `python -m benchmarks public_rows`, for docs/accuracy.md.

Every run takes other rows out of MNIST, calls them public, and clusters the rest. Rows from elsewhere are the
same rows changed: with their pixels moved, mirrored at a diagonal, mixed or inverted. A biased sample holds
those with most ink. The loss is divided by that of k-means without privacy on all of MNIST, times the share
of the rows that are clustered: public rows are so few that this is the loss on the rest to within 0.03%.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.accuracy import delta_for
from benchmarks.baselines import Baselines, loss
from benchmarks.datasets import Dataset, Floats, mnist
from benchmarks.measuring import RESULTS, print_table, read_csv, usage, write_csv
from benchmarks.modest import mean_and_error
from core.algorithms import registry
from core.algorithms.base import Clustering
from core.data import ArraySource, read_public_rows
from core.plan import Request
from core.privacy import Budget

__all__ = ["main", "summarise"]

_SIDE = 28
#: k, epsilon and the mean that was aimed for.
CELLS: tuple[tuple[int, str, float | None], ...] = (
    (64, "0.1", 1.30),
    (64, "1", 1.04),
    (10, "0.1", 1.055),
    (10, "1", None),
)


def _moved(pixels: int) -> Callable[[Floats], Floats]:
    def move(rows: Floats) -> Floats:
        return np.roll(rows.reshape(-1, _SIDE, _SIDE), pixels, axis=2).reshape(rows.shape)

    return move


def _mirrored(rows: Floats) -> Floats:
    return rows.reshape(-1, _SIDE, _SIDE).transpose(0, 2, 1).reshape(rows.shape)


def _mixed(rows: Floats) -> Floats:
    order = np.random.default_rng(0).permutation(rows.shape[1])
    return np.ascontiguousarray(rows[:, order])


def _boldest(rows: Floats) -> Floats:
    """Half of the rows, those with most ink: a sample of the same kind, but a biased one."""
    return rows[np.argsort(-rows.sum(axis=1))[: len(rows) // 2]]


#: Kinds of public rows: how many are taken out, and what is made of them.
KINDS: dict[str, tuple[int, Callable[[Floats], Floats]]] = {
    "none": (0, lambda rows: rows),
    "500": (500, lambda rows: rows),
    "100": (100, lambda rows: rows),
    "2000": (2000, lambda rows: rows),
    "500, moved by 1": (500, _moved(1)),
    "500, moved by 2": (500, _moved(2)),
    "500, mirrored": (500, _mirrored),
    "500, mixed": (500, _mixed),
    "500, inverted": (500, lambda rows: 1 - rows),
    "500, bold": (1000, _boldest),
}


def measured(data: Dataset, kind: str, k: int, epsilon: str, seed: int, baseline: float) -> dict[str, object]:
    """One run, with the public rows of this seed."""
    count, change = KINDS[kind]
    order = np.random.default_rng(seed).permutation(len(data.rows))
    held, rest = order[:count], np.sort(order[count:])
    public = read_public_rows(data.domain, change(data.rows[held])) if count else None
    rows, budget = data.rows[rest], Budget.at_most(epsilon, delta_for("N^-1.5", data.domain.size))
    source = ArraySource(data.domain, rows)
    with usage() as taken:
        found = registry.run(registry.plan(data.domain, Request(k, budget, public_rows=public)), source)
    ratio = loss(rows, found.centres, "means") / (baseline * len(rows) / len(data.rows))
    shown = {"kind": kind, "k": k, "epsilon": epsilon, "seed": seed, "taken": int(_were_taken(found))}
    return {**shown, "ratio": f"{ratio:.6f}", "cpu": f"{taken.cpu_seconds:.3f}"}


def _were_taken(found: Clustering) -> bool:
    """Whether sums were measured in place of second moments."""
    return any(each.step == "moments" and each.values.shape == found.centres.shape for each in found.releases)


def summarise(runs: Sequence[dict[str, str]]) -> list[dict[str, object]]:
    """A line for each kind of public rows and each cell."""
    cells: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for run in runs:
        cells[run["kind"], run["k"], run["epsilon"]].append(run)
    lines: list[dict[str, object]] = []
    bars = {(str(k), epsilon): bar for k, epsilon, bar in CELLS}
    for (kind, k, epsilon), found in cells.items():
        mean, error = mean_and_error([float(run["ratio"]) for run in found])
        bar = bars.get((k, epsilon)) if kind == "500" else None
        lines.append(
            {
                "public rows": kind,
                "k": k,
                "epsilon": epsilon,
                "runs": len(found),
                "taken": sum(int(run["taken"]) for run in found),
                "loss": f"{mean:.4f} ± {error:.4f}",
                "worst": f"{max(float(run['ratio']) for run in found):.4f}",
                "bar": "" if bar is None else f"{bar:g}",
                "met": "" if bar is None else "yes" if mean < bar + error else "no",
                "CPU seconds": f"{statistics.median(float(run['cpu']) for run in found):.2f}",
            }
        )
    return lines


def main(
    runs: Annotated[int, typer.Option(help="Runs of each line.")] = 20,
    first: Annotated[int, typer.Option(help="Seed of the first choice of public rows.")] = 1000,
    only: Annotated[str, typer.Option(help="Only kinds of public rows such as `500*`.")] = "*",
    cells: Annotated[str, typer.Option(help="Only k and epsilon such as `64-*`.")] = "*",
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
    append: Annotated[bool, typer.Option(help="Keep the runs that the CSV file holds already.")] = False,
    reprint: Annotated[bool, typer.Option(help="Only print what the CSV file holds.")] = False,
) -> None:
    """Print the loss on MNIST with and without public rows, and with rows from elsewhere."""
    path = results / "public_rows.csv"
    if not reprint:
        data, known = mnist(), Baselines(RESULTS / "baselines.csv")
        lines: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
        for kind in (kind for kind in KINDS if fnmatch(kind, only)):
            for k, epsilon, _ in (cell for cell in CELLS if fnmatch(f"{cell[0]}-{cell[1]}", cells)):
                baseline = known.loss("mnist", data.rows, k, "means")
                for seed in range(first, first + runs):
                    lines.append(measured(data, kind, k, epsilon, seed, baseline))
                    write_csv(path, lines)  # a long campaign that is stopped keeps what it has
    print_table("loss over that of k-means without privacy", summarise(read_csv(path)))
