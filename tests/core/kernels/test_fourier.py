"""Fourier sums are exact, and no phase is longer than declared."""

import numpy as np
import pytest

from core.kernels.fourier import AMPLITUDE, TURN, fourier_sums, trigonometric_table

DRAW = np.random.default_rng(5)


def test_no_phase_is_longer_than_its_amplitude() -> None:
    table = trigonometric_table().astype(np.int64)
    assert table.shape == (2, TURN)
    assert ((table**2).sum(axis=0) <= AMPLITUDE**2).all()


def test_values_rounded_to_the_nearest_integer_would_be_longer() -> None:
    """The plausible table: rounding instead of truncation breaks the bound for many phases."""
    angles = np.arange(TURN) * (2 * np.pi / TURN)
    rounded = np.rint(AMPLITUDE * np.stack([np.cos(angles), np.sin(angles)])).astype(np.int64)
    assert ((rounded**2).sum(axis=0) > AMPLITUDE**2).mean() > 0.1


def test_fourier_sums_are_those_of_integer_phases_row_by_row() -> None:
    rows = DRAW.integers(-30_000, 30_000, size=(50, 3)).astype(np.int32)
    matrix = DRAW.integers(-(1 << 24), 1 << 24, size=(3, 7))
    expected = np.zeros((2, 7), dtype=np.int64)
    for row in rows.tolist():
        for column in range(7):
            product = sum(x * int(w) for x, w in zip(row, matrix[:, column], strict=True))
            expected[:, column] += trigonometric_table()[:, (product >> 15) % TURN]
    assert np.array_equal(fourier_sums(rows, matrix), expected)


@pytest.mark.parametrize("eighth", range(8))
def test_sums_of_a_block_of_equal_rows_do_not_run_into_each_other(eighth: int) -> None:
    """The longest sums there are: every row of a large block adds the same, packed in one number."""
    rows, phase = np.ones((1 << 18, 1), dtype=np.int16), eighth * (TURN // 8)
    expected = trigonometric_table()[:, [phase]].astype(np.int64) << 18
    assert np.array_equal(fourier_sums(rows, np.array([[phase << 15]])), expected)
