"""Budgets are exact, losses compose safely, calibration agrees with dp-accounting and with sixty digits."""

import math
from fractions import Fraction

import mpmath
import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian
from dp_accounting.rdp.rdp_privacy_accountant import compute_epsilon
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from core.errors import InvalidBudget
from core.privacy import (
    DELTA_UNIT,
    EPSILON_UNIT,
    ZCDP,
    Approximate,
    Budget,
    Gaussian,
    Pure,
    Shares,
    compose,
    default_delta,
    gaussian_delta,
    gaussian_mu,
    rho_to_delta,
    rho_to_epsilon,
    units_text,
    units_up,
    zcdp_rho,
)

GRID = [(e, d) for e in ("0.1", "0.5", "1", "2", "8") for d in ("1e-9", "1e-6", "1e-3")]


def exact_gaussian_delta(mu: float, epsilon: Fraction) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


# --- amounts ----------------------------------------------------------------------------------


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


# --- calibration ------------------------------------------------------------------------------


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_mu_agrees_with_dp_accounting_and_never_errs_on_the_unsafe_side(epsilon: str, delta: str) -> None:
    budget = Budget.of(epsilon, delta)
    mu = gaussian_mu(budget)
    assert mu == pytest.approx(1 / get_sigma_gaussian(budget.epsilon, budget.delta), rel=1e-6)
    exact = exact_gaussian_delta(mu, Fraction(budget.epsilon_units, EPSILON_UNIT))
    assert exact <= mpmath.mpf(budget.delta_units) / DELTA_UNIT


@pytest.mark.parametrize(("epsilon", "delta"), GRID)
def test_rho_agrees_with_dp_accounting_and_never_errs_on_the_unsafe_side(epsilon: str, delta: str) -> None:
    budget = Budget.of(epsilon, delta)
    rho = zcdp_rho(budget)
    assert rho_to_epsilon(rho, budget.delta) == pytest.approx(budget.epsilon, rel=1e-6)
    assert rho_to_delta(rho, budget.epsilon) <= budget.delta
    # The oracle takes the best of the orders it is given: give it many about the best one.
    orders = [1 + math.exp(x / 500) for x in range(-4000, 4000)]
    oracle, _ = compute_epsilon(orders, [order * rho for order in orders], budget.delta)
    assert oracle == pytest.approx(budget.epsilon, rel=1e-5)
    # Any order proves a bound: here is one, in sixty digits, that the calibrated rho keeps.
    best = minimize_scalar(
        lambda x: (
            math.exp(x) * ((1 + math.exp(x)) * rho - budget.epsilon)
            - (1 + math.exp(x)) * math.log1p(math.exp(-x))
            - x
        ),
        bounds=(-8, 12),
        method="bounded",
        options={"xatol": 1e-10},
    )
    with mpmath.workdps(60):
        a, r, e = 1 + mpmath.exp(best.x), mpmath.mpf(rho), mpmath.mpf(epsilon)
        assert mpmath.exp((a - 1) * (a * r - e)) * (1 - 1 / a) ** a / (a - 1) <= mpmath.mpf(delta)


@given(st.floats(1e-3, 20), st.floats(0, 20))
def test_the_delta_of_a_gaussian_loss_is_an_upper_bound(mu: float, epsilon: float) -> None:
    assert exact_gaussian_delta(mu, Fraction(epsilon)) <= gaussian_delta(mu, epsilon)


def test_gaussian_noise_cannot_be_calibrated_without_a_delta() -> None:
    with pytest.raises(InvalidBudget, match="delta above zero"):
        gaussian_mu(Budget.of(1))


def test_a_delta_below_the_smallest_double_is_not_zero() -> None:
    assert not compose([(Gaussian(0.001), 1)]).within(Budget.of(10))
    assert not compose([(ZCDP(1e-9), 1)]).within(Budget.of(10))


# --- composition ------------------------------------------------------------------------------

fractions = st.lists(st.integers(1, 1000), min_size=1, max_size=12)


@given(fractions, st.sampled_from(GRID), st.integers(1, 5))
def test_shares_of_a_budget_always_fit_it_again(weights: list[int], pair: tuple[str, str], rows: int) -> None:
    for budget in (Budget.of(*pair), Budget.of(pair[0])):
        shares = Shares(budget, rows)
        losses = [(shares.of(w / sum(weights)).for_group(rows), 1) for w in weights]
        assert compose(losses).within(budget)
        too_much = [(loss, 1 if i else 2) for i, (loss, _) in enumerate(losses)]
        assert not compose(too_much).within(budget)


def test_pure_losses_add_exactly() -> None:
    tenth = Fraction(0.1)
    assert compose([(Pure(0.1), 10)]).pure_epsilon == 10 * tenth
    assert compose([(Pure(0.125), 8)]).within(Budget.of(1))
    assert not compose([(Pure(0.125), 8), (Pure(1e-12), 1)]).within(Budget.of(1))


def test_gaussian_losses_compose_as_their_squares() -> None:
    assert compose([(Gaussian(3), 1), (Gaussian(4), 1)]).mu_squared == 25
    assert compose([(Gaussian(1), 9)]).mu_squared == 9


losses = st.one_of(
    st.builds(Pure, st.floats(0.001, 1), st.booleans()),
    st.builds(Gaussian, st.floats(0.001, 1)),
    st.builds(ZCDP, st.floats(1e-6, 0.5)),
    st.builds(Approximate, st.floats(0.001, 1), st.floats(1e-12, 1e-8)),
)


@given(st.lists(st.tuples(losses, st.integers(1, 4)), min_size=1, max_size=6), losses)
def test_another_loss_never_makes_a_composition_cheaper(
    parts: list[tuple[Pure | Gaussian | ZCDP | Approximate, int]], more: Pure | Gaussian | ZCDP | Approximate
) -> None:
    before, after = compose(parts), compose([*parts, (more, 1)])
    for epsilon in (0.5, 1.0, 4.0):
        assert before.delta_at(epsilon) <= after.delta_at(epsilon) * (1 + 1e-6)
    assert before.rho <= after.rho


@given(st.lists(st.tuples(losses, st.integers(1, 4)), min_size=1, max_size=6))
def test_epsilon_at_and_delta_at_agree(parts: list[tuple[Pure | Gaussian | ZCDP | Approximate, int]]) -> None:
    total = compose(parts)
    epsilon = total.epsilon_at(1e-6)
    assert total.delta_at(epsilon) <= 1e-6
    assert total.delta_at(epsilon * 0.999) > 1e-6


def test_a_mixture_takes_the_cheaper_of_addition_and_zcdp() -> None:
    few = compose([(Gaussian(0.1), 1), (Pure(0.1), 1)])
    by_addition = compose([(Gaussian(0.1), 1)]).epsilon_at(1e-6) + 0.1
    assert few.epsilon_at(1e-6) <= by_addition * (1 + 1e-8)
    many = compose([(Gaussian(0.1), 1), (Pure(0.01), 200)])
    assert many.epsilon_at(1e-6) < 1.0 < compose([(Pure(0.01), 200)]).epsilon_at(0)


def test_an_exponential_mechanism_costs_a_quarter_in_zcdp() -> None:
    assert Pure(0.4, bounded_range=True).rho == pytest.approx(Pure(0.4).rho / 4)


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
