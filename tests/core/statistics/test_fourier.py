"""Fourier sums: what a record adds has the declared length, wherever the record lies."""

import math

import numpy as np
import pytest

from core.kernels.fourier import AMPLITUDE
from core.statistics.fourier import FourierSums
from core.views import Encoded
from tests.support.rows import DENSE, chunk_of

VIEW = Encoded.of(DENSE)
DRAW = np.random.default_rng(6)


def test_every_record_adds_a_vector_of_nearly_the_declared_length_and_none_is_longer() -> None:
    """Features are of one length for all records: with a smaller scale, records everywhere would break it."""
    statistic = FourierSums(VIEW, DRAW.integers(-(1 << 22), 1 << 22, size=(3, 20)))
    rows = DENSE.encode(DRAW.normal(scale=20_000, size=(200, 3))).astype(np.int64)
    added = [int((statistic.of(chunk_of(row[None, :])) ** 2).sum()) for row in rows]
    assert max(added) <= statistic.length**2
    assert min(added) > 0.998 * statistic.length**2


@pytest.mark.parametrize("count", [1, 2, 3, 1000])
def test_the_scale_is_the_least_integer_that_bounds_all_frequencies_together(count: int) -> None:
    statistic = FourierSums(VIEW, np.ones((3, count), dtype=np.int64))
    assert statistic.length == math.ceil(math.sqrt(count) * AMPLITUDE)
    assert statistic.length**2 >= count * AMPLITUDE**2
    assert statistic.sensitivity.scales.tolist() == [statistic.length]
    assert statistic.shape == (1, 2 * count)


@pytest.mark.parametrize(
    "matrix",
    [
        np.zeros((2, 4), dtype=np.int64),
        np.zeros((3, 0), dtype=np.int64),
        np.full((3, 1), 1 << 40),
        np.ones((3, 2)),
    ],
    ids=["narrow", "none", "long", "floats"],
)
def test_frequencies_without_exact_phases_are_refused(matrix: np.ndarray) -> None:
    with pytest.raises(ValueError, match="frequenc"):
        FourierSums(VIEW, matrix)
