"""Fast kernels give the integers of the plain definitions, and the cache keeps what saves most."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import scipy.sparse as sp

from core.data import UNITS, Chunk, Dense
from core.kernels import counting, geometry
from core.kernels.accumulate import clipped_sums, column_sums
from core.kernels.clipping import WEIGHT_ONE, clip_weights
from core.kernels.counting import bin_counts, value_counts
from core.kernels.geometry import nearest
from core.views import Assigned, Encoded, PathCodes, Projected
from core.views.cache import CACHE_BYTES, clear_cache, limit_cache

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


@pytest.mark.parametrize("sparse", [False, True])
def test_clipped_sums_are_weighted_residuals_one_by_one(sparse: bool) -> None:
    rows = DRAW.integers(-9000, 9000, size=(500, 3)).astype(np.int16)
    centres = DRAW.integers(-5000, 5000, size=(4, 3))
    radii = np.array([1, 400, 6000, 60_000])
    labels, squared = nearest(rows, centres, 1 << 16)
    expected = np.zeros((4, 3), dtype=np.int64)
    for row, label, weight in zip(rows, labels, clip_weights(squared, radii[labels]), strict=True):
        expected[label] += weight * (row.astype(np.int64) - centres[label])
    found = clipped_sums(
        sp.csr_array(rows) if sparse else rows, labels.astype(np.int16), squared, radii, centres
    )
    assert np.array_equal(found, expected)
    assert np.abs(found[0]).max() <= WEIGHT_ONE * np.count_nonzero(labels == 0)


def test_column_sums_of_no_rows_are_zero() -> None:
    assert column_sums(np.zeros((0, 3), dtype=np.int16)).tolist() == [0, 0, 0]
    assert column_sums(np.array([[1, -2], [30_000, 5]], dtype=np.int16)).tolist() == [30_001, 3]


@pytest.mark.parametrize("kind", [np.int64, np.uint32])
@pytest.mark.parametrize("bins", [1, 4, counting._FEW_BINS + 20])
def test_bins_are_counted_like_one_by_one(kind: type, bins: int) -> None:
    limits = [*np.unique(DRAW.integers(0, 1 << 34, size=bins - 1)).tolist(), 1 << 36]
    values = DRAW.integers(0, 1 << 32, size=2000).astype(kind)
    values[: bins - 1] = np.minimum(limits[:-1], (1 << 32) - 1)  # on the limits themselves
    labels = DRAW.integers(3, size=2000).astype(np.int16)
    expected = np.zeros((3, len(limits)), dtype=np.int64)
    for label, value in zip(labels, values, strict=True):
        place = next((b for b, limit in enumerate(limits) if int(value) <= limit), len(limits) - 1)
        expected[label, place] += 1
    assert np.array_equal(bin_counts(labels, values, np.array(limits), 3), expected)


@pytest.mark.parametrize("table_bits", [20, 3])
def test_values_are_counted_where_they_are_listed_and_nowhere_else(
    table_bits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counting, "_TABLE_BITS", table_bits)
    values = DRAW.integers(0, 1 << 8, size=5000).astype(np.int32)
    listed = np.array([0, 3, 17, 31])
    expected = [int(np.count_nonzero(values >> 3 == each)) for each in listed]
    assert value_counts(values, 3, listed, 5).tolist() == expected


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


@pytest.fixture
def small_cache() -> Iterator[Callable[[int], None]]:
    clear_cache()
    yield limit_cache
    limit_cache(CACHE_BYTES)
    clear_cache()


def test_a_full_cache_keeps_assignments_rather_than_the_rows_they_were_made_from(
    small_cache: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = DRAW.integers(-9000, 9000, size=(1000, 4)).astype(np.int16)
    chunks = [Chunk(rows[start : start + 100], start, ("cached", start)) for start in range(0, 1000, 100)]
    projected = Projected(Encoded.of(WIDE), np.eye(4, dtype=np.int64) << 15, UNITS)
    assigned = Assigned(projected, DRAW.integers(-9000, 9000, size=(3, 4)))
    small_cache(8_000)  # all projected rows (8 bytes each) would fill it; assignments take 6 bytes
    first = [assigned.assignment(chunk).labels.copy() for chunk in chunks]
    calls: list[int] = []
    monkeypatch.setattr("core.views.assigned.nearest", lambda *_: calls.append(1))
    again = [assigned.assignment(chunk).labels for chunk in chunks]
    assert calls == []
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
