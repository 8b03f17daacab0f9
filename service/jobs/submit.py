"""Submit jobs: check, plan, reserve, enqueue.

The plan is made outside any transaction, from public facts. One transaction then locks the analyst and both
accounts, checks again what may have changed meanwhile, reserves the plan's cost and enqueues the job.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, String, bindparam, func, select, text
from sqlalchemy.orm import Session

from core.data import Sites
from service import ledger
from service.datasets import access, lifecycle
from service.datasets.periods import selection
from service.datasets.sites import site_sets
from service.errors import (
    BudgetExhausted,
    CapExhausted,
    IdempotencyMismatch,
    PopulationExhausted,
    RateLimited,
    ServiceError,
    TooManyQueued,
)
from service.jobs import bindings, plans
from service.jobs.limits import Limits
from service.jobs.planned import PlannedJob, price
from service.jobs.wire import JobBody, PlanBody
from service.ledger import accountants
from service.operations import canonical, faults, metrics
from service.operations.database import Database
from service.operations.states import EndReason, JobState
from service.operations.tables import Dataset, Job, Principal
from service.operations.tables.columns import Moment
from service.people.authentication import Caller

_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
# Built once: every submission needs them.
_LOCK_ANALYST = (
    select(Principal.id).where(Principal.id == bindparam("analyst")).with_for_update(key_share=True)
)
_OWN = Job.principal_id == bindparam("analyst")
_WITH_KEY = (_OWN, Job.idempotency_key == bindparam("key", type_=String))
_BY_KEY = select(Job).where(*_WITH_KEY)
_QUOTA = select(
    select(Job.number).where(*_WITH_KEY).scalar_subquery().label("earlier"),
    select(func.count())
    .where(_OWN, text("state IN ('queued', 'running')"))  # literally, so that the partial index serves it
    .scalar_subquery()
    .label("unfinished"),
    # A job whose end is not shown yet counts as unfinished, else the quota would reveal it.
    select(func.count())
    .where(_OWN, Job.released_at > bindparam("now", type_=Moment))
    .scalar_subquery()
    .label("unreleased"),
    select(func.count())
    .where(
        _OWN,
        Job.dataset_id == bindparam("dataset"),
        Job.queued_at > bindparam("since", type_=Moment),
        Job.rehearsal.is_(False),
    )
    .scalar_subquery()
    .label("last_hour"),
)


@dataclass(frozen=True)
class Submission:
    """A job that was accepted, now or when the same Idempotency-Key was first used."""

    job: Job
    dataset: Dataset
    replayed: bool


def submit(
    database: Database, caller: Caller, body: JobBody, *, key: str | None, limits: Limits, now: datetime
) -> Submission:
    """Reserve the cost of a job and enqueue it, or raise the problem that prevents it."""
    with database.read() as session:
        right = access.find(session, body.dataset, caller)
        periods = selection.choose(session, right.dataset, body.periods)
        # Before an earlier job is looked for: what that one reserved must not change the plan.
        delta_left = plans.delta_left(session, right, periods) if body.delta is None else 0
        earlier = _earlier(session, caller, body, key)
        if earlier is not None:
            return Submission(earlier, right.dataset, replayed=True)
        inputs = plans.inputs_of(session, right, body, periods, now)
    plan = plans.make_plan(right, body, inputs, limits.work, delta_left=delta_left)
    with database.read() as session:
        planned = price(session, right, body, plan, limits, inputs.periods)
    planned.require_quoted(body.quote)
    faults.reach("submit.planned")
    try:
        with database.write() as session:
            submission = reserve_and_enqueue(session, planned, key=key, limits=limits, now=now)
            faults.reach("submit.enqueued")
    except ServiceError as refusal:
        with database.write() as session:
            metrics.refused(session, refusal.slug)
        raise
    faults.reach("submit.committed")
    return submission


def reserve_and_enqueue(
    session: Session, planned: PlannedJob, *, key: str | None, limits: Limits, now: datetime
) -> Submission:
    """Enqueue a planned job and reserve its cost in one write transaction, which a refusal must roll back.

    Dataset and grant are as they were when the job was planned; they are checked again under the lock.
    """
    right, body = planned.right, planned.body
    # One submission of an analyst at a time, whatever the dataset: quotas and keys count across datasets.
    session.connection().execute(_LOCK_ANALYST, {"analyst": right.caller.id})
    asked = {"analyst": right.caller.id, "key": key, "dataset": right.dataset.id, "now": now}
    counted = session.connection().execute(_QUOTA, {**asked, "since": now - _HOUR}).one()
    if counted.earlier is not None:
        earlier = _earlier(session, right.caller, body, key)
        if earlier is not None:
            return Submission(earlier, right.dataset, replayed=True)
    _require_quota(session, planned, limits, counted, now)
    job = _job(planned, key, now)
    paid_for = bindings.paid_for(job, right.dataset)
    # The accounts come last, because every submission to the dataset waits for their lock.
    charged = selection.charged(planned.periods)
    lock = ledger.lock if body.rehearsal else ledger.lock_paying
    accounts = lock(session, right.dataset.id, right.grant_id, charged)
    if not access.is_open(session, right.dataset.id, right.grant_id, body.kind, now):
        changed = access.find(session, body.dataset, right.caller)
        access.require_owner(session, changed.dataset)
        lifecycle.require_sealed(changed.dataset)
        plans.require_kind(changed, body.kind)
    if isinstance(planned.plan.sites, Sites):
        site_sets.store_unnamed(session, right.dataset, planned.plan.sites, at=now)
    session.add(job)
    if not body.rehearsal:
        planned = planned.for_population(session, accounts.population_id)
        try:
            ledger.reserve(
                session, accounts, job.id, planned.price, paid_for, actor=right.caller.name, at=now
            )
        except ledger.Overdrawn as refusal:
            raise _exhausted(planned, refusal, planned.cap_to_request(session)) from refusal
    session.flush()
    faults.reach("submit.reserved")
    return Submission(job, right.dataset, replayed=False)


def _job(planned: PlannedJob, key: str | None, now: datetime) -> Job:
    """Return the row of a new job."""
    right, body, plan = planned.right, planned.body, planned.plan
    request = {name: value for name, value in body.asked().items() if value is not None}
    if isinstance(plan.sites, Sites):  # sent with the request: stored once, and named by digest elsewhere
        request["options"] = {**request["options"], "sites": plan.inputs["sites"]}
    return Job(
        id=str(uuid.uuid4()),
        dataset_id=right.dataset.id,
        principal_id=right.caller.id,
        grant_id=right.grant_id,
        owner_id=right.dataset.owner_id,
        rehearsal=body.rehearsal,
        request=request,
        algorithm=plan.algorithm,
        planned_ms=planned.planned_ms,
        operations=planned.operations,
        plan=plan.to_json(),
        plan_digest=plan.digest,
        loss_units=planned.cost.loss,
        delta_units=planned.cost.delta,
        state=JobState.QUEUED,
        reason=EndReason.NONE,
        attempts=0,
        queued_at=now,
        progress={"phases": [[step.name, step.repeats] for step in plan.steps]},
        idempotency_key=key,
        request_digest=_digest(body),
        periods=planned.periods and planned.periods.to_json(),
    )


def _earlier(session: Session, caller: Caller, body: PlanBody, key: str | None) -> Job | None:
    """Return the job that this Idempotency-Key made before; IdempotencyMismatch if its body was another."""
    if key is None:
        return None
    found = session.scalars(_BY_KEY, {"analyst": caller.id, "key": key}).one_or_none()
    if found is not None and found.request_digest != _digest(body):
        raise IdempotencyMismatch("this Idempotency-Key was used with another body")
    return found


def _require_quota(
    session: Session, planned: PlannedJob, limits: Limits, counted: Row[*tuple[Any, ...]], now: datetime
) -> None:
    """Refuse what is beyond the analyst's limits; `counted` is what `_QUOTA` returned."""
    caller, dataset = planned.right.caller, planned.right.dataset
    if counted.unfinished + counted.unreleased >= limits.queued_jobs:
        raise TooManyQueued(
            f"you have {limits.queued_jobs} unfinished jobs",
            headers={"Retry-After": "5"},
            limit=limits.queued_jobs,
        )
    if not planned.body.rehearsal:
        if counted.last_hour >= dataset.jobs_per_hour:
            raise RateLimited(
                f"at most {dataset.jobs_per_hour} jobs an hour on {dataset.name}",
                headers={"Retry-After": "60"},
                limit=dataset.jobs_per_hour,
            )
        return
    recent = select(func.count()).where(
        Job.principal_id == caller.id, text("rehearsal"), Job.queued_at > now - _MINUTE
    )
    if session.execute(recent).scalar_one() >= limits.rehearsals_per_minute:
        raise RateLimited(
            f"at most {limits.rehearsals_per_minute} rehearsals a minute",
            headers={"Retry-After": "60"},
            limit=limits.rehearsals_per_minute,
        )


def _exhausted(
    planned: PlannedJob, refusal: ledger.Overdrawn, cap_to_request: accountants.Amount | None
) -> ServiceError:
    right, body = planned.right, planned.body
    if refusal.account.population is not None:
        return _population_exhausted(planned, refusal)
    of_dataset = refusal.account.grant is None
    accountant = right.accountant if of_dataset else accountants.of(right.dataset, right.grant)
    label = refusal.account.period
    lacking = f"{label} of {right.dataset.name}" if label else right.dataset.name
    fields = _periods_with_room(planned, refusal) if label else {}
    present: dict[str, Any] = accountant.amounts(refusal.balance)
    kind, whose = (BudgetExhausted, "") if of_dataset else (CapExhausted, "your cap on ")
    automatic = body.delta is None and refusal.requested.delta > refusal.largest.delta
    why = ", chosen automatically and never less than a tenth of the default" if automatic else ""
    largest = accountant.in_words(refusal.largest)
    return kind(
        f"{whose}{lacking} has {accountant.in_words(refusal.balance.remaining)} left, and "
        f"this asks for {accountant.in_words(refusal.requested)}{why}. {_tighter(planned, refusal)}The "
        f"largest job that you can submit now costs {largest}{fields.pop('sentence', '')}",
        requested=accountant.amount(refusal.requested),
        largest=accountant.amount(refusal.largest),
        request=cap_to_request,
        **present,
        **fields,
    )


def _tighter(planned: PlannedJob, refusal: ledger.Overdrawn) -> str:
    """Say which account limits the largest job, if it is not the one that lacks room."""
    if refusal.account.grant is None and refusal.tightest.grant is not None:
        return "Your cap has less left than that. "
    of_person = planned.of_person
    if of_person is None:
        return ""
    if refusal.tightest.population is not None:
        return f"The population {of_person.population.name} has less left than that. "
    if not of_person.is_alike(planned.right.dataset):
        return f"If the population {of_person.population.name} has room for it: "
    return ""


def _population_exhausted(planned: PlannedJob, refusal: ledger.Overdrawn) -> PopulationExhausted:
    """Say what is left of the population, in its own currency; what used it is on other datasets, too."""
    assert planned.of_person is not None  # its account was asked
    population, accountant = planned.of_person.population, planned.of_person.accountant
    several = f", with rows in {planned.of_person.parts} periods," if planned.of_person.parts > 1 else ""
    return PopulationExhausted(
        f"the people of {planned.right.dataset.name} are in the population {population.name}, which has "
        f"{accountant.in_words(refusal.balance.remaining)} left for all its datasets, and this job costs one "
        f"of them{several} {accountant.in_words(refusal.requested)}",
        population=population.name,
        accountant=population.accountant,
        requested=accountant.amount(refusal.requested),
        total=accountant.amount(refusal.balance.total),
        remaining=accountant.amount(refusal.balance.remaining),
    )


def _periods_with_room(planned: PlannedJob, refusal: ledger.Overdrawn) -> dict[str, Any]:
    """Return which period lacks room, and the largest range among those asked for that has room."""
    assert planned.periods is not None  # an account of a period is charged
    lacking = {key.period for key in refusal.short}
    largest = selection.largest_range(planned.periods.labels, lacking)
    sentence = ", and none of the periods asked for has room for this one"
    if largest is not None:
        sentence = f"; the largest range with room for this one is {selection.in_words(largest)}"
    return {"period": refusal.account.period, "largest_range": largest, "sentence": sentence}


def _digest(body: PlanBody) -> str:
    # The quote is not part of what is asked for.
    return canonical.digest(body.asked())
