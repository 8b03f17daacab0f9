"""Conversions between losses and (epsilon, delta), each rounded to the safe side.

The formulas and their sources are in `composition.md` beside this file.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from core.errors import InvalidBudget
from core.privacy.budget import Budget

#: Relative error allowed to sums and transcendental functions; losses are enlarged by it.
ROUNDING = 1e-12
#: A delta that doubles cannot hold is not zero: noise without bounds never makes a pure guarantee.
LEAST_DELTA = 1e-300
#: What a calibrated loss leaves unused, so that its parts still fit after rounding.
MARGIN = 1e-9


def gaussian_delta(mu: float, epsilon: float) -> float:
    """The delta of mu-Gaussian DP at epsilon, rounded up."""
    if mu == 0:
        return 0.0
    likely = math.exp(log_ndtr(mu / 2 - epsilon / mu))
    difference = likely - math.exp(epsilon + log_ndtr(-mu / 2 - epsilon / mu))
    return max(difference, 0.0) + 1e-13 * likely * (1 + epsilon) + LEAST_DELTA


def rho_to_delta(rho: float, epsilon: float) -> float:
    """The delta of rho-zCDP at epsilon: the best order `a`; any order is valid, so no rounding is needed."""
    if rho == 0:
        return 0.0

    def log_delta(log_order: float) -> float:
        over = math.exp(log_order)
        order = 1 + over
        return over * (order * rho - epsilon) - order * math.log1p(1 / over) - math.log(over)

    return min(1.0, math.exp(_minimum(log_delta)) * (1 + 1e-9) + LEAST_DELTA)


def rho_to_epsilon(rho: float, delta: float) -> float:
    """The epsilon of rho-zCDP at delta."""
    if not 0 < delta < 1:
        raise ValueError("zCDP converts at a delta between 0 and 1")

    def epsilon(log_order: float) -> float:
        over = math.exp(log_order)
        order = 1 + over
        return order * rho - (order * math.log1p(1 / over) + math.log(over) + math.log(delta)) / over

    return max(0.0, _minimum(epsilon)) * (1 + ROUNDING)


def _minimum(function: Callable[[float], float]) -> float:
    """The least value over log orders: a coarse grid, then a bounded search about its best point."""
    grid = [-12 + 0.25 * i for i in range(130)]
    best = min(grid, key=function)
    result = minimize_scalar(
        function, bounds=(best - 0.25, best + 0.25), method="bounded", options={"xatol": 1e-12}
    )
    return min(function(best), float(result.fun))


def gaussian_mu(budget: Budget) -> float:
    """The largest mu whose Gaussian DP keeps the budget, less a margin."""
    if budget.is_pure:
        raise InvalidBudget("Gaussian noise needs a delta above zero", parameter="delta")
    return _largest(lambda mu: gaussian_delta(mu, budget.epsilon), budget.delta)


def zcdp_rho(budget: Budget) -> float:
    """The largest rho whose zCDP keeps the budget, less a margin."""
    if budget.is_pure:
        raise InvalidBudget("zCDP needs a delta above zero", parameter="delta")
    return _largest(lambda rho: rho_to_delta(rho, budget.epsilon), budget.delta)


def _largest(delta_of: Callable[[float], float], delta: float) -> float:
    """The largest loss whose delta stays at or below `delta`, in logarithmic bisection."""

    def excess(log_loss: float) -> float:
        return math.log(max(delta_of(math.exp(log_loss)), 1e-300)) - math.log(delta)

    low, high = -30.0, 8.0
    if excess(low) > 0:
        raise InvalidBudget("this epsilon and delta are too small to plan with", parameter="epsilon")
    root = brentq(excess, low, high, xtol=1e-13, rtol=1e-14)
    return math.exp(float(root)) * (1 - MARGIN)
