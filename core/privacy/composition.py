"""Composition of losses, and the (epsilon, delta) that they amount to.

Pure losses are added exactly; every other computed number is moved to the safe side by more than floating
point can err. The formulas and their sources are in `composition.md`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

from core.privacy.budget import EPSILON_UNIT, Budget
from core.privacy.conversions import ROUNDING, gaussian_delta, rho_to_delta
from core.privacy.losses import ZCDP, Approximate, Gaussian, Loss, Pure


@dataclass(frozen=True)
class Composition:
    """What several losses amount to together."""

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

    @property
    def is_pure(self) -> bool:
        return self.mu_squared == 0 and self.zcdp_rho == 0 and self.approximate_delta == 0

    @property
    def pure_epsilon(self) -> Fraction:
        """The exact epsilon of a composition that is pure."""
        if not self.is_pure:
            raise ValueError("only a pure composition has a pure epsilon")
        return self.pure

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

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon (to a relative 1e-9, rounded up) known to hold at this delta."""
        if self.delta_at(0) <= delta:
            return 0.0
        high = 1.0
        while self.delta_at(high) > delta:
            high *= 2
            if high > 1e7:
                return math.inf
        low = 0.0
        while high - low > 1e-9 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta_at(middle) <= delta else (middle, high)
        return high

    def within(self, budget: Budget) -> bool:
        """Whether everything together keeps the budget's promise."""
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


def gaussian_epsilon(mu: float, delta: float) -> float:
    """The epsilon of mu-Gaussian DP at delta, rounded up."""
    return compose([(Gaussian(mu), 1)]).epsilon_at(delta)
