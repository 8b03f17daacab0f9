"""Planned jobs: a request with its plan, cost, quote and planned time, each made once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from sqlalchemy.orm import Session

from core.plan import CLUSTER, Plan
from service import ledger
from service.datasets.access import Right, domain_of
from service.datasets.periods import selection
from service.datasets.periods.selection import PeriodsRead
from service.datasets.populations import prices
from service.datasets.populations.prices import OfPerson
from service.errors import QuoteMismatch, WorkLimit
from service.jobs.limits import Limits
from service.jobs.wire import JobBody, PlanBody
from service.ledger import Price, accountants
from service.ledger.accountants import Amount
from service.ledger.charging import AccountKey
from service.ledger.units import NOTHING, Cost
from service.operations import timing
from service.operations.tables import Population


@dataclass(frozen=True)
class PlannedJob:
    """A request of a caller with its plan, and what follows from the plan."""

    right: Right
    body: PlanBody
    plan: Plan
    #: What the job is charged: the cost of its plan, and nothing for a rehearsal.
    cost: Cost
    #: Time from the claim of the job to its result.
    planned_ms: int
    operations: int
    #: The periods that it reads; None: a dataset without periods, in its first version.
    periods: PeriodsRead | None = None
    #: What it costs one person of the population; None for a rehearsal, and outside populations.
    of_person: OfPerson | None = None

    @property
    def price(self) -> Price:
        """What the accounts are charged."""
        if self.of_person is None:
            return Price(self.cost)
        return Price(self.cost, self.of_person.cost, self.of_person.is_alike(self.right.dataset))

    def for_population(self, session: Session, population_id: int | None) -> Self:
        """Return the job as the population prices it that the dataset turns out to be in.

        QuoteMismatch for a quote of before the dataset joined.
        """
        if population_id is None or self.of_person is not None:
            return self  # a dataset joins one population, and never leaves it
        population = session.get_one(Population, population_id)
        priced = replace(self, of_person=prices.price(population, self.plan, self.periods))
        if isinstance(self.body, JobBody):
            priced.require_quoted(self.body.quote)
        return priced

    @cached_property
    def quote(self) -> str:
        """The digest of the caller (by grant, or as the owner), the request, its plan and its cost.

        Nothing is stored for a quote: it reserves nothing and does not expire, but it stops matching as soon
        as the same request would be planned or priced differently.
        """
        bound: dict[str, Any] = {
            "analyst": self.right.caller.id,
            "dataset": self.right.dataset.id,
            "grant": self.right.grant_id,
            "request": self.body.asked(),
            "plan": self.plan.digest,
            "cost": [self.right.accountant.name, self.cost.loss, self.cost.delta],
        }
        if self.periods is not None:
            bound["periods"] = self.periods.facts()
        if self.of_person is not None:
            population, cost = self.of_person.population, self.of_person.cost
            bound["population"] = [population.id, population.accountant, cost.loss, cost.delta]
        return hashlib.sha256(json.dumps(bound, sort_keys=True, separators=(",", ":")).encode()).hexdigest()

    def cap_to_request(self, session: Session) -> Amount | None:
        """Return the cap, as it would be declared, in which the job fits next to what was used."""
        grant = self.right.grant
        if grant is None:
            return None
        labels = selection.charged(self.periods)
        balances = ledger.balances(session, self.right.dataset.id, grant.id)
        rooms = [balances[AccountKey(label, grant.id)] for label in labels]
        used = [room.reserved + room.spent for room in rooms]
        need = Cost(max(each.loss for each in used), max(each.delta for each in used)) + self.cost
        cap = accountants.of(self.right.dataset, grant).enough_for(need)
        return None if cap is None else accountants.declared(cap)

    def require_quoted(self, quote: str | None) -> None:
        """Raise QuoteMismatch for a quote of anything but what the job would be charged for now."""
        if quote is not None and quote != self.quote:
            raise QuoteMismatch(
                "the quote is for another request, or the price has changed",
                cost=self.right.accountant.amount(self.cost),
            )


def price(
    session: Session,
    right: Right,
    body: PlanBody,
    plan: Plan,
    limits: Limits,
    periods: PeriodsRead | None = None,
) -> PlannedJob:
    """Return a job with its cost and planned time; WorkLimit if it takes too long or releases too much."""
    _require_few_values(plan, limits)
    population = None if body.rehearsal else right.dataset.population
    return PlannedJob(
        right,
        body,
        plan,
        NOTHING if body.rehearsal else right.accountant.cost(plan),
        _planned_ms(session, right, body, plan, limits),
        _operations(body, plan, limits),
        periods,
        None if population is None else prices.price(population, plan, periods),
    )


def _require_few_values(plan: Plan, limits: Limits) -> None:
    """Refuse long results of clusterings; questions have a limit of their own."""
    values = plan.k * plan.domain.dimension if plan.kind == CLUSTER else 0
    if values > limits.released_values:
        raise WorkLimit(
            f"this job would release {values:,} coordinates of centres; the limit is "
            f"{limits.released_values:,}: ask for fewer clusters, or for fewer columns"
        )


def _planned_ms(session: Session, right: Right, body: PlanBody, plan: Plan, limits: Limits) -> int:
    rows, rates = limits.rows(plan, rehearsal=body.rehearsal), timing.rates_of(session, plan)
    # Only a question about an earlier clustering can have bounds that the dataset does not have now.
    asked = right.dataset.working is not None or bool(plan.partitions)
    declared = domain_of(right.dataset)
    of_job = replace(declared, size=plan.stored.size, rows_per_person=plan.stored.rows_per_person)
    narrowed = asked and not body.rehearsal and plan.stored != of_job
    planned = timing.planned_ms(rates, plan, rows, limits.release_margin, narrowed=narrowed)
    if not body.rehearsal and planned > 1000 * limits.job_seconds:
        raise WorkLimit(
            f"this job is planned to take {planned / 1000:,.0f} seconds; the limit is "
            f"{limits.job_seconds:,.0f}: ask for fewer clusters, or smaller options"
        )
    return planned


def _operations(body: PlanBody, plan: Plan, limits: Limits) -> int:
    operations = timing.operations_of(plan, limits.rows(plan, rehearsal=body.rehearsal))
    if body.rehearsal and operations > limits.rehearsal_operations:
        raise WorkLimit(
            f"this rehearsal would take about {operations:.1e} operations; the limit is "
            f"{limits.rehearsal_operations:.1e}: rehearse with fewer clusters, or smaller options"
        )
    return round(operations)
