"""Conversions agree with dp-accounting and with sixty digits, and err on the safe side."""

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
from core.privacy import DELTA_UNIT, EPSILON_UNIT, Budget, rho_to_epsilon, zcdp_rho
from core.privacy.composition import compose, gaussian_delta, gaussian_mu, rho_to_delta
from core.privacy.losses import ZCDP, Gaussian

GRID = [(e, d) for e in ("0.1", "0.5", "1", "2", "8") for d in ("1e-9", "1e-6", "1e-3")]


def exact_gaussian_delta(mu: float, epsilon: Fraction) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon.numerator) / epsilon.denominator
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


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
