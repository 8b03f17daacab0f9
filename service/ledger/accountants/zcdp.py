"""The accountant `zcdp`: adds rho, and keeps half of delta for the approximate parts of plans."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from core.privacy import DELTA_UNIT, EPSILON_UNIT, RHO_UNIT, Budget, rho_to_epsilon, units_text, zcdp_rho
from service.ledger.accountants.base import Accountant, Amount, Guarantee, group_delta
from service.ledger.units import LARGEST_UNITS, Cost

#: Units of epsilon in the last decimal of an equivalent epsilon, which is computed and rounded up.
_EQUIVALENT_STEP = EPSILON_UNIT // 10**6


class Zcdp(Accountant):
    """Fixes the largest rho that converts to (epsilon, delta/2), and charges plans their rho.

    The other half of delta is spent by approximate parts of plans (Whitehouse et al. 2023).
    """

    name = "zcdp"
    title = "zCDP"
    advice = "lets many small jobs share a budget better"
    composition = "the losses of all releases are added up in zero-concentrated differential privacy"
    # Gaussian noise costs a fraction of the Laplace noise that may be smaller at one epsilon.
    noise = "gaussian"
    charges_as_asked = False
    unsupported = "needs a delta above zero; give one, or use the accountant sum"

    @staticmethod
    def supports(budget: Budget) -> bool:
        return budget.delta_units >= 2

    def capacity(self) -> Cost:
        rho = zcdp_rho(Budget(self.declared.epsilon_units, self._converting_delta))
        return Cost(math.floor(rho * RHO_UNIT), self.declared.delta_units - self._converting_delta)

    def cost(self, plan: Guarantee) -> Cost:
        return Cost(plan.rho_units, plan.approximate_delta_units)

    def group(self, costs: Sequence[Cost]) -> Cost:
        """Square the sum of the roots of rho; an approximate part has at most the epsilon sqrt(2 rho)."""
        losses = [cost.loss for cost in costs]
        alike = Counter(losses)
        squares = sum(loss * times**2 for loss, times in alike.items())
        pairs = sum(
            _root_up(4 * one * other) * alike[one] * alike[other] for one, other in combinations(alike, 2)
        )
        roots = [math.sqrt(loss / RHO_UNIT) for loss in losses]
        others = math.sqrt(2) * (sum(roots) - min(roots, default=0.0))
        return Cost(min(squares + pairs, LARGEST_UNITS), group_delta(costs, others))

    def amount(self, cost: Cost) -> Amount:
        return {
            "rho": units_text(cost.loss, RHO_UNIT),
            "delta": units_text(cost.delta, DELTA_UNIT),
            "epsilon": self._equivalent_epsilon(cost.loss),
        }

    def in_words(self, cost: Cost) -> str:
        amount = self.amount(cost)
        return f"rho {amount['rho']} and delta {amount['delta']}"

    @property
    def _converting_delta(self) -> int:
        """Units of delta that convert rho to epsilon."""
        return self.declared.delta_units // 2

    def _equivalent_epsilon(self, rho_units: int) -> str:
        if rho_units == 0 or self._converting_delta == 0:
            return "0"
        epsilon = rho_to_epsilon(rho_units / RHO_UNIT, self._converting_delta / DELTA_UNIT)
        steps = math.ceil(epsilon * (EPSILON_UNIT // _EQUIVALENT_STEP))
        return units_text(steps * _EQUIVALENT_STEP, EPSILON_UNIT)


def _root_up(square: int) -> int:
    """Return the square root, rounded up."""
    return math.isqrt(square - 1) + 1 if square else 0
