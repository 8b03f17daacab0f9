"""Budgets are exact: what was written is what is held, and what no budget can hold is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InvalidBudget
from core.privacy import DELTA_UNIT, EPSILON_UNIT, Budget, default_delta, units_text
from core.privacy.budget import units_up


@pytest.mark.parametrize("text", ["1", "0.1", "0.000000000001", "999.999999999999"])
def test_a_budget_holds_exactly_what_was_written(text: str) -> None:
    assert Budget.of(text).epsilon_text == text


def test_a_float_counts_as_the_decimal_it_prints_as() -> None:
    assert Budget.of(0.1) == Budget.of("0.1")
    assert Budget.of(1, 1e-6) == Budget.of("1", "0.000001")


@pytest.mark.parametrize(
    ("epsilon", "delta", "parameter"),
    [
        ("0", "0", "epsilon"),
        ("-1", "0", "epsilon"),
        ("nan", "0", "epsilon"),
        ("inf", "0", "epsilon"),
        (float("nan"), 0, "epsilon"),
        (float("inf"), 0, "epsilon"),
        ("1e309", "0", "epsilon"),
        ("1001", "0", "epsilon"),
        ("1e-13", "0", "epsilon"),
        ("0.1" + "0" * 40 + "1", "0", "epsilon"),
        ("1e-999999999", "0", "epsilon"),
        ("one", "0", "epsilon"),
        ("1_000", "0", "epsilon"),
        ("\u0661", "0", "epsilon"),  # an Arabic one
        ("\uff11", "0", "epsilon"),  # a full-width one
        ("1\n", "0", "epsilon"),
        (" 1", "0", "epsilon"),
        (True, "0", "epsilon"),
        (None, "0", "epsilon"),
        ("1", "1", "delta"),
        ("1", "-1e-9", "delta"),
        ("1", "nan", "delta"),
        ("1", "1e-19", "delta"),
        ("1", False, "delta"),
    ],
)
def test_what_no_budget_can_hold_is_refused_by_name(epsilon: object, delta: object, parameter: str) -> None:
    with pytest.raises(InvalidBudget) as refusal:
        Budget.of(epsilon, delta)  # type: ignore[arg-type]  # wrong types are what is tested
    assert refusal.value.parameter == parameter


def test_computed_amounts_are_rounded_down_when_asked_for_and_up_when_charged() -> None:
    assert Budget.at_most(1 / 3, 60_000**-1.5).epsilon_units == 333_333_333_333
    assert Budget.at_most(1, 60_000**-1.5).delta_units < 60_000**-1.5 * DELTA_UNIT
    assert units_up(1e-13, EPSILON_UNIT) == 1
    assert units_up(0.25, EPSILON_UNIT) == 250_000_000_000


@given(st.integers(1, 10**15))
def test_units_print_and_read_back_the_same(units: int) -> None:
    assert Budget.of(units_text(units, EPSILON_UNIT)).epsilon_units == units


def test_the_default_delta_follows_the_public_size() -> None:
    assert default_delta(1000) == 1e-6
    assert default_delta(10**7) == 1e-8
