"""Planned times of jobs beside what their runs use: calibrates this machine, then runs other shapes.

Times are those of one core (`service.workers.calibration.Spent`), so that a busy machine disturbs them least.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from core.algorithms import registry
from core.data import Dense
from core.errors import CoreError
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from service.jobs.timing import Rates, planned_ms
from service.operations.settings import Settings
from service.workers import calibration

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
)
#: Runs of fewer or more seconds are not long, or not worth waiting for.
_LEAST, _MOST = 1.0, 12.0
#: Ends are stored before they are shown.
_STORING = 0.1
_OPEN = ((20_000, 4, 20), (100_000, 8, 40), (300_000, 2, 30), (50_000, 12, 30))


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

    @property
    def overran(self) -> bool:
        return self.used + _STORING > self.planned

    @classmethod
    def from_csv(cls, cells: dict[str, str]) -> Run:
        rows, columns, k = (int(cells[name]) for name in ("rows", "columns", "k"))
        named = (cells["algorithm"], cells["objective"], cells["kind"])
        return cls(*named, rows, columns, k, float(cells["planned"]), float(cells["used"]))


def measured(plan: Plan, kind: str, rates: Rates) -> Run:
    margin = Settings.model_fields["release_margin"].default
    planned = planned_ms(rates, plan, plan.domain.size, margin) / 1000
    used = calibration.run(plan, groups=plan.k).seconds + calibration.WORKER_SECONDS
    shape = (plan.domain.size, plan.domain.dimension, plan.k)
    return Run(plan.algorithm, plan.objective, kind, *shape, planned, used)


def kinds_of(names: list[str], only: list[str]) -> Iterator[tuple[str, str, str]]:
    for name in names or registry.names():
        algorithm = registry.get(name)
        for objective in algorithm.objectives:
            for kind in algorithm.domains:
                if not only or kind in only:
                    yield name, objective, kind


def open_plans() -> Iterator[Plan]:
    for rows, columns, last in _OPEN:
        domain = Dense.box(0.0, 1.0, dimension=columns, size=rows)
        yield registry.plan(domain, Request(KRange(1, last), Budget.of("1", "0.000001")))


def plans(name: str, objective: str, kind: str, jobs: int) -> Iterator[Plan]:
    """Long shapes, then small ones drawn at random."""
    algorithm, draw = registry.get(name), np.random.default_rng()
    for shape in LONG:
        plan = calibration.plan_of(algorithm, objective, kind, *shape)
        if plan is not None:
            yield plan
    for _ in range(jobs):
        rows = round(10 ** draw.uniform(2.5, 4.3))
        shape = (rows, round(2 ** draw.uniform(0, 6)), round(2 ** draw.uniform(1, 4)))
        try:
            plan = calibration.plan_of(algorithm, objective, kind, *shape)
        except CoreError:
            continue
        if plan is not None:
            yield plan


def summary(runs: list[Run]) -> list[dict[str, object]]:
    """A line for the long and for the short runs of each algorithm."""
    lines: list[dict[str, object]] = []
    for name in dict.fromkeys(run.algorithm for run in runs):
        for long in (True, False):
            found = [run for run in runs if run.algorithm == name and (run.used >= _LEAST) == long]
            if not found:
                continue
            ratios = np.sort([run.planned / run.used for run in found])
            lines.append(
                {
                    "algorithm": name,
                    "runs": f"of {_LEAST:g} s and more" if long else "shorter",
                    "number": len(found),
                    "least": float(ratios[0]),
                    "median": float(np.median(ratios)),
                    "most": float(ratios[-1]),
                    "within 1.7": int((ratios <= 1.7).sum()),
                    "longest planned": max(run.planned for run in found),
                    "overruns": sum(run.overran for run in found),
                }
            )
    return lines


def main(
    algorithm: Annotated[list[str] | None, typer.Option(help="these algorithms only")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="these kinds of records only")] = None,
    jobs: Annotated[int, typer.Option(help="small jobs of each algorithm, objective and kind")] = 20,
    output: Annotated[Path, typer.Option(help="runs are added to this file")] = RESULTS / "planned.csv",
) -> None:
    """Planned times beside what runs use, and how many overrun."""
    runs = [Run.from_csv(cells) for cells in read_csv(output)] if output.exists() else []
    for name, objective, each in kinds_of(algorithm or [], kind or []):
        measured_shapes = calibration.measure(calibration.plans_of(name, objective, each), [])
        if not measured_shapes:
            continue
        rates = calibration.fit(measured_shapes)
        asked = list(plans(name, objective, each, jobs))
        if (name, objective, each) == ("summit", "means", "dense"):
            asked += open_plans()
        for plan in asked:
            if rates.seconds(plan, plan.domain.size) <= _MOST:
                runs.append(measured(plan, each if plan.k_range is None else "open k", rates))
                write_csv(output, [asdict(run) for run in runs])
    print_table("planned over used", summary(runs))
