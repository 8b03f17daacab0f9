"""The comparison of plans for few records with those that explore."""

import numpy as np
import pytest

from benchmarks.modest import SWEEP, exploring, quotient


def test_losses_that_are_alike_have_a_quotient_of_one_however_much_they_vary() -> None:
    """The mean of the quotients themselves is 1.13 here."""
    pairs = [(1.0, 2.0), (2.0, 1.0), (3.0, 2.5), (2.5, 3.0)]
    assert quotient(pairs)[0] == pytest.approx(1.0)


def test_the_error_of_a_quotient_is_that_of_many_repetitions() -> None:
    draw = np.random.default_rng(0)
    old = draw.lognormal(size=(200, 40))
    new = 0.9 * old * draw.lognormal(sigma=0.2, size=(200, 40))
    found = np.array([quotient(list(zip(*both, strict=True))) for both in zip(new, old, strict=True)])
    assert found[:, 1].mean() == pytest.approx(found[:, 0].std(), rel=0.2)


def test_the_sweep_compares_plans_for_few_records_with_exploring_ones() -> None:
    shapes = {(cell.name, cell.size, cell.columns, cell.k) for cell in SWEEP if cell.has_few_records}
    assert shapes == {(cell.name, cell.size, cell.columns, cell.k) for cell in SWEEP}
    with exploring():
        assert not any(cell.has_few_records for cell in SWEEP)
