"""One release for every k: its losses, estimates, intervals and made-up rows, `python -m benchmarks open_k`.

Each line compares one release to runs without privacy, to a private run for that k alone with the whole
budget, and to private runs that share the budget between all k, on the same rows.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from benchmarks.accuracy import delta_for
from benchmarks.baselines import Baselines, loss
from benchmarks.datasets import Dataset, gaussians, load, power_shares
from benchmarks.measuring import RESULTS, print_table, usage, write_csv
from core.algorithms import registry
from core.algorithms.base import Clustering
from core.data import ArraySource, Dense
from core.plan import KRange, Request
from core.postprocessing.synopsis import Level, Synopsis
from core.privacy import Budget

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True)
Floats = npt.NDArray[np.float64]
NOT_RUN = float("nan")


def release(
    data: Dataset, k: int | KRange, epsilon: str, parts: int = 1, algorithm: str = "auto"
) -> Clustering:
    """Run a plan with one of so many equal parts of the budget."""
    delta = delta_for("N^-1.5", data.domain.size)
    budget = Budget.at_most(f"{float(epsilon) / parts:.9f}", delta / parts)
    plan = registry.plan(data.domain, Request(k, budget, algorithm=algorithm))
    return registry.run(plan, ArraySource(data.domain, data.rows))


def excess(data: Dataset, k: int, epsilon: str, parts: int, algorithm: str, baseline: float) -> float:
    """Loss of a private run for one k, over that of the baseline."""
    centres = release(data, k, epsilon, parts, algorithm).centres
    return loss(data.rows, centres, "means") / baseline


def nearest(rows: Floats, centres: Floats) -> npt.NDArray[np.int64]:
    blocks = np.array_split(rows, max(1, len(rows) // 20_000))
    return np.concatenate([((centres**2).sum(axis=1) - 2 * b @ centres.T).argmin(axis=1) for b in blocks])


def squared(rows: Floats, centres: Floats) -> Floats:
    """Squared distances to the nearest centre."""
    distances: Floats = ((rows - centres[nearest(rows, centres)]) ** 2).sum(axis=1)
    return distances


def scores(data: Dataset, found: Synopsis, level: Level) -> dict[str, float]:
    """Coverage of the level's intervals, and widths beside what noise alone would need."""
    labels = nearest(data.rows, level.centres)
    sizes = np.bincount(labels, minlength=level.k)
    sums = np.stack([np.bincount(labels, column, minlength=level.k) for column in data.rows.T], axis=1)
    means = np.where(sizes[:, None] > 0, sums / np.maximum(sizes, 1)[:, None], level.centres)
    lost = squared(data.rows, level.centres)
    true = float(lost[squared(data.rows, found.anchors) <= found.reach**2].mean())
    half = (level.centre_high - level.centre_low) / 2
    return {
        "estimate / true": level.loss.value / true,
        "of all": true / float(lost.mean()),
        "loss covered": float(level.loss.low <= true <= level.loss.high),
        "loss width": (level.loss.high - level.loss.low) / 2 / true,
        "sizes covered": float(np.mean((level.size_low <= sizes) & (sizes <= level.size_high))),
        "size off": float(np.sqrt(np.mean((level.sizes - sizes) ** 2))),
        "size half": float(np.mean(level.size_high - level.size_low) / 2),
        "means covered": float(np.mean((level.centre_low <= means) & (means <= level.centre_high))),
        "width / error": float(
            np.sqrt((half**2).mean()) / max(np.sqrt(((level.centres - means) ** 2).mean()), 1e-12) / 1.96
        ),
    }


def total_variation(rows: Floats, made_up: Floats, draw: np.random.Generator) -> tuple[float, float]:
    """Of marginals and of random projections, in 20 bins between the rows' extremes; means over them."""

    def distance(a: Floats, b: Floats) -> float:
        edges = np.linspace(min(a.min(), b.min()), max(a.max(), b.max()) + 1e-9, 21)
        here, there = np.histogram(a, edges)[0] / len(a), np.histogram(b, edges)[0] / len(b)
        return float(np.abs(here - there).sum() / 2)

    ways = draw.normal(size=(rows.shape[1], 20))
    columns = range(0, rows.shape[1], max(1, rows.shape[1] // 50))
    marginals = np.mean([distance(rows[:, c], made_up[:, c]) for c in columns])
    return float(marginals), float(np.mean([distance(rows @ way, made_up @ way) for way in ways.T]))


@app.command()
def losses(
    data: Annotated[list[str], typer.Option(help="Datasets, as in `accuracy`; repeat for several.")],
    k: Annotated[list[int] | None, typer.Option(help="Numbers of clusters to score.")] = None,
    last: Annotated[int, typer.Option(help="The range of the release is from 1 to this.")] = 32,
    epsilon: str = "1",
    runs: int = 3,
    direct: Annotated[bool, typer.Option(help="Also run each k by itself.")] = True,
    split: Annotated[bool, typer.Option(help="Also run each k with its part of a budget for all.")] = True,
    mnist: Annotated[Path | None, typer.Option(help="An .npz file with MNIST's `pixels`.")] = None,
    name: str = "open-k",
    results: Path = RESULTS,
) -> None:
    """Losses for every k from one release, beside non-private k-means and direct private runs."""
    rows: list[dict[str, Any]] = []
    baselines = Baselines(results / "baselines.csv")
    for chosen in data:
        dataset = load(chosen, None, mnist)
        for run in range(runs):
            with usage() as taken:
                found = release(dataset, KRange(1, last), epsilon).synopsis
            assert found is not None
            marginals, projections = total_variation(
                dataset.rows, found.sample(len(found.rows)), np.random.default_rng(run)
            )
            for clusters in k or range(2, last + 1):
                level = found.at(clusters)
                baseline = baselines.loss(dataset.name, dataset.rows, clusters, "means")
                lost = loss(dataset.rows, level.centres, "means")
                rows.append(
                    {
                        "dataset": chosen,
                        "k": clusters,
                        "run": run,
                        "loss": lost / baseline,
                        "direct": excess(dataset, clusters, epsilon, 1, "auto", baseline)
                        if direct
                        else NOT_RUN,
                        **{
                            name: excess(dataset, clusters, epsilon, last - 1, algorithm, baseline)
                            if split
                            else NOT_RUN
                            for name, algorithm in (("split", "auto"), ("sulq, split", "sulq"))
                        },
                        **scores(dataset, found, level),
                        "suggested": found.suggested,
                        "heavy": float(found.heavy_tailed),
                        "marginals": marginals,
                        "projections": projections,
                        "cpu": taken.cpu_seconds,
                    }
                )
            write_csv(results / f"{name}.csv", rows)
    print_table("one release for every k", summarise(rows))


def summarise(rows: list[dict[str, Any]]) -> list[dict[str, object]]:
    """Means over runs."""
    cells: dict[tuple[Any, Any], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        cells[row["dataset"], row["k"]].append(row)
    numbers = [name for name in rows[0] if name not in ("dataset", "k", "run")]
    return [
        {"dataset": name, "k": k, "runs": len(runs)}
        | {number: f"{np.mean([float(run[number]) for run in runs]):.3f}" for number in numbers}
        for (name, k), runs in cells.items()
    ]


def mixture(truth: int, apart: float, equal: bool, seed: int) -> Dataset:
    """20,000 rows of 8 columns about `truth` centres, of which no two are closer than `apart` deviations."""
    draw = np.random.default_rng(seed)
    centres: list[Floats] = []
    while len(centres) < truth:
        one = draw.uniform(-0.7, 0.7, size=8)
        if all(np.linalg.norm(one - other) >= apart * 0.08 for other in centres):
            centres.append(one)
    shares = None if equal else power_shares(truth, 1.0)
    rows = gaussians(draw, 20_000, np.array(centres), 0.08, shares)
    domain = Dense.box(-1, 1, dimension=8, scaling="none", size=20_000)
    return Dataset(f"{truth} clusters", np.clip(rows, -1, 1), domain, (truth,))


@app.command()
def suggestions(
    truth: Annotated[list[int] | None, typer.Option(help="True numbers of clusters.")] = None,
    apart: Annotated[float, typer.Option(help="Least distance of centres, in deviations.")] = 6.0,
    runs: int = 5,
    epsilon: str = "1",
    equal: bool = True,
) -> None:
    """How often the suggested k is within one of the truth."""
    lines = []
    for count in truth or (3, 8, 20):
        found = []
        for run in range(runs):
            made = release(mixture(count, apart, equal, run), KRange(1, 32), epsilon).synopsis
            assert made is not None
            found.append(made.suggested)
        lines.append(
            {
                "truth": count,
                "within one": sum(abs(k - count) <= 1 for k in found),
                "runs": runs,
                "found": found,
            }
        )
    print_table("suggested k", lines)
