"""Losses are positive, and a group of rows pays what group privacy says."""

import math

import pytest

from core.privacy.losses import ZCDP, Approximate, Gaussian, Pure


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_group_of_rows_pays_what_group_privacy_says(rows: int) -> None:
    assert Pure(0.1).for_group(rows).epsilon == pytest.approx(0.1 * rows)
    assert Gaussian(0.1).for_group(rows).mu == pytest.approx(0.1 * rows)
    assert ZCDP(0.1).for_group(rows).rho == pytest.approx(0.1 * rows**2)
    split = Approximate(1 / rows, 1e-6 / (rows * math.exp(1))).for_group(rows)
    assert split.epsilon == pytest.approx(1)
    assert split.delta <= 1e-6


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_loss_is_finite_and_positive(value: float) -> None:
    for kind in (Pure, Gaussian, ZCDP):
        with pytest.raises(ValueError):
            kind(value)
    with pytest.raises(ValueError):
        Approximate(1.0, 0.0)
