"""Plans of jobs: made from public facts alone, priced, and checked against the work limits."""

import json
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from pydantic_core import to_json
from sqlalchemy.orm import Session

from core.algorithms import registry
from core.data import PartitionFacts, PublicRowFacts, SiteFacts, Stored
from core.errors import WorkLimitExceeded
from core.jobs import kinds
from core.plan import KRange, Plan, Request, Work
from core.privacy import DELTA_UNIT, Budget, default_delta, units_text
from core.privacy.budget import EPSILON_UNIT
from core.questions.base import Question
from service import ledger
from service.datasets import access, lifecycle, working_bounds
from service.datasets.public_rows import attached
from service.datasets.sites import site_sets
from service.errors import DeltaNotOffered, EpsilonTooSmall, KindNotGranted
from service.jobs import clusterings, quotes
from service.jobs.wire import OpenK, PlanBody
from service.ledger import accountants
from service.ledger.units import LARGEST_UNITS
from service.operations.tables import Dataset, Grant
from service.people.authentication import Caller

#: Longest text of a request whose plan is cached; longer ones name many sites and are rarely repeated.
_LONGEST_CACHED = 4096
#: Longest text of a plan that is stored with a job; its public inputs stand in it by digest.
_LONGEST_PLAN = 64 << 10


@dataclass(frozen=True)
class PublicInputs:
    """Options of a request with the facts of the site set that it names, of clusterings and public rows."""

    #: Working bounds or the declared ones; those in which the sites, or clusterings, that it names lie.
    domain: Stored
    options: dict[str, Any]
    partitions: tuple[PartitionFacts, ...] = ()
    #: Those that are attached to the dataset, unless the request does without.
    public_rows: PublicRowFacts | None = None


def inputs_of(
    session: Session, caller: Caller, dataset: Dataset, body: PlanBody, now: datetime
) -> PublicInputs:
    """Return the public inputs that a request names; the caller must be able to see the jobs named now."""
    inputs = _named_inputs(session, caller, dataset, body, now)
    if body.rehearse_on is not None:
        clusterings.require_made_up_rows(session, caller, dataset, body.rehearse_on, inputs.domain, now)
    return inputs


def _named_inputs(
    session: Session, caller: Caller, dataset: Dataset, body: PlanBody, now: datetime
) -> PublicInputs:
    named, domain = clusterings.facts_of(
        session, caller, dataset, body.clusterings or (), rehearsal=body.rehearsal, now=now
    )
    if body.sites is not None:
        found = site_sets.facts_of(dataset, site_sets.find(session, dataset, body.sites))
        return PublicInputs(access.domain_of(dataset), {**body.options, "sites": found})
    if body.options.get("sites") is not None:
        site_sets.require_short(body.options["sites"])
        domain = access.domain_of(dataset)
    public = attached.facts_of(dataset) if body.kind == "cluster" and body.public_rows else None
    return PublicInputs(domain or working_bounds.present_domain(dataset), dict(body.options), named, public)


def require_kind(dataset: Dataset, grant: Grant | None, body: PlanBody) -> None:
    """Raise KindNotGranted unless the grant allows this kind of job; the owner may ask for every kind."""
    if grant is not None and body.kind not in grant.allowed_kinds:
        raise KindNotGranted(
            f"your grant on {dataset.name} allows {', '.join(grant.allowed_kinds)}, but not {body.kind}; ask "
            "its curator to add it",
            kinds=grant.allowed_kinds,
        )


def make_plan(
    dataset: Dataset,
    grant: Grant | None,
    body: PlanBody,
    inputs: PublicInputs,
    work: Work,
    *,
    delta_left: int,
) -> Plan:
    """Plan a request of an analyst, or of the owner without a grant; refuses what would take too much work.

    Needs no database.
    """
    require_kind(dataset, grant, body)
    lifecycle.require_sealed(dataset)
    domain = inputs.domain
    budget = _budget(dataset, grant, body, domain.size, delta_left)
    if budget.epsilon_units < dataset.least_epsilon_units:
        least = units_text(dataset.least_epsilon_units, EPSILON_UNIT)
        raise EpsilonTooSmall(
            f"a job on {dataset.name} must ask for an epsilon of at least {least}", least_epsilon=least
        )
    options = inputs.options
    named = options["sites"] if isinstance(options.get("sites"), SiteFacts) else None
    rest = {name: value for name, value in options.items() if value is not named}
    if body.kind == "cluster":
        request = _clustering(body, rest)
    else:
        request = _question(dataset, body, rest, inputs.partitions, budget)
    if len(to_json(request)) <= _LONGEST_CACHED:  # ten times as fast as `json`, on many numbers
        plan = _cached_plan(domain, json.dumps(request, sort_keys=True), named, inputs.public_rows, budget)
    else:
        plan = _plan(domain, request, named, inputs.public_rows, budget)
    plan.work.require_within(work)
    return plan


def _clustering(body: PlanBody, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "k": body.k.model_dump(by_alias=True) if isinstance(body.k, OpenK) else body.k,
        "objective": body.objective,
        "algorithm": body.algorithm,
        "options": options,
        "columns": body.columns,
        "weights": body.weights or {},
        "scaling": body.scaling,
    }


def _question(
    dataset: Dataset,
    body: PlanBody,
    options: dict[str, Any],
    partitions: tuple[PartitionFacts, ...],
    budget: Budget,
) -> dict[str, Any]:
    if not budget.is_pure:
        options = {"noise": accountants.of(dataset).noise, **options}
    return {
        "kind": body.kind,
        "columns": body.columns,
        "options": options,
        "partitions": [facts.to_json() for facts in partitions],
    }


@lru_cache(maxsize=128)  # of at most 64 KiB of JSON each
def _cached_plan(
    domain: Stored, request: str, sites: SiteFacts | None, public: PublicRowFacts | None, budget: Budget
) -> Plan:
    """Make a plan, which is a pure function of these; calibrating noise may take a tenth of a second."""
    return _plan(domain, json.loads(request), sites, public, budget)


def _plan(
    domain: Stored,
    asked: dict[str, Any],
    sites: SiteFacts | None,
    public: PublicRowFacts | None,
    budget: Budget,
) -> Plan:
    if asked["columns"] is not None:
        asked["columns"] = tuple(asked["columns"])
    if "kind" in asked:
        asked["partitions"] = tuple(PartitionFacts(**facts) for facts in asked["partitions"])
        plan = kinds.plan(domain, Question(budget=budget, **asked))
    else:
        if isinstance(asked["k"], dict):
            asked["k"] = KRange.from_json(asked["k"])
        if sites is not None:
            asked["options"]["sites"] = sites
        plan = kinds.plan(domain, Request(budget=budget, public_rows=public, **asked))
    if len(json.dumps(plan.to_json())) > _LONGEST_PLAN:
        raise WorkLimitExceeded(f"the plan of this request would be longer than {_LONGEST_PLAN >> 10} KiB")
    return plan


def _budget(dataset: Dataset, grant: Grant | None, body: PlanBody, size: int, delta_left: int) -> Budget:
    offered = min(each.delta_units for each in (dataset, grant) if each) > 0
    if body.delta is None:
        pure = body.algorithm != "auto" and registry.get(body.algorithm).guarantee == "pure"
        if not offered or pure:
            return Budget.of(body.epsilon)
        left = delta_left if accountants.of(dataset).charges_delta else LARGEST_UNITS
        return Budget.of(body.epsilon, units_text(_automatic_delta(size, left), DELTA_UNIT))
    budget = Budget.of(body.epsilon, body.delta)
    if not budget.is_pure and not offered:
        raise DeltaNotOffered(
            f"{dataset.name} offers you no delta; send delta 0 and an algorithm with a pure guarantee",
            requested=accountants.declared(budget),
        )
    return budget


def _automatic_delta(size: int, left: int) -> int:
    """Return the default, or what is left of delta, but at least a tenth of the default.

    Where less than that is left, the job does not fit, and its refusal says so.
    """
    default = Budget.at_most("1", default_delta(size)).delta_units
    return max(min(default, left), default // 10)


def quote(
    session: Session, dataset: Dataset, grant: Grant | None, body: PlanBody, plan: Plan, planned_ms: int
) -> dict[str, Any]:
    """Describe a plan with its cost, what would remain, and whether it fits now; costs nothing."""
    cost = quotes.cost_of(dataset, body, plan)
    rooms = {"budget": ledger.balance(ledger.find(session, dataset.id)).remaining}
    if grant is not None:
        rooms["cap"] = ledger.balance(ledger.find(session, dataset.id, grant.id)).remaining
    fits = all(cost.fits(room) for room in rooms.values())
    after = {name: accountants.of(dataset).amount(room - cost) for name, room in rooms.items() if fits}
    return {
        "plan": {**plan.to_json(), "domain": plan.described.to_json()},
        "digest": plan.digest,
        "cost": accountants.of(dataset).amount(cost),
        "quote": quotes.quote_of(dataset, grant, body, plan),
        "planned_seconds": planned_ms / 1000,
        "fits": fits,
        "remaining_after": after or None,
        "forecast": dict(plan.forecast),
        "warnings": access.warnings(dataset, plan.described),
    }
