"""Create populations, raise their totals, say who may use them, and let datasets join."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.privacy import Budget
from service import ledger
from service.datasets.populations import prices
from service.datasets.populations.wire import PopulationBody, PopulationChanges
from service.errors import CannotJoin, Forbidden, InvalidRequest, NotFound, NotSealed
from service.ledger import accountants
from service.operations import audit
from service.operations.states import DatasetState, Role
from service.operations.tables import Dataset, Population, Principal
from service.people.authentication import Caller


def create(session: Session, body: PopulationBody, *, owner: Caller, at: datetime) -> Population:
    """Create a population that no dataset has joined."""
    budget = Budget.of(body.budget.epsilon, body.budget.delta)
    total = accountants.get(body.accountant, budget).total
    population = Population(
        name=body.name,
        owner_id=owner.id,
        description=body.description,
        accountant=body.accountant,
        epsilon_units=budget.epsilon_units,
        delta_units=budget.delta_units,
        curators=_known_curators(session, body.curators),
        created_at=at,
    )
    try:
        with session.begin_nested():
            session.add(population)
    except IntegrityError as error:
        raise InvalidRequest(f"the name {body.name} is taken; choose another", status=409) from error
    ledger.open_population(session, population.id, total)
    about: dict[str, Any] = {"population": body.name, **accountants.declared(budget)}
    audit.record(session, "create-population", actor=owner.name, at=at, accountant=body.accountant, **about)
    return population


def _known_curators(session: Session, names: Sequence[str]) -> list[str]:
    wanted = sorted(set(names))
    query = select(Principal.name).where(Principal.name.in_(wanted), Principal.role == Role.CURATOR)
    unknown = sorted(set(wanted) - set(session.scalars(query)))
    if unknown:
        raise InvalidRequest(f"there is no curator named {', '.join(unknown)}")
    return wanted


def find(session: Session, name: str, caller: Caller) -> Population:
    """Return a population that the caller may see; NotFound otherwise."""
    found = session.scalars(select(Population).where(Population.name == name)).one_or_none()
    if found is None or not _may_see(session, found, caller):
        raise NotFound(f"there is no population named {name}, or you have nothing to do with it")
    return found


def find_own(session: Session, name: str, caller: Caller) -> Population:
    """Return a population of the caller's own; Forbidden for others who may see it."""
    found = find(session, name, caller)
    if found.owner_id != caller.id:
        raise Forbidden(f"only the owner of {name} may do this", next_step="Ask its owner to do it.")
    return found


def _may_see(session: Session, population: Population, caller: Caller) -> bool:
    """Return True for its owner, curators who may use it, owners of datasets in it, and auditors."""
    if caller.role == Role.AUDITOR or population.owner_id == caller.id or caller.name in population.curators:
        return True
    own = select(Dataset.id).where(Dataset.population_id == population.id, Dataset.owner_id == caller.id)
    return session.scalars(own.limit(1)).first() is not None


def page(session: Session, caller: Caller, *, after: str, limit: int) -> list[Population]:
    """Return the populations that the caller may see, by name."""
    found: list[Population] = []
    query = select(Population).where(Population.name > after).order_by(Population.name)
    if caller.role != Role.AUDITOR:
        own = select(Dataset.population_id).where(
            Dataset.owner_id == caller.id, Dataset.population_id.is_not(None)
        )
        # The curators of a population are in a column of JSON, which the databases search in two ways.
        shared = [
            number
            for number, curators in session.execute(select(Population.id, Population.curators))
            if caller.name in curators
        ]
        mine = or_(Population.owner_id == caller.id, Population.id.in_(shared), Population.id.in_(own))
        query = query.where(mine)
    found += session.scalars(query.limit(limit))
    return found


def edit(
    session: Session, population: Population, body: PopulationChanges, *, actor: str, at: datetime
) -> None:
    """Change the description of a population, or which other curators may let their datasets join."""
    if body.description is not None:
        population.description = body.description
    if body.curators is not None:
        population.curators = _known_curators(session, body.curators)
    about: dict[str, Any] = {"population": population.name, "curators": population.curators}
    audit.record(session, "edit-population", actor=actor, at=at, **about)
    session.flush()


def raise_budget(
    session: Session, population: Population, budget: Budget, *, actor: str, at: datetime
) -> None:
    """Raise the total of a population; InvalidRequest when it would be smaller."""
    total = accountants.get(population.accountant, budget).total
    try:
        ledger.raise_population(session, population.id, total)
        session.refresh(population)
        smaller = (
            budget.epsilon_units < population.epsilon_units or budget.delta_units < population.delta_units
        )
    except ledger.Overdrawn:
        smaller = True
    if smaller:
        raise InvalidRequest(
            "a total can only be raised; give an epsilon and a delta of at least the current ones",
            errors=[{"where": "budget", "problem": "below the current total"}],
        )
    population.epsilon_units, population.delta_units = budget.epsilon_units, budget.delta_units
    about: dict[str, Any] = {"population": population.name, **accountants.declared(budget)}
    audit.record(session, "raise-population", actor=actor, at=at, **about)


def join(
    session: Session,
    population: Population,
    dataset: Dataset,
    *,
    one_row_per_person: bool,
    caller: Caller,
    at: datetime,
) -> None:
    """Let a dataset join a population, with all that its jobs have cost; CannotJoin if it may not."""
    if caller.id != population.owner_id and caller.name not in population.curators:
        raise Forbidden(
            f"you may not let datasets join {population.name}",
            next_step="Ask the owner of the population to name you among its curators.",
        )
    accounts = ledger.lock(session, dataset.id)
    session.refresh(dataset)
    _require_joinable(dataset, one_row_per_person)
    dataset.one_row_per_person = one_row_per_person and dataset.id_column is None
    dataset.population_id = population.id
    found, accountant = prices.history(session, dataset, population), accountants.of(population)
    try:
        ledger.join(session, accounts, population.id, found, actor=caller.name, at=at)
    except ledger.Overdrawn as refusal:
        present: dict[str, Any] = accountant.amounts(refusal.balance)
        raise CannotJoin(
            f"what jobs on {dataset.name} have cost one person so far is "
            f"{accountant.in_words(refusal.requested)}, and {population.name} has "
            f"{accountant.in_words(refusal.balance.remaining)} left",
            next_step="Ask the owner of the population to raise its total by the difference.",
            requested=accountant.amount(refusal.requested),
            **present,
        ) from refusal
    audit.record(
        session,
        "join-population",
        actor=caller.name,
        at=at,
        dataset_id=dataset.id,
        population=population.name,
        one_row_per_person=dataset.one_row_per_person,
    )
    session.flush()
    session.refresh(dataset)


def _require_joinable(dataset: Dataset, one_row_per_person: bool) -> None:
    if dataset.population is not None:
        raise CannotJoin(
            f"{dataset.name} is in the population {dataset.population.name}; a dataset never leaves one"
        )
    if dataset.state == DatasetState.DRAFT:
        raise NotSealed(
            f"{dataset.name} is still a draft, whose id column may change", next_step="Seal it first."
        )
    if dataset.id_column is None and not one_row_per_person:
        raise CannotJoin(
            f"{dataset.name} has no id column, so the noise of its jobs protects single rows, not people",
            next_step="Declare `one_row_per_person` if nobody has two rows in the dataset, or in one of its "
            "periods.",
        )
