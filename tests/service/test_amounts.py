"""Amounts are whole units: parsed exactly, printed exactly, never rounded."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.amounts import DELTA_PLACES, LOSS_PLACES, Cost, parse_units, units_text


@given(st.integers(0, 2**63 - 1), st.sampled_from([LOSS_PLACES, DELTA_PLACES]))
def test_text_and_units_are_inverse(units: int, places: int) -> None:
    assert parse_units(units_text(units, places), places) == units


@pytest.mark.parametrize(
    ("value", "units"),
    [
        ("0.1", 10**11),
        (0.1, 10**11),
        (1, 10**12),
        ("1e-12", 1),
        (Decimal("2.50"), 25 * 10**11),
        ("0", 0),
        ("0e-99", 0),
    ],
)
def test_decimal_becomes_units(value: str | float | Decimal, units: int) -> None:
    assert parse_units(value, LOSS_PLACES) == units


@pytest.mark.parametrize("value", ["1e-13", "0.1234567890123", 1e-13, "1e-999999999"])
def test_fraction_of_a_unit_is_refused(value: str | float) -> None:
    with pytest.raises(ValueError, match="whole number of units"):
        parse_units(value, LOSS_PLACES)


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "1e309", "1e999999999", "abc", "", True, "9223373"])
def test_what_is_no_amount_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="amount"):
        parse_units(value, LOSS_PLACES)


def test_cost_fits_only_when_both_parts_fit() -> None:
    assert Cost(1, 1).fits(Cost(1, 1))
    assert not Cost(2, 0).fits(Cost(1, 1))
    assert not Cost(0, 2).fits(Cost(1, 1))
