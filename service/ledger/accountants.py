"""Accountants: convert budgets and plans to the dataset's currency, and amounts to readable decimals.

`sum` adds epsilon and delta. `zcdp` fixes the largest rho that converts to (epsilon, delta/2), charges
plans rho alone, and keeps the other half of delta for the approximate parts of plans. Both are privacy
filters: they stay valid when analysts choose each job in view of earlier results.
"""

import math

from core.errors import InvalidBudget
from core.plan import Plan
from core.privacy import DELTA_UNIT, EPSILON_UNIT, RHO_UNIT, Budget, rho_to_epsilon, units_text, zcdp_rho
from service.ledger.accounts import Balance
from service.ledger.units import Cost

ACCOUNTANTS = ("sum", "zcdp")
_EQUIVALENT_DIGITS = 6


def total_of(accountant: str, epsilon_units: int, delta_units: int) -> Cost:
    """Return the total that a budget of (epsilon, delta) opens an account with."""
    if accountant == "sum":
        return Cost(epsilon_units, delta_units)
    if delta_units < 2:
        raise InvalidBudget(
            "the accountant zcdp needs a delta above zero; give one, or use the accountant sum",
            parameter="budget.delta",
        )
    half = delta_units // 2
    rho = zcdp_rho(Budget(epsilon_units, half))
    return Cost(math.floor(rho * RHO_UNIT), delta_units - half)


def cost_of(accountant: str, plan: Plan) -> Cost:
    """Return the cost of a whole plan."""
    if accountant == "sum":
        return Cost(plan.epsilon_units, plan.delta_units)
    return Cost(plan.rho_units, plan.approximate_delta_units)


def amount(accountant: str, cost: Cost, declared_delta_units: int) -> dict[str, str]:
    """Format an amount as exact decimals, with the equivalent epsilon for rho."""
    delta = units_text(cost.delta, DELTA_UNIT)
    if accountant == "sum":
        return {"epsilon": units_text(cost.loss, EPSILON_UNIT), "delta": delta}
    return {
        "rho": units_text(cost.loss, RHO_UNIT),
        "delta": delta,
        "epsilon": _equivalent(cost.loss, declared_delta_units // 2),
    }


def balance_view(
    accountant: str, balance: Balance, epsilon_units: int, delta_units: int
) -> dict[str, dict[str, str]]:
    """Format a balance; `declared` is the (epsilon, delta) that the account was opened with."""
    named = amounts(accountant, balance, delta_units)
    return {"declared": declared(Budget(epsilon_units, delta_units)), **named}


def amounts(accountant: str, balance: Balance, declared_delta_units: int) -> dict[str, dict[str, str]]:
    """Format the amounts of a balance by name."""
    named = {
        "total": balance.total,
        "spent": balance.spent,
        "reserved": balance.reserved,
        "remaining": balance.remaining,
    }
    return {name: amount(accountant, cost, declared_delta_units) for name, cost in named.items()}


def declared(budget: Budget) -> dict[str, str]:
    """Format a budget as it was declared, in epsilon and delta."""
    return {"epsilon": budget.epsilon_text, "delta": budget.delta_text}


def _equivalent(rho_units: int, delta_units: int) -> str:
    if rho_units == 0 or delta_units == 0:
        return "0"
    epsilon = rho_to_epsilon(rho_units / RHO_UNIT, delta_units / DELTA_UNIT)
    scale = 10**_EQUIVALENT_DIGITS
    return units_text(math.ceil(epsilon * scale), scale)
