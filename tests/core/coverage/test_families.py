"""Balls hold the records within their radius, and refuse what would not be exact."""

import numpy as np
import numpy.typing as npt
import pytest

from core.coverage import Balls, SiteBalls
from core.data import UNITS, ArraySource, Dense, Ids, read_sites
from core.views import Encoded, SiteDistances

DOMAIN = Dense.box([-1, -1], [1, 1], size=500)

IDS = Ids(count=9, size=500)


def rows(count: int = 400) -> npt.NDArray[np.float64]:
    return np.random.default_rng(3).uniform(-1, 1, size=(count, 2))


def source(chunk_rows: int | None = None) -> ArraySource:
    return ArraySource(DOMAIN, rows(), chunk_rows=chunk_rows)


def matrix() -> SiteBalls:
    between = np.abs(np.subtract.outer(np.arange(9.0), np.arange(9.0)))
    sites = SiteDistances.of(IDS, read_sites(IDS, {"kind": "distances", "matrix": between.tolist()}))
    return SiteBalls(sites, (0, UNITS // 8, 3 * UNITS // 8))


def on_the_map(metric: str) -> SiteBalls:
    points = np.random.default_rng(9).uniform(-0.9, 0.9, size=(30, 2))
    given = {"kind": "coordinates", "metric": metric, "points": points.tolist()}
    sites = SiteDistances.of(DOMAIN, read_sites(DOMAIN, given))
    return SiteBalls(sites, (60, 120, 400) if metric == "great-circle" else (2000, 4000, 50000))


def ids_source(chunk_rows: int | None = None) -> ArraySource:
    return ArraySource(IDS, np.random.default_rng(5).integers(0, 9, 300), chunk_rows=chunk_rows)


@pytest.mark.parametrize(
    "family",
    [matrix(), on_the_map("euclidean"), on_the_map("great-circle")],
    ids=["matrix", "plane", "sphere"],
)
def test_site_balls_agree_with_the_distances_to_sites(family: SiteBalls) -> None:
    chunk = (ids_source() if family.sites.metric == "matrix" else source()).loaders()[0]()
    everyone = np.arange(len(chunk))
    distances = family.sites.distances(np.asarray(chunk.rows))
    for level, radius in enumerate(family.radii):
        for index in range(family.size(level)):
            assert np.array_equal(family.holds(chunk, level, index, everyone), distances[:, index] <= radius)


def test_points_and_radii_that_leave_exact_arithmetic_are_refused() -> None:
    view = Encoded.of(DOMAIN)
    for points, radii in (
        (np.zeros((1, 3), int), (1,)),
        (np.full((1, 2), 1 << 20), (1,)),
        (np.zeros((1, 2), int), (-1,)),
    ):
        with pytest.raises(ValueError):
            Balls(view, points, radii)
