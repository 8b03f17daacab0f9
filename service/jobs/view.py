"""Views of jobs and of plans, as their callers see them."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from core.options import options_schema
from core.plan import CLUSTER
from core.questions import registry as questions
from service import ledger
from service.datasets import view as dataset_view
from service.datasets.access import Right, domain_of
from service.datasets.periods import selection
from service.jobs.accuracy import accuracy
from service.jobs.planned import PlannedJob
from service.jobs.release import VisibleJob
from service.jobs.wire import JobFacts
from service.ledger import accountants
from service.ledger.charging import account_keys
from service.ledger.units import Cost

_LEAST_DELTA = "An automatic delta is never less than a tenth of the default: give a smaller one, or 0. "


def facts(found: VisibleJob, now: datetime) -> JobFacts:
    """Describe a job as its caller may see it now."""
    job, visible = found.job, found.at(now)
    place = f"/v1/jobs/{job.id}"
    cost = Cost(job.loss_units, job.delta_units)
    return JobFacts.model_validate(
        {
            "id": job.id,
            "name": job.name,
            "note": job.note,
            "dataset": found.dataset.name,
            "analyst": found.analyst,
            "state": visible.state,
            "rehearsal": job.rehearsal,
            "request": job.request,
            "asked_for": asked_for(job.request),
            **selection.described(selection.read_by(job)),
            "algorithm": job.algorithm,
            "cost": accountants.of(found.dataset).amount(cost),
            "plan_digest": job.plan_digest,
            "phase": visible.phase,
            "progress": visible.progress,
            "queued_at": job.queued_at,
            "claimed_at": job.claimed_at,
            "planned_seconds": job.planned.total_seconds(),
            "due_at": visible.due_at,
            "finished_at": visible.finished_at,
            "message": visible.message,
            "links": {
                "self": place,
                **{part: f"{place}/{part}" for part in ("result", "receipt", "transcript")},
            },
        }
    )


def asked_for(request: Mapping[str, Any]) -> str:
    """Return what a job is asked for: centres, or the answer to a question."""
    kind = request.get("kind", CLUSTER)
    if kind != CLUSTER:
        return questions.get(kind).title
    k = request["k"]
    if isinstance(k, dict):
        return f"{k['from']} to {k['to']} centres"
    return "1 centre" if k == 1 else f"{k:,} centres"


def kinds_of(right: Right | None) -> list[dict[str, Any]]:
    """Describe the questions; with a right to a dataset, those that it allows, and their columns there."""
    domain = None if right is None else domain_of(right.dataset)
    allowed = (questions.get(name) for name in questions.names() if right is None or right.allows(name))
    return [
        {
            "name": kind.name,
            "title": kind.title,
            "label": kind.label,
            "summary": kind.summary,
            "clusterings": kind.clusterings,
            "most_columns": kind.most_columns,
            "options": options_schema(
                kind.options if domain is None else kind.options_for(len(domain.columns))
            ),
            "columns": None if domain is None else [asdict(each) for each in kind.offered_columns(domain)],
        }
        for kind in allowed
    ]


def quote(session: Session, planned: PlannedJob, earlier: dict[str, Any] | None) -> dict[str, Any]:
    """Describe a planned job: its cost, what would remain, and whether it fits now."""
    right, plan, cost = planned.right, planned.plan, planned.cost
    balances = ledger.balances(session, right.dataset.id, right.grant_id)
    rooms: dict[str, Cost] = {}
    for key in account_keys(selection.charged(planned.periods), right.grant_id):
        name, room = "budget" if key.grant is None else "cap", balances[key].remaining
        rooms[name] = room.at_most(rooms.get(name, room))
    fits = all(cost.fits(room) for room in rooms.values())
    amount = right.accountant.amount
    return {
        "plan": {**plan.to_json(), "domain": plan.described.to_json()},
        "digest": plan.digest,
        "cost": amount(cost),
        "quote": planned.quote,
        "planned_seconds": planned.planned_ms / 1000,
        "fits": fits,
        "remaining_after": {name: amount(room - cost) for name, room in rooms.items()} if fits else None,
        "shortfall": None if fits else _shortfall(session, planned, rooms),
        "forecast": dict(plan.forecast),
        "accuracy": accuracy(plan, earlier),
        "earlier": earlier,
        **selection.described(planned.periods),
        "warnings": dataset_view.warnings(right.dataset, plan.described),
    }


def _shortfall(session: Session, planned: PlannedJob, rooms: Mapping[str, Cost]) -> dict[str, Any]:
    """Say which account has too little left for a job, what to do about it, and what would fit instead."""
    cost, accountant = planned.cost, planned.right.accountant
    least = Cost(min(room.loss for room in rooms.values()), min(room.delta for room in rooms.values()))
    short = "loss" if cost.loss > least.loss else "delta"
    tightest = min(rooms, key=lambda name: getattr(rooms[name], short))
    whose = "your cap" if tightest == "cap" else "the dataset's budget"
    smaller = Cost(min(cost.loss, least.loss), min(cost.delta, least.delta))
    automatic = planned.body.delta is None and cost.delta > least.delta
    return {
        "sentence": f"This does not fit: it costs {accountant.in_words(cost)}, and {whose} has "
        f"{accountant.in_words(rooms[tightest])} left.",
        "next": (_LEAST_DELTA if automatic else "") + "Ask for less, or request more.",
        "offer": accountant.amount(smaller) if accountant.charges_as_asked and smaller.loss > 0 else None,
        "request": planned.cap_to_request(session),
    }
