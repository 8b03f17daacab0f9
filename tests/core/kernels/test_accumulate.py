"""Sums over rows are those of plain integers, one by one."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.kernels.accumulate import clipped_sums, column_sums
from core.kernels.clipping import WEIGHT_ONE, clip_weights
from core.kernels.geometry import nearest

DRAW = np.random.default_rng(9)


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
