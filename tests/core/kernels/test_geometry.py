"""Fast kernels give the integers of the plain definitions, and the cache keeps what saves most."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.data import Chunk, Dense
from core.kernels import geometry
from core.kernels.geometry import nearest
from core.views import Encoded, PathCodes

DRAW = np.random.default_rng(9)

WIDE = Dense.ball(1.0, dimension=4, size=1000)


def plain_distances(rows: np.ndarray, centres: np.ndarray) -> np.ndarray:
    away = rows.astype(object)[:, None, :] - centres.astype(object)[None, :, :]
    return (away * away).sum(axis=2).astype(np.int64)


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


@pytest.mark.parametrize("halvings", [9, 33])
def test_a_path_goes_through_the_halves_that_hold_the_row(halvings: int) -> None:
    axes = tuple(place % 3 for place in range(halvings))
    low, widths = np.array([-20_000, -5, 0]), np.array([3 << 14, 1 << 14, 1 << 14])
    rows = DRAW.integers(-32_767, 32_768, size=(200, 4)).astype(np.int16)
    expected = []
    for row in rows.astype(np.int64):
        box = [[int(low[a]), int(low[a] + widths[a])] for a in range(3)]
        code = 0
        for axis in axes:
            middle = sum(box[axis]) // 2
            upper = min(max(int(row[axis]), int(low[axis])), int(low[axis] + widths[axis]) - 1) >= middle
            box[axis][0 if upper else 1] = middle
            code = 2 * code + upper
        expected.append(code)
    chunk = Chunk(rows, 0, ("paths", halvings))
    assert PathCodes(Encoded.of(WIDE), low, widths, axes).codes(chunk).tolist() == expected
