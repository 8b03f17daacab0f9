"""Domains, rows, families of sets and plans for tests of coverage loops."""

import numpy as np
import numpy.typing as npt

from core.coverage.families import Balls, SiteBalls
from core.coverage.grid_balls import GridBalls
from core.coverage.loop import CoverageLoop
from core.data import UNITS, ArraySource, Dense, Ids, read_sites
from core.mechanisms.coverage_choice import CoverageChoice
from core.plan import Plan, Step
from core.privacy import Budget
from core.views import Encoded, SiteDistances

DOMAIN = Dense.box([-1, -1], [1, 1], size=500)
IDS = Ids(count=9, size=500)


def rows(count: int = 400) -> npt.NDArray[np.float64]:
    return np.random.default_rng(3).uniform(-1, 1, size=(count, 2))


def source(chunk_rows: int | None = None) -> ArraySource:
    return ArraySource(DOMAIN, rows(), chunk_rows=chunk_rows)


def ids_source(chunk_rows: int | None = None) -> ArraySource:
    return ArraySource(IDS, np.random.default_rng(5).integers(0, 9, 300), chunk_rows=chunk_rows)


def balls() -> Balls:
    points = np.random.default_rng(4).integers(-23000, 23000, size=(30, 2))
    return Balls(Encoded.of(DOMAIN), points, (3000, 6000, 12000))


def grid() -> GridBalls:
    return GridBalls(Encoded.of(DOMAIN), (3000, 6000, 12000), 2)


def matrix() -> SiteBalls:
    between = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    sites = SiteDistances.of(IDS, read_sites(IDS, {"kind": "distances", "matrix": between.tolist()}))
    return SiteBalls(sites, (0, UNITS // 8, 3 * UNITS // 8))


def on_the_map(metric: str) -> SiteBalls:
    points = np.random.default_rng(9).uniform(-0.9, 0.9, size=(30, 2))
    given = {"kind": "coordinates", "metric": metric, "points": points.tolist()}
    sites = SiteDistances.of(DOMAIN, read_sites(DOMAIN, given))
    return SiteBalls(sites, (60, 120, 400) if metric == "great-circle" else (2000, 4000, 50000))


def plan_for(domain: Dense | Ids, rounds: int, mechanism: CoverageChoice | None = None) -> Plan:
    step = Step("cover", mechanism or CoverageChoice(1.0), CoverageLoop.kind, rounds)
    return Plan("x", "medians", 2, domain, Budget.of(1, "0.01"), (step,))
