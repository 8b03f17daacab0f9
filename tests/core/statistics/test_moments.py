"""Second moments are exact, and coarse ones keep their declared sensitivity."""

import numpy as np
import pytest
import scipy.sparse as sp

from core.data import UNITS, Chunk, Dense
from core.kernels.accumulate import rows_in_singles, second_moments
from core.kernels.clipping import WEIGHT_ONE, clip_weights
from core.statistics import (
    SecondMoments,
)
from core.views import (
    Encoded,
)

DENSE = Dense.ball(float(UNITS), dimension=3, size=100)  # encoded units are the data's own


def chunk_of(rows: np.ndarray, sparse: bool) -> Chunk:
    encoded = rows.astype(np.int16)
    return Chunk(sp.csr_array(encoded) if sparse else encoded, 0, object())


def test_second_moments_are_the_packed_upper_triangle() -> None:
    chunk = chunk_of(np.array([[1, 2, 3], [4, 5, 6]]), sparse=False)
    moments = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 100).of(chunk)
    assert moments.tolist() == [[17, 22, 27, 29, 36, 45]]


def test_second_moments_of_coarse_rows_count_the_nearest_steps() -> None:
    chunk = chunk_of(np.array([[7, -7, 9], [-9, 15, 16]]), sparse=False)
    moments = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 100, shift=3).of(chunk)
    assert moments.tolist() == [[2, -3, -1, 5, 3, 1 + 4]]


def test_coarse_rows_that_are_not_clipped_again_would_break_their_declaration() -> None:
    """The wrong version: this row is inside its radius, but not any more once it is rounded."""
    row = np.array([[106, 74, 58]])
    declared = SecondMoments(Encoded.of(DENSE), np.zeros(3, dtype=np.int64), 143, shift=4)
    right = declared.of(chunk_of(row, sparse=False)) / declared.sensitivity.scales
    assert np.sqrt((right**2).sum()) <= 1
    steps = np.rint(row[0] / 16)
    rounded = np.outer(steps, steps)[np.triu_indices(3)] / declared.sensitivity.scales
    assert np.sqrt((rounded**2).sum()) > 1


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
