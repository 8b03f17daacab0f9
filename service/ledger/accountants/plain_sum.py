"""The accountant `sum`: adds epsilon and delta."""

from collections.abc import Sequence

from core.privacy import DELTA_UNIT, EPSILON_UNIT, units_text
from service.ledger.accountants.base import Accountant, Amount, Guarantee, group_delta
from service.ledger.units import LARGEST_UNITS, Cost


class Sum(Accountant):
    """Adds up epsilons and deltas, whatever the mechanisms."""

    name = "sum"
    title = "Plain sum"
    advice = "adds up epsilons and is easy to explain"
    composition = "the losses of all releases are added up"

    def capacity(self) -> Cost:
        return Cost(self.declared.epsilon_units, self.declared.delta_units)

    def cost(self, plan: Guarantee) -> Cost:
        return Cost(plan.epsilon_units, plan.delta_units)

    def group(self, costs: Sequence[Cost]) -> Cost:
        losses = [cost.loss for cost in costs]
        others = sum(losses) - min(losses, default=0)
        return Cost(min(sum(losses), LARGEST_UNITS), group_delta(costs, others / EPSILON_UNIT))

    def amount(self, cost: Cost) -> Amount:
        return {"epsilon": units_text(cost.loss, EPSILON_UNIT), "delta": units_text(cost.delta, DELTA_UNIT)}

    def in_words(self, cost: Cost) -> str:
        amount = self.amount(cost)
        return f"epsilon {amount['epsilon']} and delta {amount['delta']}"
