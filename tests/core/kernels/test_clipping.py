"""Clipping never lets a norm exceed its radius, and rounding to nearest would."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core.data import UNITS
from core.kernels.clipping import WEIGHT_ONE, clip_weights, clipped_block, lifted_heights


def test_a_residual_clipped_by_a_rounded_factor_would_break_its_declaration() -> None:
    """The wrong version: weights rounded to nearest instead of down exceed the radius."""
    squared = np.arange(2, 200_000, dtype=np.int64)
    radius = 9
    nearest = np.minimum(WEIGHT_ONE, np.rint(WEIGHT_ONE * radius / np.sqrt(squared))).astype(np.int64)
    assert (nearest**2 * squared > (WEIGHT_ONE * radius) ** 2).any()
    weights = clip_weights(squared, radius)
    assert (weights**2 * squared <= (WEIGHT_ONE * radius) ** 2).all()
    larger = np.minimum(weights + 1, WEIGHT_ONE)
    assert ((larger**2 * squared > (WEIGHT_ONE * radius) ** 2) | (weights == WEIGHT_ONE)).all()


@given(
    hnp.arrays(np.int64, 20, elements=st.integers(0, 4 * UNITS**2)),
    hnp.arrays(np.int64, 20, elements=st.integers(1, 2 * UNITS)),
)
def test_clipping_weights_never_let_a_norm_exceed_its_radius(squared: np.ndarray, radii: np.ndarray) -> None:
    for weight, square, radius in zip(clip_weights(squared, radii), squared, radii, strict=True):
        assert 0 <= weight <= WEIGHT_ONE
        assert int(weight) ** 2 * int(square) <= WEIGHT_ONE**2 * int(radius) ** 2


@given(hnp.arrays(np.int64, (5, 4), elements=st.integers(-2 * UNITS, 2 * UNITS)), st.integers(1, 2 * UNITS))
def test_clipped_rows_are_integers_inside_the_radius(rows: np.ndarray, radius: int) -> None:
    floats = rows.astype(np.float64)
    clipped = clipped_block(floats, (rows**2).sum(axis=1), radius)
    assert (clipped == np.trunc(clipped)).all()
    assert ((clipped.astype(np.int64) ** 2).sum(axis=1) <= radius**2).all()


@given(
    hnp.arrays(np.int64, 20, elements=st.integers(0, 4 * UNITS**2)),
    hnp.arrays(np.int64, 20, elements=st.integers(1, 2 * UNITS)),
)
def test_heights_are_the_largest_that_keep_a_record_inside_its_radius(
    squared: np.ndarray, radii: np.ndarray
) -> None:
    for height, square, radius in zip(lifted_heights(squared, radii), squared, radii, strict=True):
        room = max(int(radius) ** 2 - int(square), 0)
        assert int(height) == math.isqrt(room)
