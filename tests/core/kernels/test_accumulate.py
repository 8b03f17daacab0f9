"""Sums over rows are those of plain integers, one by one."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.kernels.accumulate import clipped_sums, column_sums, rows_in_singles, second_moments
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


@pytest.mark.parametrize("radius", [40, 256, 257, 2000])
@pytest.mark.parametrize("column", [0, 30_000], ids=["spread", "one column"])
def test_second_moments_are_exact_on_any_rows(radius: int, column: int) -> None:
    """Radii on both sides of single precision; squares of one column add up to the most they can."""
    draw = np.random.default_rng(3)
    rows = draw.integers(-300, 300, size=(5000, 20)).astype(np.int16)
    if column:
        rows[:] = 0
        rows[:, 7] = column
    exact = rows.astype(np.int64)
    weights = clip_weights((exact**2).sum(axis=1), radius)
    clipped = np.trunc(exact * weights[:, None] / WEIGHT_ONE).astype(np.int64)
    expected = (clipped.T @ clipped)[np.triu_indices(20)]
    assert np.array_equal(second_moments(rows, np.zeros(20, dtype=np.int64), radius), expected)


def test_one_row_more_than_single_precision_holds_would_be_rounded() -> None:
    """The wrong version: a block of one row more than the bound allows."""
    reach = 256
    rows = np.full((rows_in_singles(reach) + 1, 1), reach, dtype=np.float32)
    rows[-1] = 1
    # Compared as Python's integers: numpy would round the right side to single precision, too.
    assert int((rows[:-1].T @ rows[:-1]).item()) == 1 << 24
    assert int((rows.T @ rows).item()) != (1 << 24) + 1
