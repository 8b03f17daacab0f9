"""What jobs cost one person of a population: new jobs, and those of before their dataset joined."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session, aliased

from service import ledger
from service.datasets.periods.selection import PeriodsRead
from service.errors import CannotJoin
from service.ledger import accountants
from service.ledger.accountants import Accountant, Guarantee, StoredGuarantee
from service.ledger.charging import parts_of_person
from service.ledger.units import LARGEST_UNITS, Cost
from service.operations.states import EntryKind
from service.operations.tables import Dataset, Job, LedgerEntry, Population

#: Jobs in memory at a time.
_ROWS = 1000


@dataclass(frozen=True)
class OfPerson:
    """What a job costs one person of a population."""

    population: Population
    cost: Cost
    #: How many parts of a person the job reads, of which its noise protects one.
    parts: int

    @property
    def accountant(self) -> Accountant:
        return accountants.of(self.population)

    def is_alike(self, dataset: Dataset) -> bool:
        """Return True if the dataset is charged the same amount in the same currency."""
        return self.parts == 1 and dataset.accountant == self.population.accountant


def price(population: Population, plan: Guarantee, periods: PeriodsRead | None) -> OfPerson:
    """Return what a planned job costs one person of the population."""
    parts = 1 if periods is None else parts_of_person(periods.unit, periods.labels)
    return OfPerson(population, accountants.of(population).of_person(plan, parts), parts)


def delta_left(session: Session, dataset: Dataset, periods: PeriodsRead | None) -> int:
    """Return the delta, in units, that one more job may ask for, as far as the population limits it.

    Of a job on several parts of a person somewhat less fits, as the delta of a group grows with epsilon.
    """
    population = dataset.population
    if population is None or not accountants.of(population).charges_as_asked:
        return LARGEST_UNITS
    parts = 1 if periods is None else parts_of_person(periods.unit, periods.labels)
    return ledger.of_population(session, population.id).remaining.delta // parts


def history(session: Session, dataset: Dataset, population: Population) -> ledger.History:
    """Return what each job on a dataset has cost one person, as the population's accountant counts it.

    A plan states what it keeps for every accountant, so each job is priced as if the dataset had been in the
    population. CannotJoin if a plan is not there any more.
    """
    accountant, reserved = accountants.of(population), {}
    spent = [0, 0]
    settled = aliased(LedgerEntry)
    waits_or_charged = func.coalesce(settled.kind, EntryKind.RESERVE) != EntryKind.VOID
    query = (
        select(LedgerEntry.job_id, settled.kind, Job.plan["privacy"], Job.periods)
        .join(Job, Job.id == LedgerEntry.job_id)
        .outerjoin(
            settled,
            (settled.job_id == LedgerEntry.job_id) & settled.kind.in_((EntryKind.CHARGE, EntryKind.VOID)),
        )
        .where(LedgerEntry.dataset_id == dataset.id, LedgerEntry.kind == EntryKind.RESERVE, waits_or_charged)
        .execution_options(yield_per=_ROWS)
    )
    for job, kind, privacy, periods in session.execute(query):
        cost = _cost_of(accountant, job, privacy, periods)
        if kind is None:
            reserved[job] = cost
        else:
            spent = [spent[0] + cost.loss, spent[1] + cost.delta]
    return ledger.History(Cost(*(min(each, LARGEST_UNITS) for each in spent)), reserved)


def _cost_of(accountant: Accountant, job: str, privacy: Any, periods: dict[str, Any] | None) -> Cost:
    try:
        plan = StoredGuarantee.of(privacy or {})
    except KeyError as missing:
        raise CannotJoin(
            f"the plan of job {job} does not say what the job cost in the population's currency",
            next_step="Create the population with the dataset's accountant.",
        ) from missing
    read = None if periods is None else PeriodsRead.from_json(periods)
    parts = 1 if read is None else parts_of_person(read.unit, read.labels)
    return accountant.of_person(plan, parts)
