"""Totals add up the same in any order and grouping."""

import numpy as np
import pytest

from core.kernels.sparse_counts import SparseCounts


def as_dictionary(counts: SparseCounts) -> dict[int, int]:
    return dict(zip(counts.cells.tolist(), counts.counts.tolist(), strict=True))


def test_sparse_counts_add_like_dictionaries() -> None:
    one, other = SparseCounts.of(100, np.array([7, 3, 7])), SparseCounts.of(100, np.array([3, 99]))
    assert as_dictionary(one + other) == {3: 2, 7: 2, 99: 1}
    assert as_dictionary(one + SparseCounts.none(100)) == {3: 1, 7: 2}


def test_any_grouping_of_records_gives_the_same_sparse_counts() -> None:
    cells = np.random.default_rng(3).integers(0, 1 << 60, size=300) // (1 << 54)
    whole = SparseCounts.of(1 << 60, cells)
    parts = SparseCounts.none(1 << 60)
    for start in range(0, 300, 7):
        parts = SparseCounts.of(1 << 60, cells[start : start + 7]) + parts
    assert as_dictionary(parts) == as_dictionary(whole)


def test_counts_over_different_families_do_not_add() -> None:
    with pytest.raises(ValueError, match="same family"):
        SparseCounts.none(3) + SparseCounts.none(4)
