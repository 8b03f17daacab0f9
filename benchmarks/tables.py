"""Clusters of tables with categories, heavy tails and loose bounds: `python -m benchmarks tables`.

Each figure is of the released centres and compares with clustering that is not private in the same geometry:
k-means of the rows that the geometry makes of a table, which is k-prototypes with squared distances.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from benchmarks.measuring import RESULTS, print_table, write_csv
from core import Budget, Request, make_plan, run_plan
from core.data import Boolean, Category, Geometry, Number, Table, TableSource
from core.plan import KRange

__all__ = ["codes_of", "in_units", "labels_of", "made_table", "main"]

_ROWS = 20_000
_BUDGET = Budget.of(1, "0.000001")
#: Numbers and categories of a made-up table; each has a boolean, too.
_KINDS = {"numbers": (5, 0), "categories": (0, 6), "both": (3, 3)}
_COLOURS = tuple(f"level{i}" for i in range(6))

Columns = dict[str, Any]


def labels_of(geometry: Geometry, codes: Any, centres: Any) -> Any:
    rows = geometry.rows(codes).astype(np.float64)
    return ((rows[:, None, :] - centres[None]) ** 2).sum(axis=2).argmin(axis=1)


def codes_of(source: TableSource) -> Any:
    return np.concatenate([loader().rows for loader in source.loaders()])


def in_units(geometry: Geometry, centres: Any) -> Any:
    """Centres in the geometry's units again."""
    moved = np.empty_like(centres)
    for axis, part in geometry.parts:
        numbers = centres[:, part]
        if isinstance(axis.column, Category):
            low, high = axis.bounds
            moved[:, part] = low + numbers * (high - low)
        else:
            middle = axis.decode(np.zeros((1, 1)))
            moved[:, part] = (numbers - middle) / axis.unit
    return moved


def made_table(
    draw: np.random.Generator, numbers: int, categories: int, k: int, counts: int = 0
) -> tuple[Table, Columns, Any]:
    """Rows of k clusters: numbers around a middle, levels mostly of a cluster's own, whole counts."""
    truth = draw.choice(k, _ROWS, p=draw.dirichlet(np.full(k, 8.0)))
    declared: list[Any] = []
    values: Columns = {}
    for i in range(numbers):
        middles = draw.uniform(15, 85, k)[truth]
        values[f"n{i}"] = middles + draw.normal(0, 7, _ROWS)
        declared.append(Number(name=f"n{i}", low=0, high=100))
    for i in range(categories):
        usual = draw.integers(0, len(_COLOURS), k)[truth]
        other = draw.integers(0, len(_COLOURS), _ROWS)
        level = np.where(draw.random(_ROWS) < 0.85, usual, other)
        values[f"c{i}"] = np.array(_COLOURS)[level]
        declared.append(Category(name=f"c{i}", levels=_COLOURS))
    for i in range(counts):
        values[f"w{i}"] = np.minimum(draw.poisson(draw.uniform(1, 12, k)[truth]), 30)
        declared.append(Number(name=f"w{i}", low=0, high=30, whole=True))
    rates = draw.choice([0.05, 0.95], k)[truth]
    values["flag"] = draw.random(_ROWS) < rates
    declared.append(Boolean(name="flag"))
    return Table(declared=tuple(declared), size=_ROWS), values, truth


def mixed(draw: np.random.Generator, kind: str, k: int) -> dict[str, Any]:
    """Adjusted Rand index of the partition by released centres, and by k-means that is not private."""
    table, values, truth = made_table(draw, *_KINDS[kind], k)
    source = TableSource(table, values)
    found = run_plan(make_plan(table, Request(k, _BUDGET)), source)
    geometry, codes = Geometry.of(table), codes_of(source)
    rows = geometry.rows(codes).astype(np.float64)
    free = KMeans(k, n_init=5, random_state=int(draw.integers(1 << 30))).fit(rows).cluster_centers_
    private = adjusted_rand_score(truth, labels_of(geometry, codes, in_units(geometry, found.centres)))
    return {
        "columns": kind,
        "k": k,
        "private": private,
        "non-private": adjusted_rand_score(truth, labels_of(geometry, codes, free)),
    }


def open_k(draw: np.random.Generator, kind: str) -> dict[str, Any]:
    """Mean loss over that of k-means, at several k: of one release for every k, and of a release for each."""
    table, values, _ = made_table(draw, *_KINDS[kind], 5)
    source, geometry = TableSource(table, values), Geometry.of(table)
    rows = geometry.rows(codes_of(source)).astype(np.float64)
    synopsis = run_plan(make_plan(table, Request(KRange(1, 12), _BUDGET)), source).synopsis
    assert synopsis is not None

    def loss(centres: Any) -> float:
        return float(((rows[:, None, :] - centres[None]) ** 2).sum(axis=2).min(axis=1).sum())

    ratios = []
    for k in (2, 5, 12):
        free = KMeans(k, n_init=5, random_state=int(draw.integers(1 << 30))).fit(rows).inertia_
        single = run_plan(make_plan(table, Request(k, _BUDGET)), source).centres
        ratios.append([loss(in_units(geometry, each)) / free for each in (synopsis.at(k).centres, single)])
    every, one = np.mean(ratios, axis=0)
    return {"every k": float(every), "single k": float(one)}


def heavy_tail(draw: np.random.Generator) -> dict[str, Any]:
    """Error of a rare expensive cluster's geometric mean, as a factor, with log and with linear bounds."""
    truth = draw.choice(4, _ROWS, p=[0.5, 0.3, 0.17, 0.03])
    means = np.log([120.0, 900.0, 5_000.0, 60_000.0])
    cost = np.exp(means[truth] + draw.normal(0, 0.5, _ROWS))
    age = np.array([30.0, 45.0, 60.0, 75.0])[truth] + draw.normal(0, 5, _ROWS)
    errors = {}
    for log in (False, True):
        declared = (
            Number(name="age", low=0, high=110),
            Number(name="cost", low=1, high=1_000_000, log=log),
        )
        table = Table(declared=declared, size=_ROWS)
        source = TableSource(table, {"age": age, "cost": cost})
        found = run_plan(make_plan(table, Request(4, _BUDGET)), source)
        assert found.profiles is not None
        costs = [profile[1]["value"] for profile in found.profiles]
        true = float(np.exp(np.log(cost[truth == 3]).mean()))
        errors[log] = abs(math.log(max(max(costs), 1.0) / true))
    return {"linear": math.exp(errors[False]), "log": math.exp(errors[True])}


def loose_bounds(draw: np.random.Generator, factor: float) -> dict[str, Any]:
    """Loss where half of the columns have bounds that are too wide, over the loss with bounds that fit."""
    k, width = 5, 4
    truth = draw.integers(0, k, _ROWS)
    middles = draw.uniform(-0.8, 0.8, (k, width))
    points = np.clip(middles[truth] + draw.normal(0, 0.08, (_ROWS, width)), -1, 1)
    values = {f"n{i}": points[:, i] for i in range(width)}

    def loss(reach: float, scaling: str) -> float:
        declared = tuple(
            Number(name=name, low=-1 if i % 2 else -reach, high=1 if i % 2 else reach)
            for i, name in enumerate(values)
        )
        table = Table(declared=declared, size=_ROWS)
        found = run_plan(make_plan(table, Request(k, _BUDGET, scaling=scaling)), TableSource(table, values))
        return float(((points[:, None, :] - found.centres[None]) ** 2).sum(axis=2).min(axis=1).mean())

    fit = loss(1.0, "declared")
    return {"declared": loss(factor, "declared") / fit, "scaled": loss(factor, "private") / fit}


def _line(figure: str, found: list[dict[str, Any]], *names: str) -> dict[str, object]:
    """Means over all runs, and the worst of the first of them against the second."""
    means = {name: f"{np.mean([row[name] for row in found]):.4f}" for name in names}
    worst = max(found, key=lambda row: abs(row[names[0]] - row[names[1]]))
    ours, theirs = (f"{name} {means[name]}" for name in names)
    apart = ", ".join(f"{name} {worst[name]:.4f}" for name in names)
    return {"figure": figure, "ours": ours, "against": theirs, "farthest apart": apart}


def main(
    runs: Annotated[int, typer.Option(help="Runs of each figure.")] = 10,
    seed: Annotated[int, typer.Option(help="Seed of the made-up tables; noise has none.")] = 1,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure how well clusters of tables are found; prints a table and keeps it as CSV."""
    draw = np.random.default_rng(seed)
    lines = []
    for kind in _KINDS:
        for k in (4, 6):
            found = [mixed(draw, kind, k) for _ in range(runs)]
            lines.append(_line(f"adjusted Rand index, {kind}, k {k}", found, "private", "non-private"))
    for kind in _KINDS:
        opened = [open_k(draw, kind) for _ in range(runs)]
        lines.append(_line(f"loss over k-means, k left open, {kind}", opened, "every k", "single k"))
    tails = [heavy_tail(draw) for _ in range(runs)]
    lines.append(_line("error factor of a rare cluster's geometric mean", tails, "log", "linear"))
    loose = [loose_bounds(draw, 20.0) for _ in range(runs)]
    lines.append(_line("loss over that of bounds that fit, 20 times too wide", loose, "scaled", "declared"))
    write_csv(results / "tables.csv", lines)
    print_table(f"tables of {_ROWS} rows at epsilon 1", lines)
