"""What becomes of a job: plan, quote, cancel, and what may be seen of it when and by whom.

Planning reads public facts alone; `submissions` reserves and enqueues what was planned.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.algorithms import registry
from core.data import Domain, domain_from_json
from core.plan import Request, Work
from core.privacy import Budget, default_delta
from service import accounting, datasets, ledger, queue, sites
from service.amounts import Cost
from service.auth import Caller
from service.clock import rfc3339
from service.errors import DeltaNotOffered, NotCancellable, NotFound
from service.schemas.work import PlanBody
from service.submissions import Planned
from service.tables import Dataset, Grant, Job, Principal
from service.ticks import last_tick, next_tick, seen_progress

__all__ = ["Seen", "cancel", "facts", "find", "make_plan", "own_facts", "page", "quote", "seen"]

LATEST = "latest"
#: Plans one process remembers, and the longest options of a request whose plan is worth it.
_PLANS = 1024
_LONGEST_OPTIONS = 2048
_MESSAGES = {
    "cancelled": "cancelled by the analyst; nothing was charged",
    "withdrawn": "withdrawn because the grant or the dataset was withdrawn; nothing was charged",
    "cannot-run": "no worker could run this plan; nothing was charged; submit it again",
    # One text for whatever went wrong after the charge: which of them it was might depend on rows.
    "error": "the job ended without a result; its charge stands",
    "lost": "the job ended without a result; its charge stands",
}


def make_plan(
    session: Session, dataset: Dataset, cap_delta_units: int, body: PlanBody, work: Work
) -> Planned:
    """The plan of a request, from public numbers alone; refuses what would take too much work.

    A plan is a pure function of the domain and the request, so the latest ones are remembered.
    """
    datasets.require_sealed(dataset)
    public = _public(json.dumps(dataset.domain, sort_keys=True))
    options = json.dumps(body.options, sort_keys=True)
    budget = _budget(dataset, cap_delta_units, body, public.domain.size)
    request = Request(
        k=body.k,
        budget=budget,
        objective=body.objective,
        algorithm=body.algorithm,
        options=dict(body.options),
    )
    if body.sites is not None:
        chosen = sites.as_option(sites.find(session, dataset, body.sites))
        request = replace(request, options={**body.options, "sites": chosen})
        planned = Planned.of(registry.plan(public.domain, request))
    elif len(options) > _LONGEST_OPTIONS:
        planned = Planned.of(registry.plan(public.domain, request))
    else:
        planned = _remembered(
            public, _Asked(f"{body.k} {body.objective} {body.algorithm} {options}", budget, request)
        )
    planned.plan.work.require_within(work)
    return planned


@dataclass(frozen=True)
class _Public:
    """A domain, known by its fingerprint."""

    fingerprint: str
    domain: Domain = field(compare=False)


@dataclass(frozen=True)
class _Asked:
    """A request, known by its text and its budget."""

    text: str
    budget: Budget
    request: Request = field(compare=False)


@lru_cache(maxsize=64)
def _public(text: str) -> _Public:
    domain = domain_from_json(json.loads(text))
    return _Public(domain.fingerprint, domain)


@lru_cache(maxsize=_PLANS)
def _remembered(public: _Public, asked: _Asked) -> Planned:
    return Planned.of(registry.plan(public.domain, asked.request))


def _budget(dataset: Dataset, cap_delta_units: int, body: PlanBody, size: int) -> Budget:
    offered = min(dataset.delta_units, cap_delta_units) > 0
    if body.delta is None:
        pure = body.algorithm != "auto" and registry.get(body.algorithm).guarantee == "pure"
        if not offered or pure:
            return Budget.of(body.epsilon)
        computed = Budget.at_most("1", default_delta(size))
        return Budget.of(body.epsilon, computed.delta_text)
    budget = Budget.of(body.epsilon, body.delta)
    if not budget.is_pure and not offered:
        raise DeltaNotOffered(
            f"{dataset.name} offers you no delta; send delta 0 and an algorithm with a pure guarantee",
            requested={"epsilon": budget.epsilon_text, "delta": budget.delta_text},
        )
    return budget


def quote(session: Session, dataset: Dataset, grant: Grant, planned: Planned) -> dict[str, Any]:
    """A plan with its cost, what would remain, and whether it fits now; costs nothing."""
    plan = planned.plan
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
        "plan": planned.stored,
        "digest": planned.digest,
        "cost": accounting.amount(dataset.accountant, cost, dataset.delta_units),
        "fits": fits,
        "remaining_after": after or None,
        "forecast": dict(plan.forecast),
        "warnings": datasets.warnings(dataset, plan.domain),
    }


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
    if job.principal_id == caller.id:
        return own_facts(job, dataset, caller, now)
    return _facts(job, dataset, caller, session.get_one(Principal, job.principal_id).name, now)


def own_facts(job: Job, dataset: Dataset, caller: Caller, now: datetime) -> dict[str, Any]:
    """A job of the caller's on the wire."""
    return _facts(job, dataset, caller, caller.name, now)


def _facts(job: Job, dataset: Dataset, caller: Caller, analyst: str, now: datetime) -> dict[str, Any]:
    view = seen(job, dataset, caller, now)
    place = f"/v1/jobs/{job.id}"
    return {
        "id": job.id,
        "dataset": dataset.name,
        "analyst": analyst,
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
