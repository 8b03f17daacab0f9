"""Submit jobs: check, plan, reserve, enqueue.

The plan is made outside any transaction, from public facts. One transaction then locks the analyst and both
accounts, checks again what may have changed meanwhile, reserves the plan's cost and enqueues the job.
"""

from __future__ import annotations

import hashlib
import json
import math
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Row, String, bindparam, func, select, text
from sqlalchemy.orm import Session

from core.data import Sites
from core.plan import Plan, Work
from service import ledger
from service.datasets import access, lifecycle
from service.datasets.sites import site_sets
from service.errors import (
    BudgetExhausted,
    CapExhausted,
    IdempotencyMismatch,
    RateLimited,
    ServiceError,
    TooManyQueued,
    WorkLimit,
)
from service.jobs import plans, quotes, timing
from service.jobs.wire import JobBody
from service.ledger import accountants
from service.operations import faults, metrics
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.states import EndReason, JobState
from service.operations.tables import Dataset, Grant, Job, Principal
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
    # A job whose end is not shown yet counts as unfinished, else the quota would tell of it.
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


#: Bytes that a worker process may hold in addition to the memory of a plan and the derived rows it keeps:
#: Python with its libraries takes about 250 MB, and a chunk that is read and encoded about 100 MB.
_WORKER_BYTES = 512 << 20


@dataclass(frozen=True)
class Limits:
    """Limits on what one analyst may ask for."""

    work: Work
    queued_jobs: int
    rehearsals_per_minute: int
    rehearsal_rows: int = 20_000
    rehearsal_operations: float = math.inf
    release_margin: float = 1.5
    job_seconds: float = math.inf

    @classmethod
    def of(cls, settings: Settings, plan_bytes: int | None = None) -> Limits:
        """Read the limits off the settings; `plan_bytes` is what the workers have memory for, if known."""
        kept = settings.view_cache_bytes + _WORKER_BYTES
        memory = max(settings.max_memory_bytes - kept, 0)
        work = Work(settings.max_operations, float(memory if plan_bytes is None else min(memory, plan_bytes)))
        return cls(
            work,
            settings.max_queued_jobs,
            settings.rehearsals_per_minute,
            settings.rehearsal_rows,
            settings.rehearsal_operations,
            settings.release_margin,
            settings.job_seconds,
        )

    def planned_ms(self, session: Session, dataset: Dataset, plan: Plan, *, rehearsal: bool) -> int:
        """Return the time from the claim of a job to its result, in milliseconds; WorkLimit if too long."""
        rows, rates = self._rows(plan, rehearsal), timing.rates_of(session, plan)
        # Only a question about an earlier clustering can have bounds that the dataset does not have now.
        asked = dataset.working is not None or bool(plan.partitions)
        narrowed = asked and not rehearsal and plan.stored != access.domain_of(dataset)
        planned = timing.planned_ms(rates, plan, rows, self.release_margin, narrowed=narrowed)
        if not rehearsal and planned > 1000 * self.job_seconds:
            raise WorkLimit(
                f"this job is planned to take {planned / 1000:,.0f} seconds; the limit is "
                f"{self.job_seconds:,.0f}: ask for fewer clusters, or smaller options"
            )
        return planned

    def operations_of(self, plan: Plan, *, rehearsal: bool) -> float:
        """Return the planned work of a job, or of a rehearsal, whose rows are few; WorkLimit if too much."""
        operations = timing.operations_of(plan, self._rows(plan, rehearsal))
        if rehearsal and operations > self.rehearsal_operations:
            raise WorkLimit(
                f"this rehearsal would take about {operations:.1e} operations; the limit is "
                f"{self.rehearsal_operations:.1e}: rehearse with fewer clusters, or smaller options"
            )
        return operations

    def _rows(self, plan: Plan, rehearsal: bool) -> int:
        return min(self.rehearsal_rows, plan.domain.size) if rehearsal else plan.domain.size


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
        dataset, grant = access.find(session, body.dataset, caller)
        grant_id = grant.id if grant else None
        # Before an earlier job is looked for: what that one reserved must not change the plan.
        delta_left = ledger.delta_left(session, dataset.id, grant_id) if body.delta is None else 0
        earlier = _earlier(session, caller, body, key)
        if earlier is not None:
            return Submission(earlier, dataset, replayed=True)
        inputs = plans.inputs_of(session, caller, dataset, body, now)
    plan = plans.make_plan(dataset, grant, body, inputs, limits.work, delta_left=delta_left)
    quotes.require_quoted(dataset, grant, body, plan)
    faults.reach("submit.planned")
    try:
        with database.write() as session:
            submission = reserve_and_enqueue(
                session, caller, body, dataset, grant, plan, key=key, limits=limits, now=now
            )
            faults.reach("submit.enqueued")
    except ServiceError as refusal:
        with database.write() as session:
            metrics.refused(session, refusal.slug)
        raise
    faults.reach("submit.committed")
    return submission


def reserve_and_enqueue(
    session: Session,
    caller: Caller,
    body: JobBody,
    dataset: Dataset,
    grant: Grant | None,
    plan: Plan,
    *,
    key: str | None,
    limits: Limits,
    now: datetime,
) -> Submission:
    """Enqueue a planned job and reserve its cost in one write transaction, which a refusal must roll back.

    `dataset` and `grant` are as they were when the job was planned; they are checked again under the lock.
    The dataset's owner has no grant: only the total limits what they spend.
    """
    grant_id = grant.id if grant else None
    # One submission of an analyst at a time, whatever the dataset: quotas and keys count across datasets.
    session.connection().execute(_LOCK_ANALYST, {"analyst": caller.id})
    asked = {"analyst": caller.id, "key": key, "dataset": dataset.id, "now": now, "since": now - _HOUR}
    found = session.connection().execute(_QUOTA, asked).one()
    if found.earlier is not None and (earlier := _earlier(session, caller, body, key)) is not None:
        return Submission(earlier, dataset, replayed=True)
    _require_quota(session, caller, body, dataset, limits, found, now)
    request = {name: value for name, value in body.asked().items() if value is not None}
    if isinstance(plan.sites, Sites):  # sent with the request: stored once, and named by digest elsewhere
        request["options"]["sites"] = plan.inputs["sites"]
    cost = quotes.cost_of(dataset, body, plan)
    job = Job(
        id=str(uuid.uuid4()),
        dataset_id=dataset.id,
        principal_id=caller.id,
        grant_id=grant_id,
        owner_id=dataset.owner_id,
        rehearsal=body.rehearsal,
        request=request,
        algorithm=plan.algorithm,
        planned_ms=limits.planned_ms(session, dataset, plan, rehearsal=body.rehearsal),
        operations=round(limits.operations_of(plan, rehearsal=body.rehearsal)),
        plan=plan.to_json(),
        plan_digest=plan.digest,
        loss_units=cost.loss,
        delta_units=cost.delta,
        state=JobState.QUEUED,
        reason=EndReason.NONE,
        attempts=0,
        queued_at=now,
        progress={"phases": [[step.name, step.repeats] for step in plan.steps]},
        idempotency_key=key,
        request_digest=_digest(body),
    )
    # The accounts come last, because every submission to the dataset waits for their lock.
    accounts = ledger.lock(session, dataset.id, grant_id)
    if not access.is_open(session, dataset.id, grant_id, body.kind):
        changed, renewed = access.find(session, body.dataset, caller)
        lifecycle.require_sealed(changed)
        plans.require_kind(changed, renewed, body)
    if isinstance(plan.sites, Sites):
        site_sets.store_unnamed(session, dataset, plan.sites, at=now)
    session.add(job)
    if not body.rehearsal:
        try:
            ledger.reserve(session, accounts, job.id, cost, actor=caller.name, at=now)
        except ledger.Overdrawn as refusal:
            raise _exhausted(dataset, grant, body, refusal) from refusal
    session.flush()
    faults.reach("submit.reserved")
    return Submission(job, dataset, replayed=False)


def _earlier(session: Session, caller: Caller, body: JobBody, key: str | None) -> Job | None:
    """Return the job that this Idempotency-Key made before; IdempotencyMismatch if its body was another."""
    if key is None:
        return None
    found = session.scalars(_BY_KEY, {"analyst": caller.id, "key": key}).one_or_none()
    if found is not None and found.request_digest != _digest(body):
        raise IdempotencyMismatch("this Idempotency-Key was used with another body; use a new one")
    return found


def _require_quota(
    session: Session,
    caller: Caller,
    body: JobBody,
    dataset: Dataset,
    limits: Limits,
    found: Row[*tuple[Any, ...]],
    now: datetime,
) -> None:
    """Refuse what is beyond the analyst's limits; `found` is what `_QUOTA` counted."""
    if found.unfinished + found.unreleased >= limits.queued_jobs:
        raise TooManyQueued(
            f"you have {limits.queued_jobs} unfinished jobs; wait for one to end, or cancel one",
            headers={"Retry-After": "5"},
            limit=limits.queued_jobs,
        )
    if not body.rehearsal:
        if found.last_hour >= dataset.jobs_per_hour:
            raise RateLimited(
                f"at most {dataset.jobs_per_hour} jobs an hour on {dataset.name}; wait a little",
                headers={"Retry-After": "60"},
                limit=dataset.jobs_per_hour,
            )
        return
    recent = select(func.count()).where(
        Job.principal_id == caller.id, text("rehearsal"), Job.queued_at > now - _MINUTE
    )
    if session.execute(recent).scalar_one() >= limits.rehearsals_per_minute:
        raise RateLimited(
            f"at most {limits.rehearsals_per_minute} rehearsals a minute; wait a little",
            headers={"Retry-After": "60"},
            limit=limits.rehearsals_per_minute,
        )


def _exhausted(
    dataset: Dataset, grant: Grant | None, body: JobBody, refusal: ledger.Overdrawn
) -> ServiceError:
    of_dataset = refusal.whose == "dataset" or grant is None
    delta_units = dataset.delta_units if grant is None or of_dataset else grant.delta_units
    requested, largest = (
        accountants.amount(dataset.accountant, cost, delta_units)
        for cost in (refusal.requested, refusal.largest)
    )
    present: dict[str, Any] = accountants.amounts(dataset.accountant, refusal.balance, delta_units)
    kind, whose = (BudgetExhausted, "") if of_dataset else (CapExhausted, "your cap on ")
    automatic = body.delta is None and refusal.requested.delta > refusal.largest.delta
    why = ", chosen automatically and never less than a tenth of the default" if automatic else ""
    less = "Your cap has less left than that. " if refusal.tightest != refusal.whose else ""
    return kind(
        f"{whose}{dataset.name} has {_in_words(present['remaining'])} left, and this asks for "
        f"{_in_words(requested)}{why}. {less}The largest job that you can submit now costs "
        f"{_in_words(largest)}",
        requested=requested,
        largest=largest,
        **present,
    )


def _in_words(amount: dict[str, str]) -> str:
    first = "rho" if "rho" in amount else "epsilon"
    return f"{first} {amount[first]} and delta {amount['delta']}"


def _digest(body: JobBody) -> str:
    # The quote is no part of what is asked for.
    canonical = json.dumps(body.asked(), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
