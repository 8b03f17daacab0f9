"""Calibrate planned times: measure algorithms on synthetic rows, and store what this machine needs.

No rows of a dataset are read, so the times are as public as the machine is.
"""

import gc
import hashlib
import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import structlog
from scipy.optimize import linprog

from core.algorithms import registry
from core.algorithms.base import Algorithm, SiteAlgorithm
from core.data import Dense, Domain, Ids, Sparse, clip_encoded
from core.errors import CoreError
from core.plan import Plan, Request
from core.privacy import Budget
from core.views import clear_cache
from service.jobs.timing import Rates
from service.operations.clock import Clock, SystemClock
from service.operations.database import Database
from service.operations.logs import configure
from service.operations.settings import Settings
from service.operations.tables import Timing
from service.workers.rehearsal import synthetic_source

log = structlog.get_logger()

#: Rows, columns and clusters of the runs that are measured.
_SHAPES = ((2_000, 2, 3), (50_000, 2, 3), (20_000, 16, 8), (100_000, 16, 8), (20_000, 64, 8))
#: Runs beyond this are not measured, and each shape is measured so often; the slowest run counts.
_MOST_OPERATIONS, _RUNS = 1e10, 3
_SITES = 20
#: What a worker needs beside the run itself: the claim, the receipt, the end.
_WORKER_SECONDS = 0.15


def calibrate(database: Database, clock: Clock, names: Sequence[str]) -> None:
    """Measure algorithms by name, and store their rates in place of earlier ones."""
    for algorithm in (registry.get(name) for name in names):
        for objective in algorithm.objectives:
            for kind in algorithm.domains:
                found = [seen for shape in _SHAPES for seen in _measure(algorithm, objective, kind, *shape)]
                if not found:
                    continue
                rates = fit(found)
                log.info("measured", algorithm=algorithm.name, objective=objective, kind=kind, rates=rates)
                with database.write() as session:
                    session.merge(
                        Timing(
                            algorithm=algorithm.name,
                            objective=objective,
                            kind=kind,
                            run_seconds=rates.run,
                            row_seconds=rates.row,
                            operation_seconds=rates.operation,
                            measured_at=clock.now(),
                        )
                    )


def fit(measured: Sequence[tuple[Plan, float]]) -> Rates:
    """Return the rates whose estimates are never below these times of runs, and above them by least."""
    parts = np.array(
        [[1.0, plan.measurements * plan.domain.size, plan.work.operations] for plan, _ in measured]
    )
    shares = parts / np.array([seconds for _, seconds in measured])[:, None]
    scale = shares.max(axis=0)
    found = linprog((shares / scale).sum(axis=0), A_ub=-shares / scale, b_ub=-np.ones(len(shares)))
    run, row, operation = found.x / scale
    return Rates(float(run) + _WORKER_SECONDS, float(row), float(operation))


def _measure(
    algorithm: Algorithm, objective: str, kind: str, rows: int, columns: int, k: int
) -> list[tuple[Plan, float]]:
    """Return a plan and the slowest of some runs; nothing where the algorithm refuses such a plan."""
    domain = _domain(kind, rows, columns)
    if domain is None:
        return []
    budget = Budget.of("1") if algorithm.guarantee == "pure" else Budget.of("1", "0.000001")
    try:
        plan = algorithm.plan(
            domain, Request(k, budget, objective, algorithm.name, _options(algorithm, domain))
        )
    except CoreError:
        return []
    if plan.work.operations > _MOST_OPERATIONS:
        return []
    return [(plan, max(_seconds(plan, domain) for _ in range(_RUNS)))]


def _seconds(plan: Plan, domain: Dense | Sparse | Ids) -> float:
    """Run a plan on synthetic rows of its public size; reading them costs what it does in a worker."""
    source = synthetic_source(domain, plan.k, domain.size)
    clear_cache()
    gc.collect()
    begun = time.perf_counter()
    for load in source.loaders():
        rows = load().rows
        stored = rows if isinstance(rows, np.ndarray) else rows.data
        for _ in range(2):  # when it comes from the database, and when it comes from the cache
            hashlib.sha256(np.ascontiguousarray(stored).tobytes()).digest()
        clip_encoded(rows, domain.count if isinstance(domain, Ids) else None)
    registry.run(plan, source)
    return time.perf_counter() - begun


def _domain(kind: str, rows: int, columns: int) -> Dense | Sparse | Ids | None:
    made: dict[str, Dense | Sparse | Ids] = {
        "dense": Dense.box(0.0, 1.0, dimension=columns, size=rows),
        "sparse": Sparse(dimension=max(16, columns), radius=1.0, size=rows),
        "ids": Ids(count=_SITES, size=rows),
    }
    return made.get(kind)


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
    """Measure every algorithm, with settings from the environment."""
    settings = Settings()
    configure(settings.log_format, settings.log_level)
    database = Database(settings.database_address())
    calibrate(database, SystemClock(), registry.names())
    database.dispose()
