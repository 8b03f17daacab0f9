"""A full cache keeps what saves most."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import psutil
import pytest

from core.data import UNITS, Chunk, Dense
from core.kernels.cache import CACHE_BYTES, default_cache_bytes
from core.kernels.geometry import project
from core.views import Assigned, Encoded, Projected, clear_cache, limit_cache

DRAW = np.random.default_rng(9)

WIDE = Dense.ball(1.0, dimension=4, size=1000)


@pytest.fixture
def small_cache() -> Iterator[Callable[[int], None]]:
    clear_cache()
    yield limit_cache
    limit_cache(default_cache_bytes())
    clear_cache()


def test_a_full_cache_keeps_assignments_rather_than_the_rows_they_were_made_from(
    small_cache: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = DRAW.integers(-9000, 9000, size=(1000, 4)).astype(np.int16)
    chunks = [Chunk(rows[start : start + 100], start, ("cached", start)) for start in range(0, 1000, 100)]
    projected = Projected(Encoded.of(WIDE), np.eye(4, dtype=np.int64) << 14, UNITS)
    assigned = Assigned(projected, DRAW.integers(-9000, 9000, size=(3, 4)))
    small_cache(8_000)  # all projected rows (8 bytes each) would fill it; assignments take 6 bytes
    first = [assigned.assignment(chunk).labels.copy() for chunk in chunks]
    calls: list[int] = []
    monkeypatch.setattr("core.views.assigned.nearest", lambda *_: calls.append(1))
    again = [assigned.assignment(chunk).labels for chunk in chunks]
    assert calls == []
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))


def test_a_dataset_of_one_chunk_does_not_fill_the_cache_with_views_that_are_out_of_use(
    small_cache: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trees of many levels did: then the projection under all of them was made again for every level."""
    chunk = Chunk(DRAW.integers(-9000, 9000, size=(100, 4)).astype(np.int16), 0, "alone")
    projected = Projected(Encoded.of(WIDE), np.eye(4, dtype=np.int64) << 14, UNITS)
    small_cache(60_000)  # projected rows take 800 bytes, assignments 600
    made: list[int] = []

    def counted(*given: Any) -> Any:
        made.append(1)
        return project(*given)

    monkeypatch.setattr("core.views.rows.project", counted)
    for number in range(300):
        Assigned(projected, np.full((1, 4), number)).assignment(chunk)
    assert len(made) < 20


def test_rows_that_a_projection_leaves_as_they_are_are_not_kept_twice() -> None:
    chunk = Chunk(DRAW.integers(-9000, 9000, size=(100, 4)).astype(np.int16), 0, "unmoved")
    root, same = Encoded.of(WIDE), np.eye(4, dtype=np.int64) << 15
    assert Projected(root, same, UNITS).rows(chunk) is chunk.rows
    for moved in (Projected(root, same, UNITS - 1), Projected(root, same, UNITS, np.array([0, 0, 0, 1]))):
        assert moved.rows(chunk) is not chunk.rows


def test_the_cache_takes_a_share_of_the_memory_unless_a_size_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    assert CACHE_BYTES <= default_cache_bytes() <= max(CACHE_BYTES, psutil.virtual_memory().total // 8)
    monkeypatch.setenv("CAIRN_VIEW_CACHE_BYTES", "1000")
    assert default_cache_bytes() == 1000
