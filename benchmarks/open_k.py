"""One release for every k: its losses, estimates, intervals and made-up rows, `python -m benchmarks open_k`.

Each line compares one release to k-means without privacy, to a private run for that k alone with the whole
budget, and to private runs that share the budget between all k, on the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import diffprivlib
from benchmarks.accuracy import delta_for
from benchmarks.baselines import Baselines, loss
from benchmarks.datasets import Dataset, load
from benchmarks.measuring import RESULTS, print_table, read_csv, usage, write_csv
from benchmarks.open_k_figure import draw_losses
from benchmarks.open_k_scores import Floats, coverage, likeness, within_reach
from benchmarks.open_k_suggestions import MIXTURES, gap_statistic
from benchmarks.open_k_tables import SURVEY, TABLES, table_scores
from core.algorithms import registry
from core.algorithms.base import Clustering
from core.data import ArraySource
from core.plan import KRange, Request
from core.postprocessing.synopsis import Synopsis
from core.privacy import Budget

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)

Data = Annotated[list[str], typer.Option(help="Datasets, as in `accuracy`; repeat for several.")]
Clusters = Annotated[list[int] | None, typer.Option(help="Numbers of clusters; all by default.")]
Last = Annotated[int, typer.Option(help="The range of the release is from 1 to this.")]
Mnist = Annotated[Path | None, typer.Option(help="An .npz file with MNIST's `pixels`.")]
Runs = Annotated[int, typer.Option(help="Runs of each.")]
Append = Annotated[bool, typer.Option(help="Keep the runs that the CSV file holds already.")]


def release(
    data: Dataset, k: int | KRange, epsilon: str, parts: int = 1, algorithm: str = "auto"
) -> Clustering:
    """Run a plan with one of so many equal parts of the budget."""
    delta = delta_for("N^-1.5", data.domain.size)
    budget = Budget.at_most(f"{float(epsilon) / parts:.9f}", delta / parts)
    plan = registry.plan(data.domain, Request(k, budget, algorithm=algorithm))
    return registry.run(plan, ArraySource(data.domain, data.rows))


def synopsis(data: Dataset, last: int, epsilon: str) -> Synopsis:
    """One release for k from 1 to `last`."""
    found = release(data, KRange(1, last), epsilon).synopsis
    assert found is not None
    return found


@app.command()
def losses(
    data: Data,
    k: Clusters = None,
    direct: Annotated[list[int] | None, typer.Option(help="Also run these k by themselves.")] = None,
    last: Last = 32,
    epsilon: str = "1",
    runs: Runs = 3,
    mnist: Mnist = None,
    name: str = "open-k",
    append: Append = False,
    results: Path = RESULTS,
) -> None:
    """Losses for every k from one release, beside non-private k-means and direct private runs."""
    path = results / f"{name}.csv"
    rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
    baselines = Baselines(results / "baselines.csv")
    for chosen in data:
        dataset = load(chosen, None, mnist)
        for run in range(runs):
            with usage() as taken:
                found = synopsis(dataset, last, epsilon)
            within = within_reach(dataset.rows, found)
            like = likeness(dataset.rows, found.sample(len(found.rows)), np.random.default_rng(run))
            for clusters in k or range(2, last + 1):
                level = found.at(clusters)
                baseline = baselines.loss(dataset.name, dataset.rows, clusters, "means")
                alone: Floats | None = None
                if clusters in (direct or ()):
                    alone = release(dataset, clusters, epsilon).centres
                rows.append(
                    {
                        "dataset": chosen,
                        "k": clusters,
                        "run": run,
                        "loss": loss(dataset.rows, level.centres, "means") / baseline,
                        "direct": "" if alone is None else loss(dataset.rows, alone, "means") / baseline,
                        **coverage(dataset.rows, within, level),
                        "suggested": found.suggested,
                        "heavy": float(found.heavy_tailed),
                        **like,
                        "cpu": taken.cpu_seconds,
                    }
                )
            write_csv(path, rows)
    print_table("one release for every k", summarise(rows))


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, object]]:
    """Means over runs."""
    cells: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        cells[row["dataset"], row["k"]].append(row)
    numbers = [name for name in rows[0] if name not in ("dataset", "k", "run")]
    return [
        {"dataset": name, "k": k, "runs": len(runs)}
        | {number: _mean([run[number] for run in runs if run[number] != ""]) for number in numbers}
        for (name, k), runs in cells.items()
    ]


def _mean(values: list[Any]) -> str:
    return f"{np.mean([float(value) for value in values]):.3f}" if values else ""


@app.command()
def peers(
    data: Data,
    k: Clusters = None,
    last: Last = 32,
    epsilon: str = "1",
    runs: Runs = 2,
    mnist: Mnist = None,
    append: Append = False,
    results: Path = RESULTS,
) -> None:
    """Losses of a run for each k with its part of the budget: `summit`, `sulq` and diffprivlib's k-means."""
    path = results / "open-k-peers.csv"
    rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
    baselines = Baselines(results / "baselines.csv")
    for chosen in data:
        dataset = load(chosen, None, mnist)
        for clusters in k or range(2, last + 1):
            baseline = baselines.loss(dataset.name, dataset.rows, clusters, "means")
            for run in range(runs):
                for peer, centres in shared(dataset, clusters, epsilon, last - 1):
                    lost = loss(dataset.rows, centres, "means") / baseline
                    rows.append({"dataset": chosen, "k": clusters, "run": run, "peer": peer, "loss": lost})
            write_csv(path, rows)
    print_table("a run for each k with its part of the budget", rows)


def shared(data: Dataset, k: int, epsilon: str, parts: int) -> Iterator[tuple[str, Floats]]:
    """Centres of each peer with one of so many parts of the budget."""
    for name in ("auto", "sulq"):
        yield name, release(data, k, epsilon, parts, name).centres
    if diffprivlib.installed():
        domain = data.domain
        ends = (domain.low, domain.high) if domain.radius is None else (-domain.radius, domain.radius)
        low, high = (np.asarray(end, dtype=np.float64) for end in ends)
        yield "diffprivlib", diffprivlib.centres(data.rows, low, high, k, float(epsilon) / parts)


@app.command()
def figure(results: Path = RESULTS) -> None:
    """Draw what `losses` and `peers` have measured."""
    draw_losses(
        read_csv(results / "open-k.csv"), read_csv(results / "open-k-peers.csv"), results / "open-k.png"
    )


@app.command()
def suggestions(
    truth: Annotated[list[int] | None, typer.Option(help="True numbers of clusters.")] = None,
    mixture: Annotated[str, typer.Option(help=", ".join(MIXTURES))] = "separated",
    runs: Runs = 5,
    first: Annotated[int, typer.Option(help="Seed of the first run's rows; noise has none.")] = 0,
    epsilon: str = "1",
    gap: Annotated[bool, typer.Option(help="Also ask the gap statistic without privacy.")] = False,
    last: Last = 32,
    append: Append = False,
    results: Path = RESULTS,
) -> None:
    """How often the suggested k is within one of the truth."""
    path = results / "open-k-suggestions.csv"
    rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
    here: list[dict[str, Any]] = []
    for count in truth or (3, 8, 20):
        for seed in range(first, first + runs):
            made = MIXTURES[mixture].rows(count, seed)
            found = synopsis(made, last, epsilon)
            here.append(
                {
                    "mixture": mixture,
                    "truth": count,
                    "seed": seed,
                    "suggested": found.suggested,
                    "gap statistic": gap_statistic(made.rows, last, seed) if gap else "",
                    **coverage(made.rows, within_reach(made.rows, found), found.at(count)),
                }
            )
            write_csv(path, rows + here)
    print_table(f"suggested k, {mixture} clusters", [hits(here, count) for count in truth or (3, 8, 20)])


@app.command()
def tables(
    kind: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(TABLES)} (all by default), or {SURVEY}.")
    ] = None,
    truth: Annotated[list[int] | None, typer.Option(help="True numbers of clusters.")] = None,
    runs: Runs = 5,
    first: Annotated[int, typer.Option(help="Seed of the first run's table; noise has none.")] = 0,
    epsilon: str = "1",
    last: Last = 32,
    append: Append = False,
    results: Path = RESULTS,
) -> None:
    """Suggested k, intervals of sizes and made-up records of tables with columns of several kinds."""
    path = results / "open-k-tables.csv"
    rows: list[dict[str, Any]] = list(read_csv(path)) if append and path.exists() else []
    lines = []
    for name in kind or TABLES:
        for count in truth or (3, 5, 8):
            found = [table_scores(name, count, seed, last, epsilon) for seed in range(first, first + runs)]
            rows += found
            write_csv(path, rows)
            scores = [each for each in found[0] if each not in ("table", "truth", "seed", "suggested")]
            means = {score: _mean([row[score] for row in found if row[score] != ""]) for score in scores}
            lines.append({"table": name, **hits(found, count), **means})
    print_table("one release for every k of tables", lines)


def hits(rows: list[dict[str, Any]], truth: int) -> dict[str, object]:
    """Runs in which k is within one of the truth, and by which k they missed it."""
    here = [row for row in rows if row["truth"] == truth]
    line: dict[str, object] = {"truth": truth, "runs": len(here)}
    for name in ("suggested", "gap statistic"):
        found = [int(row[name]) for row in here if row.get(name, "") != ""]
        misses = sorted(k for k in found if abs(k - truth) > 1)
        line |= {name: len(found) - len(misses), f"{name}: misses": misses}
    return line
