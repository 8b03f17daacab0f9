"""Planned times of jobs of shapes that are drawn afresh: no count of operations was corrected on them.

Rows, columns, k, epsilon and, where there is a choice, the guarantee are drawn from a seed, for every
algorithm or question, objective and kind of records. Each is calibrated on this machine first.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from benchmarks.measuring import RESULTS, print_table, read_csv, write_csv
from benchmarks.planned import Job, Run, summary, variants
from core.algorithms import registry
from core.data import Dense, narrowed
from core.errors import CoreError
from core.jobs import kinds
from core.plan import KRange, Plan, Request
from core.privacy import Budget
from core.questions import registry as questions
from core.questions.base import Question
from service.operations.timing import Rates
from service.workers import calibration
from service.workers.calibration import Shape

__all__ = ["drawn_jobs", "main"]

#: Powers of ten of the rows, and of two of the columns and of k, of short runs and of long ones.
_SHORT = ((2.5, 4.5), (0.0, 6.0), (0.0, 5.0))
_LONG = ((3.8, 6.6), (0.0, 8.0), (1.0, 6.0))
#: Estimated seconds of short runs, and of long ones.
_BOUNDS = {False: (0.0, 1.5), True: (1.7, 7.0)}
#: No more values than this in the rows of a run.
_MOST_VALUES = 4e7
#: Powers of ten of epsilon.
_EPSILON = (-1.0, 1.0)
_DELTA = "0.000001"
#: Shapes that are tried for a run: many algorithms refuse some of them.
_TRIES = 60


def drawn_jobs(
    name: str, objective: str, kind: str, rates: Rates, draw: np.random.Generator, *, long: bool
) -> Iterator[Job]:
    """Jobs without end, of shapes whose estimates fit; none where too many shapes in a row do not."""
    least, most = _BOUNDS[long]
    tries = 0
    while tries < _TRIES:
        tries += 1
        job = _drawn(name, objective, kind, draw, long=long)
        if job is None:
            continue
        plan = job.plan
        if least <= rates.seconds(plan, plan.domain.size, narrowed=job.wide is not None) <= most:
            tries = 0
            yield job


def _drawn(name: str, objective: str, kind: str, draw: np.random.Generator, *, long: bool) -> Job | None:
    """One job; None where it is refused or has too many values."""
    powers = [draw.uniform(*span) for span in (_LONG if long else _SHORT)]
    rows, columns, k = (round(base**power) for base, power in zip((10, 2, 2), powers, strict=True))
    epsilon = f"{10 ** draw.uniform(*_EPSILON):.3g}"
    pure, other = bool(draw.integers(4) == 0), int(draw.integers(8))
    if rows * columns > _MOST_VALUES:
        return None
    try:
        if name in questions.names():
            return _question(name, kind, (rows, columns, k), epsilon, other)
        return _clustering(name, objective, kind, (rows, columns, k), epsilon, other, pure=pure)
    except CoreError:
        return None


def _question(name: str, kind: str, shape: tuple[int, int, int], epsilon: str, other: int) -> Job | None:
    if name == "quantiles" and kind == "dense" and other == 0:
        wide, inside = _working_bounds(*shape[:2])
        asked = Question(name, Budget.of(epsilon, _DELTA))
        return Job(kinds.plan(inside, asked), "dense, working bounds", wide)
    plan = calibration.question_plan(name, kind, Shape(*shape), epsilon=epsilon)
    return None if plan is None else Job(plan, kind)


def _clustering(
    name: str,
    objective: str,
    kind: str,
    shape: tuple[int, int, int],
    epsilon: str,
    other: int,
    *,
    pure: bool,
) -> Job | None:
    """A job in declared bounds, in working bounds, or with k left open."""
    algorithm, (rows, columns, k) = registry.get(name), shape
    if kind == "dense" and name in ("sulq", "summit") and other == 0:
        wide, inside = _working_bounds(rows, columns)
        asked = Request(k, Budget.of(epsilon, _DELTA), objective, name)
        return _named(kinds.plan(inside, asked), "dense, working bounds", wide)
    if (name, objective) == ("summit", "means") and kind in ("dense", "table") and other == 1:
        found = calibration.domain_of(kind, rows, columns)
        stored = found if isinstance(found, Dense) else found.table  # type: ignore[union-attr]
        last = max(2, min(k, 40))
        return Job(
            registry.plan(stored, Request(KRange(1, last), Budget.of(epsilon, _DELTA))), f"{kind}, open k"
        )
    pure = pure and algorithm.guarantee == "either"
    plan = calibration.plan_of(algorithm, objective, kind, Shape(*shape), pure=pure, epsilon=epsilon)
    return None if plan is None else _named(plan, f"{kind}, pure" if pure else kind)


def _named(plan: Plan, kind: str, wide: Dense | None = None) -> Job:
    return Job(plan, f"{kind}, few records" if plan.parameters.get("few_records") else kind, wide)


def _working_bounds(rows: int, columns: int) -> tuple[Dense, Dense]:
    """Bounds of stored rows, and narrower ones of every column in which they are read."""
    wide = Dense.box(-1.0, 2.0, dimension=columns, size=rows)
    inside = narrowed(wide, dict.fromkeys(wide.columns, (0.0, 1.0)))
    assert isinstance(inside, Dense)
    return wide, inside


def main(
    seed: Annotated[int, typer.Option(help="of the shapes; one that was not used before")],
    algorithm: Annotated[list[str] | None, typer.Option(help="these algorithms or questions only")] = None,
    kind: Annotated[list[str] | None, typer.Option(help="these kinds of records only")] = None,
    short: Annotated[int, typer.Option(help="short runs of each algorithm, objective and kind")] = 100,
    long: Annotated[int, typer.Option(help="long runs of each")] = 3,
    skip: Annotated[str, typer.Option(help="leave out jobs with this in their kind: 'few records'")] = "",
    minutes: Annotated[float, typer.Option(help="stop after so long")] = float("inf"),
    output: Annotated[Path, typer.Option(help="runs are added to this file")] = RESULTS / "planned.csv",
) -> None:
    """Planned times beside what runs use, for shapes drawn at random."""
    until = time.monotonic() + 60 * minutes
    runs = [Run.from_csv(cells) for cells in read_csv(output)] if output.exists() else []
    before = len(runs)
    for name, objective, each in variants(algorithm or [], kind or []):
        measured = calibration.measure(calibration.plans_of(name, objective, each), [])
        if not measured:
            continue
        rates = calibration.fit(measured)
        for lasting, wanted in ((False, short), (True, long)):
            named = zlib.crc32(f"{name}, {objective}, {each}".encode())
            draw = np.random.default_rng([seed, named, lasting])
            jobs = drawn_jobs(name, objective, each, rates, draw, long=lasting)
            done = 0
            while done < wanted and time.monotonic() < until and (job := next(jobs, None)) is not None:
                if skip and skip in job.kind:
                    continue
                runs.append(job.run(rates, seed))
                done += 1
                if done % 20 == 0 or done == wanted or lasting:
                    write_csv(output, [asdict(run) for run in runs])
    print_table("planned over used", summary(runs[before:]))
