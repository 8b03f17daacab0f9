"""Calibrate planned times: measure algorithms and questions on synthetic rows, and store the rates found.

No rows of a dataset are read, so the times are as public as the machine is.
"""

import gc
import hashlib
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import structlog
from scipy.optimize import linprog

from core.algorithms import registry
from core.algorithms.base import Algorithm
from core.algorithms.papers.base import SiteAlgorithm
from core.arrays import Floats
from core.data import (
    Boolean,
    Category,
    Column,
    DataSource,
    Dense,
    Domain,
    Geometry,
    Ids,
    Number,
    Partition,
    Sparse,
    Table,
    clip_encoded,
)
from core.errors import CoreError
from core.jobs import kinds
from core.kernels.backend import body_in_use
from core.plan import Plan, Request
from core.postprocessing import kmeans
from core.privacy import Budget
from core.questions import registry as questions
from core.questions.base import Question
from core.views import clear_cache
from service.operations.clock import Clock, SystemClock
from service.operations.database import Database
from service.operations.logs import configure
from service.operations.settings import Settings
from service.operations.tables import Timing
from service.operations.timing import Rates, operations_of, reading
from service.workers.rehearsal import synthetic_source

log = structlog.get_logger()


class Shape(NamedTuple):
    """The size of a run on synthetic rows."""

    rows: int
    columns: int
    k: int


#: The runs that are measured.
SHAPES = (
    Shape(2_000, 2, 3),
    Shape(2_000, 16, 32),
    Shape(20_000, 8, 10),
    Shape(50_000, 16, 8),
    Shape(200_000, 2, 8),
    Shape(20_000, 64, 32),
    Shape(5_000, 300, 8),
    Shape(1_000_000, 4, 8),
    Shape(500_000, 40, 12),
)
#: Runs of more operations are not measured.
_MOST_OPERATIONS = 1e10
#: Runs of each shape, of which the median counts.
_RUNS = 3
#: Runs of this many seconds are measured once: little disturbs them.
_ONCE = 1.0
#: Sites that centres are chosen from.
_SITES = 20
#: What a worker needs in addition to the run itself: the claim, the receipt, the end.
WORKER_SECONDS = 0.15
#: No measured run takes more than this many times its estimate.
_MOST_OVER = 1.2
#: Few measured runs take less than this many times their estimate.
_LEAST_OVER = 0.95
#: Errors of shorter runs count as if they took this long: no planned time is below one and a half times that.
_SHORT = 0.5
#: A third rate must lower the largest relative error by this much.
_WORTH = 0.3
#: Groups of the rows that are measured: enough for searches to list nearly as many candidates as they may.
_GROUPS = 64
#: Runs that take this many times their processor time were disturbed by other programs.
_DISTURBED = 1.25


@dataclass(frozen=True)
class Spent:
    """What a run took, by the clock and of the processor."""

    elapsed: float
    processor: float

    @property
    def seconds(self) -> float:
        """The time of a run that nothing disturbs: threads shorten it, other programs do not prolong it."""
        return min(self.elapsed, self.processor)


def calibrate(database: Database, clock: Clock, names: Sequence[str]) -> None:
    """Measure algorithms and questions by name, and store their rates in place of earlier ones.

    Rates are of the body of the kernels that is in use; those of another body are replaced, too.
    """
    spent: list[Spent] = []
    work = [(name, *each) for name in names for each in variants(name)]
    for name, objective, kind in work:
        found = measure(plans_of(name, objective, kind), spent)
        if not found:
            continue
        rates = fit(found)
        log.info("measured", algorithm=name, objective=objective, kind=kind, rates=rates)
        with database.write() as session:
            session.merge(
                Timing(
                    algorithm=name,
                    objective=objective,
                    kind=kind,
                    run_seconds=rates.run,
                    row_seconds=rates.row,
                    operation_seconds=rates.operation,
                    kernels=body_in_use(),
                    measured_at=clock.now(),
                )
            )
    if sum(run.elapsed for run in spent) > _DISTURBED * sum(run.processor for run in spent):
        log.warning("other programs use this machine; jobs that must share it with them will overrun")


def variants(name: str) -> list[tuple[str, str]]:
    """Return the objectives, and the kinds of records, that an algorithm or a question has rates for."""
    if name in questions.names():
        return [("", "dense"), ("", "table")]
    algorithm = registry.get(name)
    return [(objective, kind) for objective in algorithm.objectives for kind in algorithm.domains]


def plans_of(name: str, objective: str, kind: str) -> list[Plan]:
    """Return plans of several shapes; not those that would be refused, or take too long."""
    if name in questions.names():
        found = [question_plan(name, kind, shape) for shape in SHAPES]
    else:
        found = [plan_of(registry.get(name), objective, kind, shape) for shape in SHAPES]
    return [plan for plan in found if plan is not None and plan.work.operations <= _MOST_OPERATIONS]


def measure(plans: Sequence[Plan], spent: list[Spent]) -> list[tuple[Plan, float]]:
    """Return plans with the median time of some runs of each; adds all runs to `spent`."""
    kmeans.load()  # as a worker does: otherwise the first run would count the seconds of an import
    found = []
    for plan in plans:
        runs = [run(plan)]
        if runs[0].seconds < _ONCE:
            runs += [run(plan) for _ in range(_RUNS - 1)]
        spent += runs
        found.append((plan, statistics.median(each.seconds for each in runs)))
    return found


def fit(measured: Sequence[tuple[Plan, float]]) -> Rates:
    """Return the rates whose largest relative error is least.

    They are lowered where a run took less than estimated, but not so far that another took far longer.
    """
    seconds = np.array([taken for _, taken in measured]) + WORKER_SECONDS
    unit = np.maximum(seconds, min(_SHORT, seconds.max()))
    shares = np.array([_parts(plan) for plan, _ in measured]) / unit[:, None]
    scale, taken = shares.max(axis=0), seconds / unit
    # Rows in measurements go with operations: a rate for both is only worth having where one does not do.
    (alone, error), (both, least) = (
        _least_error(shares / scale, taken, rates) for rates in ((0, 2), (0, 1, 2))
    )
    found = alone if error <= least + _WORTH else both
    estimates = shares / scale @ found
    lowered = min(1.0, 1 / (_LEAST_OVER * estimates.max()))
    raised = max(lowered, 1 / (_MOST_OVER * (estimates / taken)[taken >= taken.max()].min()))
    run, row, operation = raised * found / scale
    return Rates(max(float(run), WORKER_SECONDS), float(row), float(operation))


def _least_error(shares: Floats, taken: Floats, rates: tuple[int, ...]) -> tuple[Floats, float]:
    """Return the rates, all but those named zero, whose largest error is least, and that error."""
    error = np.ones((len(shares), 1))
    above = np.concatenate([shares[:, rates], -error], axis=1)  # estimate <= taken + error
    below = np.concatenate([-shares[:, rates], -error], axis=1)  # estimate >= taken - error
    limits = np.concatenate([taken, -taken])
    solved = linprog([*[0] * len(rates), 1], np.concatenate([above, below]), limits)
    assert solved.x is not None  # rates of zero are always possible, with an error of one
    found = np.zeros(shares.shape[1])
    found[list(rates)] = solved.x[:-1]
    return found, float(solved.x[-1])


def _parts(plan: Plan) -> tuple[float, float, float]:
    """How often each rate counts in the time of a run."""
    size = plan.domain.size
    return 1.0, plan.measurements * size, operations_of(plan, size) + reading(plan, size)


def plan_of(
    algorithm: Algorithm,
    objective: str,
    kind: str,
    shape: Shape,
    *,
    pure: bool = False,
    epsilon: str = "1",
) -> Plan | None:
    """Plan a run of this shape; None where the algorithm refuses it."""
    domain = domain_of(kind, shape.rows, shape.columns)
    pure = pure or algorithm.guarantee == "pure"
    budget = Budget.of(epsilon) if pure else Budget.of(epsilon, "0.000001")
    request = Request(shape.k, budget, objective, algorithm.name, _options(algorithm, domain))
    try:
        return algorithm.plan(domain, request)
    except CoreError:
        return None


def question_plan(name: str, kind: str, shape: Shape, *, epsilon: str = "1") -> Plan | None:
    """Plan a typical question about rows and clusters of this shape; None where it is refused."""
    domain = domain_of(kind, shape.rows, shape.columns)
    stored = domain.table if isinstance(domain, Geometry) else domain
    asked = questions.get(name)
    anywhere = np.random.default_rng()  # synthetic centres: no noise and no data
    if isinstance(domain, Geometry):
        centres = domain.decode(domain.scatter(shape.k, anywhere))
    else:
        centres = anywhere.random((shape.k, domain.dimension))
    try:
        partitions = (Partition.of(stored, centres),) * asked.clusterings
        budget = Budget.of(epsilon, "0.000001")
        return asked.plan(stored, asked.typical(stored, Question(name, budget, partitions=partitions)))
    except CoreError:
        return None


def run(plan: Plan, groups: int = _GROUPS, source: DataSource | None = None) -> Spent:
    """Run a plan on rows of its public size, synthetic unless given; they are read as in a worker."""
    source = source or synthetic_source(plan.stored, max(plan.k, groups), plan.domain.size)
    clear_cache()
    gc.collect()
    begun, begun_processor = time.perf_counter(), time.process_time()
    for load in source.loaders():
        rows = load().rows
        stored = rows if isinstance(rows, np.ndarray) else rows.data
        for _ in range(2):  # when it comes from the database, and when it comes from the cache
            hashlib.sha256(np.ascontiguousarray(stored).tobytes()).digest()
        if not isinstance(plan.stored, Table):
            clip_encoded(rows, plan.stored.count if isinstance(plan.stored, Ids) else None)
    kinds.run(plan, source)
    return Spent(time.perf_counter() - begun, time.process_time() - begun_processor)


def domain_of(kind: str, rows: int, columns: int) -> Domain:
    """Return the domain of synthetic rows of a kind; `columns`: coordinates of a table."""
    match kind:
        case "sparse":
            return Sparse(dimension=max(16, columns), radius=1.0, size=rows)
        case "ids":
            return Ids(count=_SITES, size=rows)
        case "table":
            return Geometry.of(Table(declared=_columns(columns), size=rows))
    return Dense.box(0.0, 1.0, dimension=columns, size=rows)


def _columns(coordinates: int) -> tuple[Column, ...]:
    """Return columns of a table with this many coordinates: of each eight, four of levels and a boolean."""
    found: list[Column] = []
    for place in range(coordinates // 8):
        found += [
            Category(name=f"level {place}", levels=("a", "b", "c", "d")),
            Boolean(name=f"boolean {place}"),
        ]
    numbers = coordinates - 5 * (coordinates // 8)
    return (*found, *(Number(name=f"number {place}", low=0, high=1) for place in range(numbers)))


def _options(algorithm: Algorithm, domain: Domain) -> dict[str, Any]:
    """Return sites for algorithms that choose among them."""
    if not isinstance(algorithm, SiteAlgorithm):
        return {}
    along = np.linspace(0.0, 1.0, _SITES)
    if isinstance(domain, Ids):
        return {"sites": {"kind": "distances", "matrix": np.abs(along[:, None] - along).tolist()}}
    points = np.repeat(along[:, None], domain.dimension, axis=1)
    return {"sites": {"kind": "coordinates", "points": points.tolist()}}


def main() -> None:
    """Measure every algorithm and every question, with settings from the environment."""
    settings = Settings()
    configure(settings.log_format, settings.log_level)
    database = Database(settings.database_address())
    calibrate(database, SystemClock(), [*registry.names(), *questions.names()])
    database.dispose()
