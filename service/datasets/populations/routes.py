"""Routes of populations: create, list, show, edit, raise the budget, join."""

from typing import Annotated

from fastapi import APIRouter, Path

from core.privacy import Budget
from service.datasets import access
from service.datasets.populations import lifecycle, view
from service.datasets.populations.wire import (
    JoinBody,
    PopulationBody,
    PopulationChanges,
    PopulationFacts,
    PopulationPage,
)
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.paging import Paging
from service.http.problems import answers
from service.http.wire import NAME_PATTERN, BudgetBody
from service.people.authentication import FreeCurator, FreeOverseer

router = APIRouter(prefix="/v1/populations", tags=["populations"], route_class=StrictRoute)
PopulationName = Annotated[str, Path(pattern=NAME_PATTERN, description="name of a population")]


@router.post("", status_code=201, responses=answers())
def create_population(body: PopulationBody, caller: FreeCurator, context: Services) -> PopulationFacts:
    """Create a population: people who may be in several datasets, with one total for all of these."""
    with context.database.write() as session:
        population = lifecycle.create(session, body, owner=caller, at=context.clock.now())
        return PopulationFacts.model_validate(view.facts(session, population, caller))


@router.get("", responses=answers())
def list_populations(caller: FreeOverseer, context: Services, paging: Paging) -> PopulationPage:
    """List the populations that you own, may use, or have datasets in; auditors see all of them."""
    with context.database.read() as session:
        found = lifecycle.page(session, caller, after=paging.after(str) or "", limit=paging.fetch)
        shown, following = paging.cut(found, lambda population: population.name)
        items = [view.facts(session, each, caller) for each in shown]
    return PopulationPage.model_validate({"items": items, "next": following})


@router.get("/{population}", responses=answers())
def get_population(population: PopulationName, caller: FreeOverseer, context: Services) -> PopulationFacts:
    """Get a population's balance, and what each of its datasets has used of it."""
    with context.database.read() as session:
        found = lifecycle.find(session, population, caller)
        return PopulationFacts.model_validate(view.facts(session, found, caller))


@router.patch("/{population}", responses=answers())
def edit_population(
    population: PopulationName, body: PopulationChanges, caller: FreeCurator, context: Services
) -> PopulationFacts:
    """Change the description, or which other curators may let their datasets join."""
    with context.database.write() as session:
        found = lifecycle.find_own(session, population, caller)
        lifecycle.edit(session, found, body, actor=caller.name, at=context.clock.now())
        return PopulationFacts.model_validate(view.facts(session, found, caller))


@router.post("/{population}/budget", responses=answers())
def raise_budget_of_population(
    population: PopulationName, body: BudgetBody, caller: FreeCurator, context: Services
) -> PopulationFacts:
    """Raise a population's total; it can never be lowered."""
    budget = Budget.of(body.epsilon, body.delta)
    with context.database.write() as session:
        found = lifecycle.find_own(session, population, caller)
        lifecycle.raise_budget(session, found, budget, actor=caller.name, at=context.clock.now())
        session.flush()
        return PopulationFacts.model_validate(view.facts(session, found, caller))


@router.post("/{population}/datasets", responses=answers("not-sealed", "cannot-join"))
def join_population(
    population: PopulationName, body: JoinBody, caller: FreeCurator, context: Services
) -> PopulationFacts:
    """Let a dataset join, with what its jobs have cost so far. It stays in the population for good.

    From then on, every job on it must also fit what is left of the population.
    """
    with context.database.write() as session:
        found = lifecycle.find(session, population, caller)
        dataset = access.find(session, body.dataset, caller).dataset
        declared = body.one_row_per_person
        now = context.clock.now()
        lifecycle.join(session, found, dataset, one_row_per_person=declared, caller=caller, at=now)
        return PopulationFacts.model_validate(view.facts(session, found, caller))
