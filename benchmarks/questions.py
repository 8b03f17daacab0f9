"""Accuracy of questions, and OpenDP's beside it where it is installed: `python -m benchmarks questions`.

Figures are of what is released, against exact answers on the same rows. OpenDP (`pip install opendp`) is a
comparator of this benchmark alone: its histogram, and quantiles from its consistent tree.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from benchmarks import opendp
from benchmarks.measuring import print_table
from core import ArraySource, Budget, Dense, Partition, Question, QuestionResult, Request, make_plan, run_plan
from core.data import Category, Number, Table, TableSource
from core.views import clear_cache

__all__ = ["main"]

_DELTA = "0.000001"
_COLUMNS, _BINS = 10, 10
_GENERATOR = np.random.default_rng(20)
#: Rows that are drawn at a time.
_DRAWN = 1 << 18


def _ask(stored: Any, source: Any, kind: str, epsilon: str, **asked: Any) -> dict[str, Any]:
    plan = make_plan(stored, Question(kind, Budget.of(epsilon, _DELTA), **asked))
    found = run_plan(plan, source)
    assert isinstance(found, QuestionResult)
    values: dict[str, Any] = found.values
    return values


def _profile(cluster: int, epsilon: str, runs: int) -> float:
    """Mean total variation distance of histograms of clusters of so many records."""
    groups = 4
    label = np.repeat(np.arange(groups), cluster)
    levels = tuple(f"level{i}" for i in range(_BINS))
    declared: list[Any] = [Number(name="x", low=0, high=100)]
    values: dict[str, Any] = {"x": 12.5 + 25 * label + _GENERATOR.normal(0, 1, len(label))}
    exact = []
    for place in range(_COLUMNS):
        shares = _GENERATOR.dirichlet(np.ones(_BINS), groups)
        drawn = (_GENERATOR.random((len(label), 1)) > np.cumsum(shares, axis=1)[label]).sum(axis=1)
        drawn = np.minimum(drawn, _BINS - 1)
        declared.append(Category(name=f"c{place}", levels=levels, role="keep", missing="refuse"))
        values[f"c{place}"] = np.array(levels)[drawn]
        exact.append([np.bincount(drawn[label == group], minlength=_BINS) for group in range(groups)])
    table = Table(declared=tuple(declared), size=len(label))
    source = TableSource(table, values)
    partition = Partition.of(table, [[12.5 + 25 * group] for group in range(groups)])
    names = tuple(f"c{place}" for place in range(_COLUMNS))
    distances = []
    for _ in range(runs):
        answer = _ask(table, source, "profile", epsilon, columns=names, partitions=(partition,))
        for column, counts in zip(answer["columns"], exact, strict=True):
            for found, own in zip(column["counts"], counts, strict=True):
                shares = np.array(found) / max(sum(found), 1.0)
                distances.append(np.abs(shares - own / cluster).sum() / 2)
    return float(np.mean(distances))


_SHAPES: dict[str, Callable[[int], Any]] = {
    "uniform": lambda n: _GENERATOR.uniform(0, 1000, n),
    "normal": lambda n: _GENERATOR.normal(400, 60, n),
    "lognormal": lambda n: np.exp(_GENERATOR.normal(3, 1, n)),
}


def _rank_errors(values: Any, levels: list[float], found: list[float]) -> Any:
    """How far, in shares of all records, the ranks of what was found lie from the levels."""
    ordered = np.sort(values)
    below, above = (np.searchsorted(ordered, found, side) / len(values) for side in ("left", "right"))
    return np.maximum(np.maximum(below - levels, levels - above), 0.0)


def _quantiles(shape: str, epsilon: str, levels: list[float], runs: int) -> tuple[float, float | None]:
    """Mean rank error in percentiles, and OpenDP's."""
    values = np.clip(_SHAPES[shape](20_000), 0, 1000)
    domain = Dense.box([0], [1000], ["x"], size=20_000)
    source = ArraySource(domain, values[:, None])
    ours, theirs = [], []
    for _ in range(runs):
        answer = _ask(domain, source, "quantiles", epsilon, options={"levels": levels})
        ours.append(_rank_errors(values, levels, answer["columns"][0]["values"]).mean())
        other = opendp.quantiles(values, 0.0, 1000.0, levels, float(epsilon))
        if other is not None:
            theirs.append(_rank_errors(values, levels, other).mean())
    return 100 * float(np.mean(ours)), 100 * float(np.mean(theirs)) if theirs else None


def _table(epsilon: str, runs: int) -> tuple[float, float | None]:
    """Root mean squared error of the cells of a table of two columns, and of OpenDP's histogram."""
    levels = tuple(f"l{i}" for i in range(12))
    first, second = (np.minimum(_GENERATOR.geometric(0.3, 20_000), 12) - 1 for _ in range(2))
    table = Table(
        declared=(Category(name="a", levels=levels), Category(name="b", levels=levels)), size=20_000
    )
    source = TableSource(table, {"a": np.array(levels)[first], "b": np.array(levels)[second]})
    exact = np.zeros((12, 12))
    np.add.at(exact, (first, second), 1)
    ours, theirs = [], []
    for _ in range(runs):
        answer = _ask(table, source, "table", epsilon)
        ours.append(np.mean((np.array(answer["counts"]) - exact) ** 2))
        other = opendp.histogram(exact.reshape(-1).astype(np.int64), float(epsilon))
        if other is not None:
            theirs.append(np.mean((np.array(other) - exact.reshape(-1)) ** 2))
    return float(np.sqrt(np.mean(ours))), float(np.sqrt(np.mean(theirs))) if theirs else None


def _explain(epsilon: str, runs: int) -> float:
    """Share of runs in which every cluster's planted columns are chosen, two of twenty for each."""
    groups, cluster = 3, 3000
    label = np.repeat(np.arange(groups), cluster)
    levels = tuple(f"l{i}" for i in range(6))
    declared: list[Any] = [Number(name="x", low=0, high=90)]
    values: dict[str, Any] = {"x": 15 + 30 * label + _GENERATOR.normal(0, 1, len(label))}
    planted = {group: {f"c{2 * group}", f"c{2 * group + 1}"} for group in range(groups)}
    for place in range(20):
        drawn = _GENERATOR.integers(0, 6, len(label))
        own = (label == place // 2) & (_GENERATOR.random(len(label)) < 0.5)
        declared.append(Category(name=f"c{place}", levels=levels, role="keep", missing="refuse"))
        values[f"c{place}"] = np.array(levels)[np.where(own, 0, drawn)]
    table = Table(declared=tuple(declared), size=len(label))
    source = TableSource(table, values)
    partition = Partition.of(table, [[15.0 + 30 * group] for group in range(groups)])
    names = tuple(f"c{place}" for place in range(20))
    found = 0
    for _ in range(runs):
        asked = {"columns": names, "partitions": (partition,), "options": {"picks": 2}}
        clusters = _ask(table, source, "explain", epsilon, **asked)["clusters"]
        chosen = [{each["column"] for each in cluster["columns"]} for cluster in clusters]
        found += chosen == [planted[group] for group in range(groups)]
    return found / runs


def _speed(rows: int, columns: int, folder: Path) -> float:
    """Processor time of a profile of all columns over that of one Lloyd round, on the same rows and centres.

    Rows are drawn into a file, so that millions of them fit beside other programs.
    """
    domain = Dense.box(0, 1, dimension=columns, size=rows)
    drawn = np.lib.format.open_memmap(folder / "rows.npy", "w+", np.float32, (rows, columns))
    for start in range(0, rows, _DRAWN):
        part = drawn[start : start + _DRAWN]
        part[:] = _GENERATOR.random(part.shape, dtype=np.float32)
    source = ArraySource(domain, drawn)
    centres = _GENERATOR.random((16, columns))
    profile = make_plan(
        domain, Question("profile", Budget.of(1), partitions=(Partition.of(domain, centres),))
    )
    times = []
    for rounds in (1, 2):
        plan = make_plan(domain, Request(16, Budget.of(1), algorithm="sulq", options={"rounds": rounds}))
        times.append(_seconds(plan, source))
    return _seconds(profile, source) / max(times[1] - times[0], 1e-9)


def _seconds(plan: Any, source: Any) -> float:
    clear_cache()
    started = time.process_time()
    run_plan(plan, source)
    return time.process_time() - started


def _accuracy(runs: int, add: Callable[..., None]) -> None:
    few = max(1, runs // 10)
    add("profile, 1,000 records, epsilon 1: total variation", _profile(1_000, "1", few), 0.1)
    add("profile, 10,000 records, epsilon 0.1: total variation", _profile(10_000, "0.1", few), 0.1)
    levels = {"quartiles": [0.25, 0.5, 0.75], "deciles": [n / 10 for n in range(1, 10)], "median": [0.5]}
    for shape in _SHAPES:
        for name, asked in levels.items():
            bar = 1.0 if name == "quartiles" else None
            add(f"{name}, {shape}, epsilon 0.1: percentiles", _quantiles(shape, "0.1", asked, runs), bar)
    for epsilon in ("0.1", "1"):
        add(f"table of 144 cells, epsilon {epsilon}: error of a cell", _table(epsilon, runs))
    add("explain, 3 x 3,000 records, 20 columns, epsilon 1: found", _explain("1", runs), 0.95)


def main(
    runs: Annotated[int, typer.Option(help="runs of each question; 0 leaves accuracy out", min=0)] = 100,
    speed_rows: Annotated[int, typer.Option(help="rows of the timed profile; 0 leaves it out")] = 0,
) -> None:
    """Accuracy of profiles, quantiles, tables and explanations, against what is promised."""
    rows: list[dict[str, object]] = []

    def add(what: str, found: float | tuple[float, float | None], bar: float | None = None) -> None:
        figure, other = found if isinstance(found, tuple) else (found, None)
        limit = 1.1 * other if bar is None and other is not None else bar
        rows.append({"what": what, "figure": figure, "bar": limit or "", "OpenDP": other or ""})

    if runs:
        _accuracy(runs, add)
    if speed_rows:
        with tempfile.TemporaryDirectory() as folder:
            ratio = _speed(speed_rows, 20, Path(folder))
        add(f"profile of {speed_rows:,} x 20 over one Lloyd round: processor time", ratio, 3.0)
    print_table("Questions: figures are means; a bar of 0.95 is a least, all others are a most", rows)
