"""Composition of losses, and conversion between losses and (epsilon, delta).

Pure losses are added exactly; every other computed number is moved to the safe side by more than floating
point can err. The formulas and their sources are in `composition.md`.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction

from scipy.optimize import brentq, minimize_scalar
from scipy.special import log_ndtr

from core.errors import InvalidBudget
from core.privacy.budget import EPSILON_UNIT, Budget
from core.privacy.losses import ZCDP, Approximate, Gaussian, Loss, Pure

#: Relative error allowed to sums and transcendental functions; losses are enlarged by it.
ROUNDING = 1e-12
#: A delta that doubles cannot hold is not zero: noise without bounds never makes a pure guarantee.
LEAST_DELTA = 1e-300
#: Part of a calibrated loss that stays unused, so that its parts still fit after rounding.
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
    return _largest(gaussian_delta, budget, "Gaussian noise")


def zcdp_rho(budget: Budget) -> float:
    """The largest rho whose zCDP keeps the budget, less a margin."""
    return _largest(rho_to_delta, budget, "zCDP")


def _largest(delta_of: Callable[[float, float], float], budget: Budget, name: str) -> float:
    """The largest loss whose delta at the budget's epsilon stays within it, in logarithmic bisection."""
    if budget.is_pure:
        raise InvalidBudget(f"{name} needs a delta above zero", parameter="delta")

    def excess(log_loss: float) -> float:
        return math.log(max(delta_of(math.exp(log_loss), budget.epsilon), 1e-300)) - math.log(budget.delta)

    low, high = -30.0, 8.0
    if excess(low) > 0:
        raise InvalidBudget("this epsilon and delta are too small to plan with", parameter="epsilon")
    root = brentq(excess, low, high, xtol=1e-13, rtol=1e-14)
    return math.exp(float(root)) * (1 - MARGIN)


@dataclass(frozen=True)
class Composition:
    """The joint loss of several mechanisms."""

    mu_squared: float
    pure: Fraction
    pure_rho: float
    zcdp_rho: float
    approximate_epsilon: Fraction
    approximate_delta: Fraction
    approximate_rho: float

    @property
    def rho(self) -> float:
        """The zCDP cost: all of it except on events of probability `approximate_delta`."""
        return (self.mu_squared / 2 + self.pure_rho + self.zcdp_rho + self.approximate_rho) * (1 + ROUNDING)

    def delta_at(self, epsilon: float | Fraction) -> float:
        """A delta for which (epsilon, delta)-DP holds; 1 where none is known."""
        exact = Fraction(epsilon)
        left = exact - self.approximate_epsilon - self.pure
        spent = float(self.approximate_delta) * (1 + ROUNDING)
        if self.mu_squared == 0 and self.zcdp_rho == 0 and left >= 0:
            return spent
        candidates = [rho_to_delta(self.rho, float(exact) * (1 - ROUNDING))]
        if left > 0:
            rest = float(left) * (1 - ROUNDING)
            if self.zcdp_rho == 0:
                candidates.append(gaussian_delta(math.sqrt(self.mu_squared) * (1 + ROUNDING), rest))
            else:
                candidates.append(rho_to_delta((self.mu_squared / 2 + self.zcdp_rho) * (1 + ROUNDING), rest))
        return min(1.0, min(candidates) + spent)

    def within(self, budget: Budget) -> bool:
        """True if the joint loss is at most the budget."""
        epsilon = Fraction(budget.epsilon_units, EPSILON_UNIT)
        return self.delta_at(epsilon) <= budget.delta


def compose(losses: Iterable[tuple[Loss, int]]) -> Composition:
    """The composition of losses, each with how often it is incurred."""
    mu_squared, pure_rho, zcdp_rho, approximate_rho = [], [], [], []
    pure = approximate_epsilon = approximate_delta = Fraction(0)
    for loss, times in losses:
        match loss:
            case Gaussian(mu):
                mu_squared.append(mu * mu * times)
            case Pure(epsilon):
                pure += Fraction(epsilon) * times
                pure_rho.append(loss.rho * times)
            case ZCDP(rho):
                zcdp_rho.append(rho * times)
            case Approximate(epsilon, delta):
                approximate_epsilon += Fraction(epsilon) * times
                approximate_delta += Fraction(delta) * times
                approximate_rho.append(epsilon**2 / 2 * times)
    return Composition(
        math.fsum(mu_squared),
        pure,
        math.fsum(pure_rho),
        math.fsum(zcdp_rho),
        approximate_epsilon,
        approximate_delta,
        math.fsum(approximate_rho),
    )
