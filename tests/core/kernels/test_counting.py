"""Counts of bins and values are those made one by one."""

import numpy as np
import pytest

from core.kernels import counting
from core.kernels.counting import bin_counts, value_counts

DRAW = np.random.default_rng(9)


@pytest.mark.parametrize("kind", [np.int64, np.uint32])
@pytest.mark.parametrize("bins", [1, 4, counting._FEW_BINS + 20])
def test_bins_are_counted_like_one_by_one(kind: type, bins: int) -> None:
    limits = [*np.unique(DRAW.integers(0, 1 << 34, size=bins - 1)).tolist(), 1 << 36]
    values: np.ndarray = DRAW.integers(0, 1 << 32, size=2000).astype(kind)
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
    monkeypatch.setattr(counting, "TABLE_BITS", table_bits)
    values = DRAW.integers(0, 1 << 8, size=5000).astype(np.int32)
    listed = np.array([0, 3, 17, 31])
    expected = [int(np.count_nonzero(values >> 3 == each)) for each in listed]
    assert value_counts(values, 3, listed, 5).tolist() == expected
