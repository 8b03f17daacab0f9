"""What becomes of a job: plan, quote, submit, cancel, and what may be seen of them when and by whom.

Planning reads public facts alone. Submitting checks both accounts, reserves and enqueues in one
transaction; what is reserved is what was planned.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from core.algorithms import registry
from core.plan import Plan, Request, Work
from core.privacy import Budget, default_delta
from service import accounting, datasets, faults, ledger, queue, sites
from service.amounts import NOTHING, Cost
from service.auth import Caller
from service.clock import rfc3339
from service.errors import (
    BudgetExhausted,
    CapExhausted,
    DeltaNotOffered,
    IdempotencyMismatch,
    NotCancellable,
    NotFound,
    RateLimited,
    TooManyQueued,
)
from service.schemas.work import JobBody, PlanBody
from service.tables import Dataset, Grant, Job, Principal
from service.ticks import last_tick, next_tick, seen_progress

__all__ = ["Limits", "Seen", "Submission", "cancel", "find", "make_plan", "page", "quote", "seen", "submit"]

LATEST = "latest"
_MINUTE = timedelta(minutes=1)
_MESSAGES = {
    "cancelled": "cancelled by the analyst; nothing was charged",
    "withdrawn": "withdrawn because the grant or the dataset was withdrawn; nothing was charged",
    "cannot-run": "no worker could run this plan; nothing was charged; submit it again",
    # One text for whatever went wrong after the charge: which of them it was might depend on rows.
    "error": "the job ended without a result; its charge stands",
    "lost": "the job ended without a result; its charge stands",
}


@dataclass(frozen=True)
class Limits:
    """What one analyst may ask for."""

    work: Work
    queued_jobs: int
    rehearsals_per_minute: int


@dataclass(frozen=True)
class Submission:
    """A job that was accepted, now or when the same Idempotency-Key first came."""

    job: Job
    replayed: bool


def make_plan(session: Session, dataset: Dataset, grant: Grant, body: PlanBody, work: Work) -> Plan:
    """The plan of a request, from public numbers alone; refuses what would take too much work."""
    datasets.require_sealed(dataset)
    domain = datasets.domain_of(dataset)
    options = dict(body.options)
    if body.sites is not None:
        options["sites"] = sites.as_option(sites.find(session, dataset, body.sites))
    budget = _budget(dataset, grant, body)
    plan = registry.plan(
        domain,
        Request(k=body.k, budget=budget, objective=body.objective, algorithm=body.algorithm, options=options),
    )
    plan.work.require_within(work)
    return plan


def _budget(dataset: Dataset, grant: Grant, body: PlanBody) -> Budget:
    offered = min(dataset.delta_units, grant.delta_units) > 0
    if body.delta is None:
        pure = body.algorithm != "auto" and registry.get(body.algorithm).guarantee == "pure"
        if not offered or pure:
            return Budget.of(body.epsilon)
        computed = Budget.at_most("1", default_delta(datasets.domain_of(dataset).size))
        return Budget.of(body.epsilon, computed.delta_text)
    budget = Budget.of(body.epsilon, body.delta)
    if not budget.is_pure and not offered:
        raise DeltaNotOffered(
            f"{dataset.name} offers you no delta; send delta 0 and an algorithm with a pure guarantee",
            requested={"epsilon": budget.epsilon_text, "delta": budget.delta_text},
        )
    return budget


def quote(session: Session, dataset: Dataset, grant: Grant, plan: Plan) -> dict[str, Any]:
    """A plan with its cost, what would remain, and whether it fits now; costs nothing."""
    cost = accounting.cost_of(dataset.accountant, plan)
    rooms = {
        "budget": ledger.balance(ledger.find(session, dataset.id)).remaining,
        "cap": ledger.balance(ledger.find(session, dataset.id, grant.id)).remaining,
    }
    fits = all(cost.fits(room) for room in rooms.values())
    after = {
        name: accounting.amount(
            dataset.accountant, Cost(room.loss - cost.loss, room.delta - cost.delta), dataset.delta_units
        )
        for name, room in rooms.items()
        if fits
    }
    return {
        "plan": plan.to_json(),
        "digest": plan.digest,
        "cost": accounting.amount(dataset.accountant, cost, dataset.delta_units),
        "fits": fits,
        "remaining_after": after or None,
        "forecast": dict(plan.forecast),
        "warnings": datasets.warnings(dataset, plan.domain),
    }


def replay(session: Session, caller: Caller, body: JobBody, key: str | None) -> Job | None:
    """The job that this Idempotency-Key made before, if its body was the same."""
    if key is None:
        return None
    job = session.scalars(
        select(Job).where(Job.principal_id == caller.id, Job.idempotency_key == key)
    ).one_or_none()
    if job is not None and job.request_digest != _digest(body):
        raise IdempotencyMismatch("this Idempotency-Key was used with another body; use a new one")
    return job


def submit(
    session: Session,
    caller: Caller,
    body: JobBody,
    plan: Plan,
    *,
    key: str | None,
    limits: Limits,
    now: datetime,
) -> Submission:
    """Reserve and enqueue, in the caller's one transaction, with both accounts locked after the analyst."""
    dataset, grant = datasets.find(session, body.dataset, caller)
    assert grant is not None
    # One submission of an analyst at a time, whatever the dataset: limits and keys count across datasets.
    session.execute(select(Principal.id).where(Principal.id == caller.id).with_for_update(key_share=True))
    accounts = ledger.lock(session, dataset.id, grant.id)
    session.refresh(dataset)
    session.refresh(grant)
    if grant.revoked_at is not None:
        raise NotFound(f"there is no dataset named {body.dataset}, or you have no grant for it")
    earlier = replay(session, caller, body, key)
    if earlier is not None:
        return Submission(earlier, replayed=True)
    datasets.require_sealed(dataset)
    _limit(session, caller, body, limits, now)
    cost = NOTHING if body.rehearsal else accounting.cost_of(dataset.accountant, plan)
    job = Job(
        id=str(uuid.uuid4()),
        dataset_id=dataset.id,
        principal_id=caller.id,
        grant_id=grant.id,
        rehearsal=body.rehearsal,
        request=body.model_dump(mode="json", exclude_none=True),
        plan=plan.to_json(),
        plan_digest=plan.digest,
        loss_units=cost.loss,
        delta_units=cost.delta,
        state="queued",
        reason="",
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
            raise _refusal(dataset, grant, refusal) from refusal
    faults.reach("submit.reserved")
    try:
        with session.begin_nested():
            session.add(job)
    except IntegrityError as error:  # the same key, at the same moment, for another dataset
        raise IdempotencyMismatch("this Idempotency-Key was used with another body; use a new one") from error
    return Submission(job, replayed=False)


def _limit(session: Session, caller: Caller, body: JobBody, limits: Limits, now: datetime) -> None:
    if queue.unfinished(session, caller.id) >= limits.queued_jobs:
        raise TooManyQueued(
            f"you have {limits.queued_jobs} unfinished jobs; wait for one to end, or cancel one",
            headers={"Retry-After": "5"},
            limit=limits.queued_jobs,
        )
    if body.rehearsal:
        recent = session.scalar(
            select(func.count()).where(
                Job.principal_id == caller.id, Job.rehearsal.is_(True), Job.queued_at > now - _MINUTE
            )
        )
        if (recent or 0) >= limits.rehearsals_per_minute:
            raise RateLimited(
                f"at most {limits.rehearsals_per_minute} rehearsals a minute; wait a little",
                headers={"Retry-After": "60"},
                limit=limits.rehearsals_per_minute,
            )


def _refusal(dataset: Dataset, grant: Grant, refusal: ledger.Overdrawn) -> BudgetExhausted | CapExhausted:
    held, accountant = refusal.balance, dataset.accountant
    delta_units = dataset.delta_units if refusal.whose == "dataset" else grant.delta_units
    numbers: dict[str, Any] = {
        "requested": accounting.amount(accountant, refusal.requested, delta_units),
        "total": accounting.amount(accountant, held.total, delta_units),
        "spent": accounting.amount(accountant, held.spent, delta_units),
        "reserved": accounting.amount(accountant, held.reserved, delta_units),
        "remaining": accounting.amount(accountant, held.remaining, delta_units),
    }
    asked, left = (_words(numbers[name]) for name in ("requested", "remaining"))
    if refusal.whose == "dataset":
        return BudgetExhausted(f"{dataset.name} has {left} left; this asks for {asked}", **numbers)
    return CapExhausted(f"your cap on {dataset.name} has {left} left; this asks for {asked}", **numbers)


def _words(amount: dict[str, str]) -> str:
    first = "rho" if "rho" in amount else "epsilon"
    return f"{first} {amount[first]} and delta {amount['delta']}"


def cancel(session: Session, job: Job, *, actor: str, now: datetime) -> None:
    """Cancel a queued job; NotCancellable otherwise."""
    if not queue.cancel(session, job, actor=actor, now=now):
        raise NotCancellable("only a queued job can be cancelled; this one was claimed, or has ended")


def find(session: Session, job_id: str, caller: Caller) -> tuple[Job, Dataset]:
    """A job of the caller's, or on a dataset the caller owns; else NotFound. `latest` is the newest one."""
    if job_id == LATEST:
        newest = page(session, caller, before=None, limit=1, dataset=None)
        if not newest:
            raise NotFound("you have no jobs yet; submit one with POST /v1/jobs")
        return newest[0]
    found = session.execute(
        select(Job, Dataset).join(Dataset, Job.dataset_id == Dataset.id).where(Job.id == job_id)
    ).one_or_none()
    if found is not None:
        job, dataset = found
        if job.principal_id == caller.id or (caller.is_curator and dataset.owner_id == caller.id):
            return job, dataset
    raise NotFound("there is no such job, or it is not yours")


def page(
    session: Session, caller: Caller, *, before: str | None, limit: int, dataset: str | None
) -> Sequence[tuple[Job, Dataset]]:
    """Jobs of the caller's, or on datasets the caller owns, newest first."""
    query = select(Job, Dataset).join(Dataset, Job.dataset_id == Dataset.id)
    query = query.where(Dataset.owner_id == caller.id if caller.is_curator else Job.principal_id == caller.id)
    if dataset is not None:
        query = query.where(Dataset.name == dataset)
    if before is not None:
        query = query.where(Job.number < select(Job.number).where(Job.id == before).scalar_subquery())
    return [(job, owned) for job, owned in session.execute(query.order_by(Job.number.desc()).limit(limit))]


@dataclass(frozen=True)
class Seen:
    """What a caller may see of a job at this moment."""

    state: str
    phase: str | None
    progress: dict[str, int] | None
    finished_at: datetime | None
    message: str | None
    retry_after: int | None


def seen(job: Job, dataset: Dataset, caller: Caller, now: datetime) -> Seen:
    """A job as the caller may see it: through the release ticks, unless they are off or it is the owner."""
    ticked = dataset.release_ticks and not caller.is_curator
    if job.claimed_at is None:
        message = _MESSAGES.get(job.reason)
        return Seen(job.state, None, None, job.finished_at, message, 1 if job.state == "queued" else None)
    elapsed = max(now - job.claimed_at, timedelta(0))
    shown_until = last_tick(elapsed) if ticked else elapsed
    finished = job.finished_at
    if finished is not None and finished - job.claimed_at <= shown_until:
        shown = job.claimed_at + next_tick(finished - job.claimed_at) if ticked else finished
        return Seen(job.state, None, None, shown, _MESSAGES.get(job.reason), None)
    event = seen_progress(job.progress, elapsed if ticked else None)
    wait = next_tick(elapsed + timedelta(microseconds=1)) - elapsed if ticked else timedelta(seconds=1)
    return Seen(
        "running",
        event[0] if event else None,
        {"measured": event[1], "planned": event[2]} if event else None,
        None,
        None,
        max(1, -(-wait // timedelta(seconds=1))),
    )


def facts(session: Session, job: Job, dataset: Dataset, caller: Caller, now: datetime) -> dict[str, Any]:
    """A job on the wire."""
    view = seen(job, dataset, caller, now)
    analyst = session.get_one(Principal, job.principal_id)
    place = f"/v1/jobs/{job.id}"
    return {
        "id": job.id,
        "dataset": dataset.name,
        "analyst": analyst.name,
        "state": view.state,
        "rehearsal": job.rehearsal,
        "request": job.request,
        "algorithm": job.plan["algorithm"],
        "cost": accounting.amount(
            dataset.accountant, Cost(job.loss_units, job.delta_units), dataset.delta_units
        ),
        "plan_digest": job.plan_digest,
        "phase": view.phase,
        "progress": view.progress,
        "queued_at": rfc3339(job.queued_at),
        "claimed_at": rfc3339(job.claimed_at) if job.claimed_at else None,
        "finished_at": rfc3339(view.finished_at) if view.finished_at else None,
        "message": view.message,
        "links": {"self": place, "result": f"{place}/result", "receipt": f"{place}/receipt"},
    }


def _digest(body: JobBody) -> str:
    text = json.dumps(body.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
