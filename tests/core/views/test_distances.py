"""Public sites are checked before use, and records know how far they are from them."""

import math
from typing import Any

import numpy as np
import pytest

from core.data import UNITS, Chunk, Dense, Ids, read_sites
from core.views import SiteDistances

PLANE = Dense.box([0, 0], [10, 10], size=100)

GLOBE = Dense.box([-90, -180], [90, 180], ["latitude", "longitude"], size=100)

NAMED = Ids(count=3, size=100)

MATRIX = [[0, 1, 2], [1, 0, 4], [2, 4, 0]]

EARTH_RADIUS_KM = 6371.0088
ARC_KM = EARTH_RADIUS_KM * math.pi / UNITS  # one step of arc


def coordinates(*points: list[float], metric: str = "euclidean") -> dict[str, Any]:
    return {"kind": "coordinates", "metric": metric, "points": list(points)}


def test_euclidean_distances_are_integer_square_roots_within_reach() -> None:
    sites = read_sites(PLANE, coordinates([0, 0], [10, 10], [5, 5]))
    view = SiteDistances.of(PLANE, sites)
    rows = PLANE.encode(np.random.default_rng(1).uniform(0, 10, size=(200, 2)))
    found = view.distances(rows)
    for row, distances in zip(rows.astype(int).tolist(), found.tolist(), strict=True):
        for site, distance in zip(view.sites.tolist(), distances, strict=True):
            squared = (row[0] - site[0]) ** 2 + (row[1] - site[1]) ** 2
            assert distance == min(math.isqrt(squared), view.reach)
    assert view.reach == pytest.approx(2 * UNITS, abs=2)


def test_great_circle_distances_are_arcs_in_kilometres() -> None:
    places = [[51.4779, 0.0], [-33.8688, 151.2093], [90.0, 0.0], [-51.4779, -180.0]]
    view = SiteDistances.of(GLOBE, read_sites(GLOBE, coordinates(*places, metric="great-circle")))
    found = view.distances(GLOBE.encode(np.array([[51.4779, 0.0]])))[0] * ARC_KM
    expected = [0.0, 17_000.0, EARTH_RADIUS_KM * math.radians(90 - 51.4779), EARTH_RADIUS_KM * math.pi]
    assert found == pytest.approx(expected, abs=30)  # an encoded step of latitude is about a kilometre
    assert found.max() <= view.reach * ARC_KM


def test_distances_do_not_depend_on_which_records_are_asked_together() -> None:
    draw = np.random.default_rng(2)
    places = draw.uniform([-90, -180], [90, 180], size=(30, 2)).tolist()
    rows = GLOBE.encode(draw.uniform([-90, -180], [90, 180], size=(101, 2)))
    for metric in ("great-circle", "euclidean"):
        view = SiteDistances.of(GLOBE, read_sites(GLOBE, coordinates(*places, metric=metric)))
        together = view.distances(rows)
        alone = np.concatenate([view.distances(rows[i : i + 1]) for i in range(len(rows))])
        assert np.array_equal(together, alone)


def test_records_that_name_sites_are_counted_and_looked_up() -> None:
    view = SiteDistances.of(NAMED, read_sites(NAMED, {"kind": "distances", "matrix": MATRIX}))
    rows, weights = view.weighted(Chunk(np.array([2, 0, 2, 2], dtype=np.int32), 0, "a"))
    assert weights.tolist() == [1, 0, 3]
    step = np.max(MATRIX) / UNITS
    assert view.distances(rows) * step == pytest.approx(np.array(MATRIX, dtype=float), abs=step)
