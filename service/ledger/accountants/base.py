"""The base of all accountants: a currency in which the losses of jobs add up, within a declared budget."""

import math
from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

from core.errors import InvalidBudget
from core.privacy import DELTA_UNIT, EPSILON_UNIT, RHO_UNIT, Budget
from core.privacy.budget import LARGEST_EPSILON, to_units
from service.ledger.accounts import Balance
from service.ledger.units import Cost

#: Enlarges products of floating-point numbers, whose relative error is below 1e-14.
_ROUNDING = 1 + 1e-12
#: Units of epsilon in the last decimal of a budget that is worked out.
_STEP = EPSILON_UNIT // 10**6
#: An amount by name, as exact decimals: what answers and receipts show.
Amount = dict[str, str]


class Guarantee(Protocol):
    """What a plan keeps, stated for every accountant: all of it holds of the same mechanism."""

    @property
    def epsilon_units(self) -> int: ...

    @property
    def delta_units(self) -> int: ...

    @property
    def rho_units(self) -> int:
        """The loss in zCDP, except on events of the probability that follows."""

    @property
    def approximate_delta_units(self) -> int: ...


@dataclass(frozen=True)
class StoredGuarantee:
    """The guarantee of a plan, as it is stored with a job."""

    epsilon_units: int
    delta_units: int
    rho_units: int
    approximate_delta_units: int

    @classmethod
    def of(cls, privacy: Mapping[str, Any]) -> Self:
        """Read what the plan says under `privacy`; KeyError if it lacks something."""
        return cls(
            to_units(privacy["epsilon"], EPSILON_UNIT, "epsilon"),
            to_units(privacy["delta"], DELTA_UNIT, "delta"),
            to_units(privacy["rho"], RHO_UNIT, "rho"),
            to_units(privacy["approximate_delta"], DELTA_UNIT, "approximate_delta"),
        )


@dataclass(frozen=True)
class Accountant(ABC):
    """Prices plans in its currency, and describes amounts of it, for an account with a declared budget.

    Costs are pairs of whole units that are added, compared and subtracted part by part (`Cost`, `Balance`),
    whatever the currency. Every accountant is a privacy filter: as long as the costs of jobs fit into
    `total`, together they keep the declared budget, even if each job was chosen in view of earlier results.
    """

    declared: Budget

    name: ClassVar[str]
    #: What lists and forms call it.
    title: ClassVar[str]
    #: What it is good for, as the rest of a sentence that begins with its title.
    advice: ClassVar[str]
    #: How the losses of several releases are combined, as a clause for receipts.
    composition: ClassVar[str]
    #: The noise that counts cost least with, for questions that leave it open and offer a delta.
    noise: ClassVar[str] = "auto"
    #: Whether a job costs the epsilon and delta it asks for; if not, what is left of delta limits no request.
    charges_as_asked: ClassVar[bool] = True
    #: What a budget lacks that this accountant does not support.
    unsupported: ClassVar[str] = ""

    @staticmethod
    def supports(budget: Budget) -> bool:
        """Return True if an account can be opened with this budget."""
        return True

    @property
    def total(self) -> Cost:
        """The total that an account is opened with; InvalidBudget if the budget is not supported."""
        if not self.supports(self.declared):
            raise InvalidBudget(f"the accountant {self.name} {self.unsupported}", parameter="budget.delta")
        return self.capacity()

    def enough_for(self, amount: Cost) -> Budget | None:
        """Return the smallest budget, no smaller than the declared one, whose total holds an amount.

        Epsilon is rounded up to a millionth. None if no budget is that large.
        """

        def total(epsilon_units: int, delta_units: int) -> Cost:
            return type(self)(Budget(epsilon_units, delta_units)).capacity()

        epsilon, delta = self.declared.epsilon_units, self.declared.delta_units
        deltas = range(DELTA_UNIT)
        delta = bisect_left(deltas, amount.delta, lo=delta, key=lambda each: total(epsilon, each).delta)
        if delta == len(deltas):
            return None
        if total(epsilon, delta).loss >= amount.loss:
            return Budget(epsilon, delta)
        steps = range(LARGEST_EPSILON * EPSILON_UNIT // _STEP + 1)
        found = bisect_left(
            steps, amount.loss, lo=-(-epsilon // _STEP), key=lambda each: total(each * _STEP, delta).loss
        )
        return None if found == len(steps) else Budget(found * _STEP, delta)

    @abstractmethod
    def capacity(self) -> Cost:
        """The largest amount whose spending keeps the declared budget."""

    @abstractmethod
    def cost(self, plan: Guarantee) -> Cost:
        """The cost of a whole plan."""

    @abstractmethod
    def group(self, costs: Sequence[Cost]) -> Cost:
        """Return the loss of somebody whose rows lie behind several accounts, which were charged these."""

    def of_person(self, plan: Guarantee, parts: int) -> Cost:
        """Return what a plan costs a person of whom it reads so many parts, and whose noise protects one."""
        cost = self.cost(plan)
        return cost if parts == 1 else self.group([cost] * parts)

    @abstractmethod
    def amount(self, cost: Cost) -> Amount:
        """An amount as exact decimals, with the epsilon it is equivalent to and its delta."""

    @abstractmethod
    def in_words(self, cost: Cost) -> str:
        """An amount as part of a sentence."""

    def amounts(self, balance: Balance) -> dict[str, Amount]:
        """The amounts of a balance by name."""
        return {
            "total": self.amount(balance.total),
            "spent": self.amount(balance.spent),
            "reserved": self.amount(balance.reserved),
            "remaining": self.amount(balance.remaining),
        }


def group_delta(costs: Sequence[Cost], epsilon: float) -> int:
    """Return the delta of a group whose members, all but one, lose at most this epsilon together."""
    delta = sum(cost.delta for cost in costs)
    if delta == 0:
        return 0
    # An exponent beyond this makes a delta of one unit larger than one.
    return min(math.ceil(delta * math.exp(min(epsilon, 42.0)) * _ROUNDING), DELTA_UNIT)


def declared(budget: Budget) -> Amount:
    """A budget as it was declared, in epsilon and delta."""
    return {"epsilon": budget.epsilon_text, "delta": budget.delta_text}
