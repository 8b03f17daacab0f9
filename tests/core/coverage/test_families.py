"""Balls hold the records within their radius, and refuse what would not be exact."""

import numpy as np
import pytest

from core.coverage.families import Balls, SiteBalls
from core.views import Encoded
from tests.support.coverage import DOMAIN, ids_source, matrix, on_the_map, source


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
            assert np.array_equal(
                family.holds(family.positions(chunk, everyone), level, index), distances[:, index] <= radius
            )


def test_points_and_radii_that_leave_exact_arithmetic_are_refused() -> None:
    view = Encoded.of(DOMAIN)
    for points, radii in (
        (np.zeros((1, 3), int), (1,)),
        (np.full((1, 2), 1 << 20), (1,)),
        (np.zeros((1, 2), int), (-1,)),
    ):
        with pytest.raises(ValueError):
            Balls(view, points, radii)
