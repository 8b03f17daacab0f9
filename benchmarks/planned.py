"""Planned times of jobs beside what their runs use: calibrates this machine, then runs other shapes.

Times are those of one core (`service.workers.calibration.Spent`), so that a busy machine disturbs them least.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from core.algorithms import registry
from core.algorithms.base import Algorithm
from core.data import DataSource, Dense, NarrowedSource, Number, Table, narrowed, read_public_rows
from core.errors import CoreError
from core.jobs import kinds
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.questions import registry as questions
from core.questions.base import Question
from service.operations.settings import Settings
from service.operations.timing import Rates, planned_ms
from service.workers import calibration
from service.workers.calibration import Shape
from service.workers.rehearsal import synthetic_source

__all__ = ["main"]

#: Rows, columns and clusters of runs that take seconds; none of them is measured by the calibration.
LONG = (
    (100_000, 12, 6),
    (400_000, 4, 12),
    (60_000, 40, 20),
    (20_000, 200, 16),
    (1_000_000, 3, 5),
    (200_000, 30, 30),
    (2_000_000, 8, 10),
    (100_000, 150, 24),
    (5_000_000, 4, 6),
    (600_000, 60, 12),
)
#: Runs of fewer seconds are not long.
_LEAST = 3.0
#: Ends are stored before they are shown.
_STORING = 0.1
_OPEN = ((20_000, 4, 20), (100_000, 8, 40), (300_000, 2, 30), (50_000, 12, 30), (1_000_000, 8, 32))
_PUBLIC = ((2_000, 100, 5), (10_000, 100, 10), (20_000, 300, 10), (60_000, 784, 10))
#: Algorithms whose work follows the number of groups that they find, up to what plans allow for.
_SEARCHING = ("balcan", "balcan-median", "balcan-sparse", "chaturvedi", "jones", "jones-euclidean")
#: Groups of synthetic rows, where there are more of them than clusters.
_MANY = 64


@dataclass(frozen=True)
class Run:
    """One run: what was planned for it, and what it used with the worker's own part."""

    algorithm: str
    objective: str
    kind: str
    rows: int
    columns: int
    k: int
    planned: float
    used: float
    epsilon: str = "1"
    #: What the shape was drawn from; none for shapes of this module.
    seed: int = 0

    @property
    def overran(self) -> bool:
        return self.used + _STORING > self.planned

    @classmethod
    def from_csv(cls, cells: dict[str, str]) -> Run:
        rows, columns, k = (int(cells[name]) for name in ("rows", "columns", "k"))
        named = (cells["algorithm"], cells["objective"], cells["kind"])
        times = float(cells["planned"]), float(cells["used"])
        return cls(*named, rows, columns, k, *times, cells["epsilon"], int(cells["seed"]))


@dataclass(frozen=True)
class Job:
    """A plan to run; `wide` where its rows are stored in wider bounds than those of the plan."""

    plan: Plan
    kind: str
    wide: Dense | None = None
    #: Groups of its rows; k of them unless more are given.
    groups: int = 0
    #: The rows themselves, where they are not drawn for the run alone.
    rows: DataSource | None = None

    def source(self) -> DataSource | None:
        """Given rows, or rows that are looked up in working bounds; None for synthetic rows as any others."""
        domain = self.plan.stored
        if self.wide is None or not isinstance(domain, Dense | Table):
            return self.rows
        return NarrowedSource(synthetic_source(self.wide, self.plan.k, domain.size), domain)

    def run(self, rates: Rates, seed: int = 0) -> Run:
        plan, margin = self.plan, Settings.model_fields["release_margin"].default
        planned = planned_ms(rates, plan, plan.domain.size, margin, narrowed=self.wide is not None) / 1000
        spent = calibration.run(plan, self.groups or plan.k, self.source())
        shape = (plan.domain.size, plan.domain.dimension, plan.k)
        used = spent.seconds + calibration.WORKER_SECONDS
        named = (plan.algorithm, plan.objective, self.kind)
        return Run(*named, *shape, planned, used, f"{plan.budget.epsilon:g}", seed)


def variants(names: list[str], only: list[str]) -> Iterator[tuple[str, str, str]]:
    """Algorithms and questions, with what each has rates for."""
    for name in names or (*registry.names(), *questions.names()):
        for objective, kind in calibration.variants(name):
            if not only or kind in only:
                yield name, objective, kind


def jobs_of(name: str, objective: str, kind: str, small: int) -> Iterator[Job]:
    """Long shapes, small ones drawn at random, and what else is planned by the same rates."""
    for shape in (*LONG, *small_shapes(small)):
        if name in questions.names():
            plan = calibration.question_plan(name, kind, Shape(*shape))
        else:
            plan = calibration.plan_of(registry.get(name), objective, kind, Shape(*shape))
        if plan is not None:
            yield Job(plan, kind)
            if name in _SEARCHING and shape in LONG:
                yield Job(plan, f"{kind}, {_MANY} groups", groups=_MANY)
    if name in registry.names() and registry.get(name).guarantee == "either":
        yield from pure_jobs(registry.get(name), objective, kind, small // 2)
    if (name, objective) == ("summit", "means") and kind in ("dense", "table"):
        yield from open_jobs(kind)
    if (name, objective, kind) == ("summit", "means", "dense"):
        yield from public_jobs()
    if kind == "dense" and name in ("quantiles", "sulq", "summit") and objective != "medians":
        yield from narrowed_jobs(name, small)


def small_shapes(count: int) -> Iterator[tuple[int, int, int]]:
    draw = np.random.default_rng()
    for _ in range(count):
        rows = round(10 ** draw.uniform(2.5, 4.3))
        yield rows, round(2 ** draw.uniform(0, 6)), round(2 ** draw.uniform(1, 4))


def pure_jobs(algorithm: Algorithm, objective: str, kind: str, small: int) -> Iterator[Job]:
    """Jobs without a delta."""
    for shape in (*LONG, *small_shapes(small)):
        plan = calibration.plan_of(algorithm, objective, kind, Shape(*shape), pure=True)
        if plan is not None:
            yield Job(plan, f"{kind}, pure")


def open_jobs(kind: str) -> Iterator[Job]:
    for rows, columns, last in _OPEN:
        domain: Dense | Table = Dense.box(0.0, 1.0, dimension=columns, size=rows)
        if kind == "table":
            declared = tuple(Number(name=name, low=0, high=1) for name in domain.columns)
            domain = Table(declared=declared, size=rows)
        plan = registry.plan(domain, Request(KRange(1, last), Budget.of("1", "0.000001")))
        yield Job(plan, f"{kind}, open k")


def public_jobs() -> Iterator[Job]:
    """Jobs with public rows: of the same groups as the records, and of another."""
    for rows, columns, k in _PUBLIC:
        domain = Dense.box(0.0, 1.0, dimension=columns, size=rows)
        records, others = (synthetic_source(domain, groups, rows) for groups in (k, 1))
        for told in (records, others):
            offered = read_public_rows(domain, domain.decode(np.asarray(told.loaders()[0]().rows[:500])))
            asked = Request(k, Budget.of("1", "0.000001"), public_rows=offered)
            yield Job(registry.plan(domain, asked), "dense, public rows", rows=records)


def narrowed_jobs(name: str, small: int) -> Iterator[Job]:
    """Jobs in working bounds of every column."""
    budget = Budget.of("1", "0.000001")
    for rows, columns, k in (*LONG, *small_shapes(small)):
        wide = Dense.box(-1.0, 2.0, dimension=columns, size=rows)
        domain = narrowed(wide, dict.fromkeys(wide.columns, (0.0, 1.0)))
        asked = Question(name, budget) if name in questions.names() else Request(k, budget, algorithm=name)
        with suppress(CoreError):  # too many columns for a question
            yield Job(kinds.plan(domain, asked), "dense, working bounds", wide)


def summary(runs: list[Run]) -> list[dict[str, object]]:
    """A line for the long and for the short runs of each algorithm or question and kind of records."""
    lines: list[dict[str, object]] = []
    for named in dict.fromkeys((run.algorithm, run.objective, run.kind) for run in runs):
        alike = [run for run in runs if (run.algorithm, run.objective, run.kind) == named]
        lines += [
            line_of(" ".join(filter(None, named)), found, long=long)
            for long in (True, False)
            if (found := [run for run in alike if (run.used >= _LEAST) == long])
        ]
    return [*lines, line_of("all", runs, long=False)] if runs else lines


def line_of(name: str, runs: list[Run], *, long: bool) -> dict[str, object]:
    ratios = np.sort([run.planned / run.used for run in runs])
    return {
        "jobs": name,
        "runs": f"of {_LEAST:g} s and more" if long else "shorter",
        "number": len(runs),
        "least": float(ratios[0]),
        "median": float(np.median(ratios)),
        "most": float(ratios[-1]),
        "within 1.7": int((ratios <= 1.7).sum()),
        "longest planned": max(run.planned for run in runs),
        "overruns": sum(run.overran for run in runs),
    }


def main(
    algorithm: Annotated[list[str] | None, typer.Option(help="these algorithms or questions only")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="these kinds of records only")] = None,
    jobs: Annotated[int, typer.Option(help="small jobs of each algorithm, objective and kind")] = 20,
    longest: Annotated[float, typer.Option(help="runs of more seconds are left out")] = 12.0,
    output: Annotated[Path, typer.Option(help="runs are added to this file")] = RESULTS / "planned.csv",
) -> None:
    """Planned times beside what runs use, and how many overrun."""
    runs = [Run.from_csv(cells) for cells in read_csv(output)] if output.exists() else []
    for name, objective, each in variants(algorithm or [], kind or []):
        measured = calibration.measure(calibration.plans_of(name, objective, each), [])
        if not measured:
            continue
        rates = calibration.fit(measured)
        for job in jobs_of(name, objective, each, jobs):
            if rates.seconds(job.plan, job.plan.domain.size, narrowed=job.wide is not None) <= longest:
                runs.append(job.run(rates))
                write_csv(output, [asdict(run) for run in runs])
    print_table("planned over used", summary(runs))
