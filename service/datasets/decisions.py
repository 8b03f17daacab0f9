"""Decisions of curators on grants and totals, and the amount above which a second curator must agree.

Whatever makes a grant or a total takes a `Decision`, and asks it: no route decides by itself.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from core.privacy import Budget
from service.errors import SecondNeeded
from service.http.context import Context
from service.ledger import accountants
from service.operations.settings import Settings
from service.people.authentication import Caller


@dataclass(frozen=True)
class Decision:
    """Who decides, when, and how much they may decide alone."""

    actor: str
    at: datetime
    #: The largest grant or total that one curator may make; None: any.
    alone: Budget | None = None
    #: The request that is decided and the second curator who agreed, for the audit log.
    request: str | None = None
    second: str | None = None

    @classmethod
    def of(cls, caller: Caller, context: Context) -> Self:
        """Return the decision of a caller who is alone so far."""
        return cls(caller.name, context.clock.now(), alone(context.settings))

    @property
    def details(self) -> dict[str, str]:
        """What the audit log adds to what was decided."""
        named = {"request": self.request, "second": self.second}
        return {name: value for name, value in named.items() if value is not None}

    def may_allow(self, budget: Budget) -> bool:
        """Return True if a grant or a total of this size needs nobody else."""
        limit = self.alone
        if self.second is not None or limit is None:
            return True
        return budget.epsilon_units <= limit.epsilon_units and budget.delta_units <= limit.delta_units

    def require(self, budget: Budget, what: str, next_step: str | None = None) -> None:
        """Raise SecondNeeded unless this curator may make a grant or a total of this size."""
        if not self.may_allow(budget):
            assert self.alone is not None
            most = accountants.declared(self.alone)
            raise SecondNeeded(
                f"{what} above epsilon {most['epsilon']}, delta {most['delta']} needs a second curator's yes",
                next_step=next_step,
                alone=most,
            )


def alone(settings: Settings) -> Budget | None:
    """Return the largest grant or total that one curator may make; None: any."""
    if settings.second_epsilon is None:
        return None
    return Budget.of(settings.second_epsilon, settings.second_delta)
