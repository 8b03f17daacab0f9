"""Runs of jobs as their receipts describe them."""

from dataclasses import dataclass
from typing import Any

from core.plan import Plan
from service.datasets import view
from service.jobs.claims import Claim
from service.ledger import accountants
from service.ledger.accountants import Amount
from service.ledger.units import NOTHING
from service.operations.states import Unit
from service.operations.tables import Dataset


@dataclass(frozen=True)
class Run:
    """A run of a job: the claim, the plan, and public facts as they were when it began."""

    claim: Claim
    plan: Plan
    dataset: Dataset
    #: Who asked, by name.
    analyst: str
    #: Working bounds of the plan by column, with where they come from; None: the declared bounds.
    working_bounds: list[dict[str, Any]] | None = None
    #: What the grant is for, by which permit, and until when; None: the owner's own job.
    permit: dict[str, Any] | None = None

    @property
    def unit(self) -> str:
        """The unit of privacy: a person or a row."""
        return view.privacy_unit(self.dataset)

    @property
    def lost_in_all(self) -> Amount | None:
        """What the job costs a person with rows in all its periods, where the unit is one in a period."""
        periods = self.claim.periods
        if periods is None or periods.unit is not Unit.PERSON_IN_PERIOD or self.claim.rehearsal:
            return None
        accountant = accountants.of(self.dataset)
        return accountant.amount(accountant.group([self.claim.cost] * len(periods.read)))

    @property
    def population(self) -> dict[str, Any] | None:
        """The population that was charged as well, and what one person of it lost."""
        population, charge = self.dataset.population, self.claim.charge
        if population is None or charge is None or charge.of_person is None:
            return None
        lost = accountants.of(population).amount(charge.of_person)
        return {"name": population.name, "accountant": population.accountant, "lost": lost}

    @property
    def charged(self) -> Amount:
        """What the job was charged; nothing for a rehearsal."""
        return accountants.of(self.dataset).amount(NOTHING if self.claim.rehearsal else self.claim.cost)
