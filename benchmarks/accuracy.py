"""How much privacy costs: losses over non-private ones, `python -m benchmarks accuracy`.

The private run sees the same rows as the baseline, and gets k, epsilon, delta and the public bounds. Its
parameters are functions of those numbers; nothing is tuned here.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks.baselines import Baselines, loss
from benchmarks.datasets import DATASETS, Dataset, load
from benchmarks.measuring import RESULTS, print_table, read_csv, usage, write_csv
from core.algorithms import registry
from core.data import ArraySource
from core.plan import Request
from core.privacy import Budget

__all__ = ["main", "summarise"]


def delta_for(rule: str, size: int) -> float:
    """`N^-1.5` and the like with the public size, or a number."""
    if rule.startswith("N^"):
        return math.pow(size, float(rule[2:]))
    return float(rule)


def run_once(data: Dataset, request: Request) -> tuple[Any, dict[str, float]]:
    """One private clustering from the caller's array to released centres, and what it took."""
    with usage() as taken:
        plan = registry.plan(data.domain, request)
        found = registry.run(plan, ArraySource(data.domain, data.rows))
    return found, {"seconds": taken.seconds, "cpu_seconds": taken.cpu_seconds, "extra_mib": taken.extra_mib}


def measure(
    data: Dataset, request: Request, delta: str, runs: int, baseline: float
) -> list[dict[str, object]]:
    """Some runs of one cell of the table, one row each."""
    rows = []
    for run in range(runs):
        found, taken = run_once(data, request)
        lost = loss(data.rows, found.centres, request.objective)
        rows.append(
            {
                "dataset": data.name,
                "n": len(data.rows),
                "d": data.domain.dimension,
                "objective": request.objective,
                "k": request.clusters,
                "algorithm": request.algorithm,
                "epsilon": request.budget.epsilon_text,
                "delta": delta,
                "run": run,
                "loss": f"{lost:.9g}",
                "baseline": f"{baseline:.9g}",
                "ratio": f"{lost / baseline:.6f}",
                **{name: f"{value:.3f}" for name, value in taken.items()},
            }
        )
    return rows


def declared(data: Dataset, factor: float) -> Dataset:
    """The same rows under a public size that is wrong by this factor."""
    if factor == 1:
        return data
    size = max(round(len(data.rows) * factor), 1)
    return replace(data, name=f"{data.name}, N x {factor:g}", domain=replace(data.domain, size=size))


CELL = ("dataset", "n", "d", "objective", "k", "algorithm", "epsilon", "delta")


def summarise(rows: Sequence[dict[str, Any]]) -> list[dict[str, object]]:
    """One line per cell: mean ratio, two standard errors, their sum (which bars are set for), worst run."""
    cells: dict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        cells[tuple(str(row[name]) for name in CELL)].append(row)
    lines = []
    for cell, runs in cells.items():
        ratios = np.array([float(run["ratio"]) for run in runs])
        spread = 2 * ratios.std(ddof=1) / math.sqrt(len(ratios)) if len(ratios) > 1 else float("nan")
        lines.append(
            {
                **dict(zip(CELL, cell, strict=True)),
                "runs": len(ratios),
                "mean": f"{ratios.mean():.4f}",
                "± 2 s.e.": f"{spread:.4f}",
                "upper": f"{ratios.mean() + spread:.4f}",
                "worst": f"{ratios.max():.4f}",
                "seconds": f"{np.median([float(run['seconds']) for run in runs]):.2f}",
                "CPU s": f"{np.median([float(run['cpu_seconds']) for run in runs]):.2f}",
                "extra MiB": f"{max(float(run['extra_mib']) for run in runs):.0f}",
            }
        )
    return lines


def plot(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel per dataset and objective: ratio against epsilon, a line for each k and algorithm."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = list(dict.fromkeys((line["dataset"], line["objective"]) for line in lines))
    columns = min(3, len(panels))
    deep = math.ceil(len(panels) / columns)
    figure, axes = plt.subplots(deep, columns, figsize=(4.6 * columns, 3.4 * deep), squeeze=False)
    for axis, (name, objective) in zip(axes.flat, panels, strict=False):
        here = [line for line in lines if (line["dataset"], line["objective"]) == (name, objective)]
        algorithms = {line["algorithm"] for line in here}
        curves = dict.fromkeys((int(line["k"]), line["algorithm"]) for line in here)
        for k, algorithm in sorted(curves):
            points = sorted(
                (float(p["epsilon"]), float(p["mean"]), float(p["± 2 s.e."]), float(p["worst"]))
                for p in here
                if (int(p["k"]), p["algorithm"]) == (k, algorithm)
            )
            epsilons, means, spreads, worst = (np.array(column) for column in zip(*points, strict=True))
            label = f"k = {k}" + (f", {algorithm}" if len(algorithms) > 1 else "")
            (line,) = axis.plot(epsilons, means, marker="o", markersize=4, label=label)
            low, high = means - np.nan_to_num(spreads), means + np.nan_to_num(spreads)
            axis.fill_between(epsilons, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
            axis.plot(epsilons, worst, marker="v", linestyle="none", markersize=4, color=line.get_color())
        axis.plot([], [], marker="v", linestyle="none", markersize=4, color="grey", label="worst run")
        axis.axhline(1, color="grey", linewidth=0.8)
        axis.set_xscale("log")
        ticks = sorted({float(line["epsilon"]) for line in here})
        axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        axis.minorticks_off()
        highest = max(float(line["worst"]) for line in here)
        if highest > 3:
            axis.set_yscale("log")
            axis.set_yticks([tick for tick in (1, 2, 5, 10, 20, 50) if tick <= 2 * highest])
            axis.minorticks_off()
        else:  # differences below half a per cent are not worth a picture's height
            axis.set_ylim(min(0.995, axis.get_ylim()[0]), max(1.02, axis.get_ylim()[1]))
        axis.yaxis.set_major_formatter("{x:.4g}")
        axis.set_title(f"{name}, {here[0]['n']} x {here[0]['d']}, k-{objective}", fontsize=9)
        axis.set_xlabel("epsilon", fontsize=8)
        axis.set_ylabel("loss / non-private loss", fontsize=8)
        axis.tick_params(labelsize=8)
        axis.legend(loc="upper right", fontsize=8, frameon=False)
    for axis in axes.flat[len(panels) :]:
        axis.axis("off")
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def main(
    data: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(DATASETS)}, or a .npy file; repeat for several.")
    ] = None,
    k: Annotated[list[int] | None, typer.Option(help="Numbers of clusters; default: by dataset.")] = None,
    epsilon: Annotated[list[str] | None, typer.Option(help="Default: 1.")] = None,
    delta: Annotated[
        str, typer.Option(help="A number, or a power of the public size such as N^-1.5.")
    ] = "N^-1.5",
    runs: Annotated[int, typer.Option(help="Runs of each cell.")] = 10,
    algorithm: Annotated[list[str] | None, typer.Option(help="Names in the registry; default: auto.")] = None,
    objective: Annotated[str, typer.Option(help="means or medians.")] = "means",
    size_factor: Annotated[float, typer.Option(help="Public size over the real number of rows.")] = 1.0,
    bounds: Annotated[tuple[float, float] | None, typer.Option(help="LOW HIGH of a .npy file.")] = None,
    mnist: Annotated[Path | None, typer.Option(help="An .npz file with MNIST's `pixels`.")] = None,
    name: Annotated[str, typer.Option(help="Name of the CSV and PNG files.")] = "accuracy",
    results: Annotated[Path, typer.Option(help="Folder of results and of remembered baselines.")] = RESULTS,
    append: Annotated[bool, typer.Option(help="Keep the runs that the CSV file holds already.")] = False,
    replot: Annotated[bool, typer.Option(help="Only print and plot what the CSV file holds.")] = False,
) -> None:
    """Compare private with non-private losses; prints a table, keeps every run as CSV and plots a PNG."""
    path = results / f"{name}.csv"
    if not replot:
        baselines = Baselines(results / "baselines.csv")
        rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
        for chosen in data or ["blobs3"]:
            dataset = load(chosen, bounds, mnist)
            for clusters in k or dataset.clusters:
                reference = baselines.loss(dataset.name, dataset.rows, clusters, objective)
                known = declared(dataset, size_factor)
                for amount in epsilon or ["1"]:
                    budget = Budget.at_most(amount, delta_for(delta, known.domain.size))
                    for which in algorithm or ["auto"]:
                        request = Request(clusters, budget, objective, which)
                        rows += measure(known, request, delta, runs, reference)
                        write_csv(path, rows)  # a long campaign that is stopped keeps what it has
    lines = summarise(read_csv(path))
    print_table(f"loss over non-private k-{objective} on the same rows", lines)
    plot(lines, results / f"{name}.png")
