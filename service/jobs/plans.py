"""Plans of jobs: made from public facts alone, and checked against the work limits."""

import json
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Self

from pydantic_core import to_json
from sqlalchemy.orm import Session

from core.algorithms import registry
from core.data import PartitionFacts, PublicRowFacts, Stored
from core.data.tables.geometry import fair_weights
from core.errors import WorkLimitExceeded
from core.jobs import kinds
from core.plan import CLUSTER, KRange, Plan, Request, Work
from core.privacy import DELTA_UNIT, Budget, default_delta, units_text
from core.privacy.budget import EPSILON_UNIT
from core.questions.base import Question
from service import ledger
from service.datasets import access, lifecycle, working_bounds
from service.datasets.access import Right
from service.datasets.periods import selection
from service.datasets.periods.selection import PeriodsRead
from service.datasets.populations import prices
from service.datasets.public_rows import attached
from service.datasets.sites import site_sets
from service.errors import DeltaNotOffered, EpsilonTooSmall, KindNotGranted
from service.jobs import clusterings
from service.jobs.wire import OpenK, PlanBody
from service.ledger import accountants
from service.ledger.units import LARGEST_UNITS

#: Longest text of a request whose plan is cached; longer ones name many sites and are rarely repeated.
_LONGEST_CACHED = 4096
#: Longest text of a plan that is stored with a job; it names its public inputs by digest.
_LONGEST_PLAN = 64 << 10


@dataclass(frozen=True)
class PublicInputs:
    """Options of a request with the facts of the site set that it names, of clusterings and public rows."""

    #: The dataset in working bounds or the declared ones; those in which sites, or clusterings, lie.
    bounds: Stored
    options: dict[str, Any]
    partitions: tuple[PartitionFacts, ...] = ()
    #: Those that are attached to the dataset, unless the request does without.
    public_rows: PublicRowFacts | None = None
    #: Those that the job reads; None: a dataset without periods, in its first version.
    periods: PeriodsRead | None = None

    @property
    def domain(self) -> Stored:
        """The domain of the job: the rows of its periods in these bounds."""
        return self.bounds if self.periods is None else self.periods.domain(self.bounds)


def inputs_of(
    session: Session, right: Right, body: PlanBody, periods: PeriodsRead | None, now: datetime
) -> PublicInputs:
    """Return the public inputs that a request names; the caller must be able to see the jobs named now."""
    inputs = _named_inputs(session, right, body, now)
    if body.rehearse_on is not None:
        clusterings.require_made_up_rows(session, right, body.rehearse_on, inputs.bounds, now)
    if periods is None:
        return inputs
    return replace(inputs, periods=replace(periods, bounds=inputs.bounds.fingerprint))


def _named_inputs(session: Session, right: Right, body: PlanBody, now: datetime) -> PublicInputs:
    dataset = right.dataset
    named, domain = clusterings.facts_of(
        session, right, body.clusterings or (), rehearsal=body.rehearsal, now=now
    )
    if body.sites is not None:
        found = site_sets.facts_of(dataset, site_sets.find(session, dataset, body.sites))
        return PublicInputs(access.domain_of(dataset), {**body.options, "sites": found})
    if body.options.get("sites") is not None:
        site_sets.require_short(body.options["sites"])
        domain = access.domain_of(dataset)
    public = attached.facts_of(dataset) if body.kind == CLUSTER and body.public_rows else None
    return PublicInputs(domain or working_bounds.present_domain(dataset), dict(body.options), named, public)


def require_kind(right: Right, kind: str) -> None:
    """Raise KindNotGranted unless the caller may submit this kind of job."""
    if right.grant is not None and not right.allows(kind):
        allowed = right.grant.allowed_kinds
        raise KindNotGranted(
            f"your grant on {right.dataset.name} allows {', '.join(allowed)}, but not {kind}",
            kinds=allowed,
        )


def delta_left(session: Session, right: Right, periods: PeriodsRead | None) -> int:
    """Return the delta, in units, that one more job on these periods may ask for."""
    left = LARGEST_UNITS
    if right.accountant.charges_as_asked:
        charged = selection.charged(periods)
        left = ledger.delta_left(session, right.dataset.id, right.grant_id, charged)
    return min(left, prices.delta_left(session, right.dataset, periods))


def make_plan(right: Right, body: PlanBody, inputs: PublicInputs, work: Work, *, delta_left: int) -> Plan:
    """Plan a request; refuses what would take too much work. Needs no database."""
    require_kind(right, body.kind)
    lifecycle.require_sealed(right.dataset)
    budget = _budget(right, body, inputs.domain.size, delta_left)
    if budget.epsilon_units < right.dataset.least_epsilon_units:
        least = units_text(right.dataset.least_epsilon_units, EPSILON_UNIT)
        raise EpsilonTooSmall(
            f"a job on {right.dataset.name} must ask for an epsilon of at least {least}", least_epsilon=least
        )
    asked = _Asked.of(_request(right, body, inputs, budget))
    make = _cached_plan if len(asked.text) <= _LONGEST_CACHED else _plan
    plan = make(inputs.domain, asked)
    plan.work.require_within(work)
    return plan


@dataclass(frozen=True)
class _Asked:
    """A request with the text that tells it from others, by which plans are cached."""

    text: bytes
    request: Request | Question = field(compare=False)

    @classmethod
    def of(cls, request: Request | Question) -> Self:
        return cls(to_json(request), request)  # ten times as fast as `json`, on many numbers


def _request(right: Right, body: PlanBody, inputs: PublicInputs, budget: Budget) -> Request | Question:
    columns = None if body.columns is None else tuple(body.columns)
    if body.kind != CLUSTER:
        # The noise that is cheapest for the accountant, unless the request says which.
        options = inputs.options if budget.is_pure else {"noise": right.accountant.noise, **inputs.options}
        return Question(body.kind, budget, columns, inputs.partitions, options)
    assert body.k is not None  # clusterings have a k
    return Request(
        k=KRange(body.k.first, body.k.last) if isinstance(body.k, OpenK) else body.k,
        budget=budget,
        objective=body.objective,
        algorithm=body.algorithm,
        options=inputs.options,
        columns=columns,
        weights=fair_weights(inputs.domain, columns) if body.weights == "fair" else body.weights or {},
        scaling=body.scaling,
        public_rows=inputs.public_rows,
    )


def _plan(domain: Stored, asked: _Asked) -> Plan:
    plan = kinds.plan(domain, asked.request)
    if len(json.dumps(plan.to_json())) > _LONGEST_PLAN:
        raise WorkLimitExceeded(f"the plan of this request would be longer than {_LONGEST_PLAN >> 10} KiB")
    return plan


#: A plan is a pure function of these, and calibrating noise may take a tenth of a second. A plan has at most
#: 64 KiB of JSON.
_cached_plan = lru_cache(maxsize=128)(_plan)


def _budget(right: Right, body: PlanBody, size: int, delta_left: int) -> Budget:
    if body.delta is None:
        pure = body.algorithm != "auto" and registry.get(body.algorithm).guarantee == "pure"
        if not right.offers_delta or pure:
            return Budget.of(body.epsilon)
        return Budget.of(body.epsilon, units_text(_automatic_delta(size, delta_left), DELTA_UNIT))
    budget = Budget.of(body.epsilon, body.delta)
    if not budget.is_pure and not right.offers_delta:
        raise DeltaNotOffered(
            f"{right.dataset.name} offers you no delta",
            requested=accountants.declared(budget),
        )
    return budget


def _automatic_delta(size: int, left: int) -> int:
    """Return the default, or what is left of delta, but at least a tenth of the default.

    Where less than that is left, the job does not fit, and its refusal says so.
    """
    default = Budget.at_most("1", default_delta(size)).delta_units
    return max(min(default, left), default // 10)
