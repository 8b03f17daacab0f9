"""How fast kernels and the house algorithm are, as ratios measured in one run: `python -m benchmarks speed`.

Both sides of a ratio run on the same machine, alternating, with the same threads; the fastest of some repeats
counts. `clock` is what a person waits; `cores` adds up all cores and is steadier on a busy machine.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy.linalg.blas import dsyrk
from sklearn.cluster import KMeans

from benchmarks.datasets import Dataset, load, mixture
from benchmarks.measuring import RESULTS, Usage, print_table, read_csv, side_by_side, usage, write_csv
from benchmarks.sampler import LAWS, draws_per_second
from core.algorithms import registry
from core.data import UNITS, ArraySource, DataSource, Dense
from core.plan import Request
from core.privacy import Budget
from core.statistics.base import Statistic
from core.statistics.sums import ResidualSums, SecondMoments
from core.views import Assigned, Encoded, clear_cache

__all__ = ["main"]

#: The distance of a row of one cluster, in encoded units, beyond which it is clipped: some rows are.
_CLIP = 9000


@dataclass(frozen=True)
class Line:
    """One figure: what was measured, the value, and the bar it is held against."""

    what: str
    clock: float
    cores: float
    unit: str
    bar: str

    def cells(self) -> dict[str, object]:
        clock, cores = f"{self.clock:.3g}", f"{self.cores:.3g}"
        return {"what": self.what, "clock": clock, "cores": cores, "unit": self.unit, "bar": self.bar}


def _ratio(what: str, ours: Usage, theirs: Usage, bar: str) -> Line:
    clock, cores = ours.seconds / theirs.seconds, ours.cpu_seconds / max(theirs.cpu_seconds, 1e-9)
    return Line(what, clock, cores, "ratio", bar)


def _total(source: DataSource, statistic: Statistic) -> None:
    """A statistic over all chunks, as a probe computes it, without what an earlier run left in the cache."""
    clear_cache()
    for loader in source.loaders():
        statistic.of(loader())


def noise() -> list[Line]:
    rates = {name: draws_per_second(law, 1e4, 1_000_000, 3) / 1e6 for name, law in LAWS.items()}
    return [
        Line(f"exact {name} noise", rate, rate, "million draws/s of one core", "at least 3")
        for name, rate in rates.items()
    ]


def residual_sums(count: int, width: int, k: int, repeats: int) -> list[Line]:
    """Assignment and clipped residual sums against the two products they contain."""
    draw = np.random.default_rng(0)
    domain = Dense.ball(float(UNITS), dimension=width, size=count)
    rows = draw.normal(scale=1000, size=(count, width))
    source = ArraySource(domain, rows)
    centres = np.rint(draw.normal(scale=1000, size=(k, width))).astype(np.int64)
    statistic = ResidualSums(Assigned(Encoded.of(domain), centres), np.full(k, _CLIP))
    bare_centres = np.ascontiguousarray(centres.T, dtype=np.float64)
    members = np.zeros((count, k))
    members[np.arange(count), draw.integers(k, size=count)] = 1

    scores, sums = np.empty((count, k)), np.empty((k, width))

    def products() -> None:
        np.matmul(rows, bare_centres, out=scores)
        np.matmul(members.T, rows, out=sums)

    ours, theirs = side_by_side(lambda: _total(source, statistic), products, repeats)
    what = f"assignment and residual sums / two GEMMs, {count} x {width}, k = {k}"
    return [_ratio(what, ours, theirs, "at most 2")]


def second_moments(count: int, width: int, repeats: int) -> list[Line]:
    draw = np.random.default_rng(0)
    domain = Dense.box(0.0, 1.0, dimension=width, size=count)
    rows = draw.uniform(size=(count, width)) ** 8  # mostly dark, as pictures are
    source = ArraySource(domain, rows)
    statistic = SecondMoments(Encoded.of(domain), np.zeros(width, dtype=np.int64), 20_000)
    turned = np.ascontiguousarray(rows.T)  # the product of an array with its own transpose would be SYRK
    ours, gemm = side_by_side(lambda: _total(source, statistic), lambda: np.matmul(turned, rows), repeats)
    again, syrk = side_by_side(lambda: _total(source, statistic), lambda: dsyrk(1.0, rows.T), repeats)
    with usage() as encoding:
        domain.encode(rows)
    size = f"{count} x {width}"
    return [
        _ratio(f"second moments / GEMM, {size}", ours, gemm, "at most 1.5"),
        _ratio(f"second moments / SYRK, {size}", again, syrk, "at most 1.5"),
        Line(f"encode, {size}", encoding.seconds, encoding.cpu_seconds, "seconds", "at most 0.25"),
    ]


def _summit(data: Dataset, k: int) -> Callable[[], None]:
    budget = Budget.at_most(1, len(data.rows) ** -1.5)
    plan = registry.plan(data.domain, Request(k, budget, algorithm="summit"))

    def run() -> None:
        clear_cache()
        registry.run(plan, ArraySource(data.domain, data.rows))

    return run


def against_kmeans(data: Dataset, k: int, repeats: int, bar: str) -> list[Line]:
    """The whole private run, encoding included, against one non-private fit of the same array."""

    def kmeans() -> None:
        KMeans(k, n_init=1, random_state=0).fit(data.rows)

    ours, theirs = side_by_side(_summit(data, k), kmeans, repeats)
    size = f"{len(data.rows)} x {data.domain.dimension}, k = {k}"
    name = f"summit on {data.name}, {size}"
    return [
        _ratio(f"{name} / KMeans(n_init=1)", ours, theirs, bar),
        Line(name, ours.seconds, ours.cpu_seconds, "seconds", ""),
        Line(f"{name}: peak memory over the array's", ours.extra_mib, ours.extra_mib, "MiB", "at most 300"),
    ]


def doubling(data: Dataset, k: int, repeats: int) -> list[Line]:
    half = Dataset(data.name, data.rows[: len(data.rows) // 2], data.domain, data.clusters)
    whole, part = side_by_side(_summit(data, k), _summit(half, k), repeats)
    what = f"summit with {len(data.rows)} / {len(half.rows)} rows of {data.name}, k = {k}"
    return [_ratio(what, whole, part, "at most 2.1")]


def _merged(known: Path, lines: list[Line]) -> list[dict[str, object]]:
    """Lines of this run, before those of earlier runs that it did not repeat."""
    table = [line.cells() for line in lines]
    again = {line.what for line in lines}
    earlier = read_csv(known) if known.exists() else []
    return table + [{**cells} for cells in earlier if cells["what"] not in again]


def main(
    rows: Annotated[int, typer.Option(help="Rows of the large synthetic arrays.")] = 1_000_000,
    pictures: Annotated[int, typer.Option(help="Rows of the array with 784 columns.")] = 60_000,
    repeats: Annotated[int, typer.Option(help="Alternating repeats, of which the fastest counts.")] = 3,
    only: Annotated[list[str] | None, typer.Option(help="noise, kernels, mnist, mixture, doubling")] = None,
    mnist: Annotated[Path | None, typer.Option(help="An .npz file with MNIST's `pixels`.")] = None,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure ratios of time and peak memory; prints a table and keeps it as CSV."""
    parts: dict[str, Callable[[], list[Line]]] = {
        "noise": noise,
        "kernels": lambda: residual_sums(rows, 100, 64, repeats) + second_moments(pictures, 784, repeats),
        "mnist": lambda: against_kmeans(load("mnist", mnist_path=mnist), 10, repeats, "at most 0.25"),
        "mixture": lambda: against_kmeans(mixture(rows), 16, 1, "at most 1.0"),
        "doubling": lambda: doubling(mixture(rows), 16, repeats),
    }
    unknown = set(only or ()) - set(parts)
    if unknown:
        raise typer.BadParameter(f"no part {min(unknown)!r}: choose from {', '.join(parts)}")
    for name in only or parts:  # kept after each part: the whole takes a while
        write_csv(results / "speed.csv", _merged(results / "speed.csv", parts[name]()))
    table = [{**cells} for cells in read_csv(results / "speed.csv")]
    print_table("speed, by the clock and added up over cores", table)
