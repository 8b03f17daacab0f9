"""Fast kernels give the integers of the plain definitions."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.kernels import geometry
from core.kernels.geometry import nearest

DRAW = np.random.default_rng(9)


def plain_distances(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    away = rows.astype(object)[:, None, :] - centres.astype(object)[None, :, :]
    squared: np.ndarray = (away * away).sum(axis=2).astype(np.int64)
    return squared


@pytest.mark.parametrize("largest", [3, 1 << 17])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("group", [1 << 12, 4])
def test_the_nearest_centre_is_that_of_plain_integers(
    largest: int, sparse: bool, group: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(geometry, "_MOST_CENTRES", group)
    rows = DRAW.integers(-min(largest, 30_000), min(largest, 30_000), size=(300, 3)).astype(np.int16)
    centres = DRAW.integers(-largest, largest + 1, size=(17, 3))  # small numbers: many ties
    distances = plain_distances(rows, centres)
    labels, squared = nearest(sp.csr_array(rows) if sparse else rows, centres, 1 << 16)
    assert np.array_equal(labels, distances.argmin(axis=1))
    assert np.array_equal(squared, distances.min(axis=1))


def test_distances_at_the_end_of_the_range_stay_exact() -> None:
    """Rows and centres of norm 2^24, as on a sphere: few centres fit into one double beside a score."""
    radius = 1 << 24
    centres = np.array([[radius, 0], [0, -radius], [radius - 1, 1], *[[-radius, -i] for i in range(20)]])
    rows = np.array([[-radius, 0], [-radius, 19], [radius, 1], [0, 0]], dtype=np.int32)
    distances = plain_distances(rows, centres)
    labels, squared = nearest(rows, centres, radius + 1)
    assert np.array_equal(labels, distances.argmin(axis=1))
    assert np.array_equal(squared, distances.min(axis=1))
