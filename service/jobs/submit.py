"""Submit jobs: check, plan, reserve, enqueue.

The plan is made outside any transaction, from public facts. One transaction then locks the analyst and both
accounts, checks again what may have changed meanwhile, reserves the plan's cost and enqueues the job.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from core.data import Sites
from core.plan import Plan, Work
from service import ledger
from service.datasets import access, lifecycle, sites
from service.errors import (
    BudgetExhausted,
    CapExhausted,
    IdempotencyMismatch,
    RateLimited,
    ServiceError,
    TooManyQueued,
)
from service.jobs import plans
from service.jobs.wire import JobBody
from service.ledger import accountants
from service.ledger.units import NOTHING
from service.operations import faults, metrics
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.states import EndReason, JobState
from service.operations.tables import Dataset, Grant, Job, Principal
from service.people.authentication import Caller

__all__ = ["Limits", "Submission", "reserve_and_enqueue", "submit"]

_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Limits:
    """Limits on what one analyst may ask for."""

    work: Work
    queued_jobs: int
    rehearsals_per_minute: int

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Read the limits off the settings."""
        work = Work(settings.max_operations, float(settings.max_memory_bytes))
        return cls(work, settings.max_queued_jobs, settings.rehearsals_per_minute)


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
        dataset, grant = access.find_granted(session, body.dataset, caller)
        earlier = _earlier(session, caller, body, key)
        if earlier is not None:
            return Submission(earlier, dataset, replayed=True)
        options = plans.options_of(session, dataset, body)
    plan = plans.make_plan(dataset, grant, body, options, limits.work)
    faults.reach("submit.planned")
    try:
        with database.write() as session:
            submission = reserve_and_enqueue(
                session, caller, body, grant, plan, key=key, limits=limits, now=now
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
    grant: Grant,
    plan: Plan,
    *,
    key: str | None,
    limits: Limits,
    now: datetime,
) -> Submission:
    """Reserve and enqueue a planned job in the caller's write transaction, or raise and change nothing."""
    # One submission of an analyst at a time, whatever the dataset: quotas and keys count across datasets.
    session.execute(select(Principal.id).where(Principal.id == caller.id).with_for_update(key_share=True))
    accounts = ledger.lock(session, grant.dataset_id, grant.id)
    dataset, grant = access.find_granted(session, body.dataset, caller)
    earlier = _earlier(session, caller, body, key)
    if earlier is not None:
        return Submission(earlier, dataset, replayed=True)
    lifecycle.require_sealed(dataset)
    _require_quota(session, caller, body, limits, now)
    request = body.model_dump(mode="json", exclude_none=True)
    if isinstance(plan.sites, Sites):  # sent with the request: stored once, named by digest everywhere else
        sites.store_unnamed(session, dataset, plan.sites, at=now)
        request["options"]["sites"] = plan.inputs["sites"]
    cost = NOTHING if body.rehearsal else accountants.cost_of(dataset.accountant, plan)
    job = Job(
        id=str(uuid.uuid4()),
        dataset_id=dataset.id,
        principal_id=caller.id,
        grant_id=grant.id,
        rehearsal=body.rehearsal,
        request=request,
        plan=plan.to_json(),
        plan_digest=plan.digest,
        loss_units=cost.loss,
        delta_units=cost.delta,
        state=JobState.QUEUED,
        reason=EndReason.NONE,
        attempts=0,
        queued_at=now,
        progress={},
        idempotency_key=key,
        request_digest=_digest(body),
    )
    if not body.rehearsal:
        try:
            ledger.reserve(session, accounts, job.id, cost, actor=caller.name, at=now)
        except ledger.Overdrawn as refusal:
            raise _exhausted(dataset, grant, refusal) from refusal
    faults.reach("submit.reserved")
    session.add(job)
    session.flush()
    return Submission(job, dataset, replayed=False)


def _earlier(session: Session, caller: Caller, body: JobBody, key: str | None) -> Job | None:
    """Return the job that this Idempotency-Key made before; IdempotencyMismatch if its body was another."""
    if key is None:
        return None
    query = select(Job).where(Job.principal_id == caller.id, Job.idempotency_key == key)
    job = session.scalars(query).one_or_none()
    if job is not None and job.request_digest != _digest(body):
        raise IdempotencyMismatch("this Idempotency-Key was used with another body; use a new one")
    return job


def _require_quota(session: Session, caller: Caller, body: JobBody, limits: Limits, now: datetime) -> None:
    # Written out, so that the partial index of unfinished jobs serves it.
    unfinished = select(func.count()).where(
        Job.principal_id == caller.id, text("state IN ('queued', 'running')")
    )
    if session.execute(unfinished).scalar_one() >= limits.queued_jobs:
        raise TooManyQueued(
            f"you have {limits.queued_jobs} unfinished jobs; wait for one to end, or cancel one",
            headers={"Retry-After": "5"},
            limit=limits.queued_jobs,
        )
    if not body.rehearsal:
        return
    recent = select(func.count()).where(
        Job.principal_id == caller.id, Job.rehearsal.is_(True), Job.queued_at > now - _MINUTE
    )
    if session.execute(recent).scalar_one() >= limits.rehearsals_per_minute:
        raise RateLimited(
            f"at most {limits.rehearsals_per_minute} rehearsals a minute; wait a little",
            headers={"Retry-After": "60"},
            limit=limits.rehearsals_per_minute,
        )


def _exhausted(dataset: Dataset, grant: Grant, refusal: ledger.Overdrawn) -> BudgetExhausted | CapExhausted:
    of_dataset = refusal.whose == "dataset"
    delta_units = dataset.delta_units if of_dataset else grant.delta_units
    costs = {
        "requested": refusal.requested,
        "total": refusal.balance.total,
        "spent": refusal.balance.spent,
        "reserved": refusal.balance.reserved,
        "remaining": refusal.balance.remaining,
    }
    amounts: dict[str, Any] = {
        name: accountants.amount(dataset.accountant, cost, delta_units) for name, cost in costs.items()
    }
    asked, left = (_in_words(amounts[name]) for name in ("requested", "remaining"))
    if of_dataset:
        return BudgetExhausted(f"{dataset.name} has {left} left; this asks for {asked}", **amounts)
    return CapExhausted(f"your cap on {dataset.name} has {left} left; this asks for {asked}", **amounts)


def _in_words(amount: dict[str, str]) -> str:
    first = "rho" if "rho" in amount else "epsilon"
    return f"{first} {amount[first]} and delta {amount['delta']}"


def _digest(body: JobBody) -> str:
    canonical = json.dumps(body.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()
