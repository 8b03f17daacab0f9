"""A cost fits where both of its parts fit, and is never negative or larger than a column holds."""

from __future__ import annotations

import pytest

from service.ledger.units import LARGEST_UNITS, Cost


def test_cost_fits_only_when_both_parts_fit() -> None:
    assert Cost(1, 1).fits(Cost(1, 1))
    assert not Cost(2, 0).fits(Cost(1, 1))
    assert not Cost(0, 2).fits(Cost(1, 1))


@pytest.mark.parametrize("amounts", [(-1, 0), (0, -1), (LARGEST_UNITS + 1, 0), (0, LARGEST_UNITS + 1)])
def test_amount_outside_the_column_is_refused(amounts: tuple[int, int]) -> None:
    with pytest.raises(ValueError):
        Cost(*amounts)
