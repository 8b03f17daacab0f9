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
from service.datasets.periods import accounts, selection
from service.errors import PopulationExhausted
from service.jobs.accuracy import accuracy
from service.jobs.planned import PlannedJob
from service.jobs.release import VisibleJob
from service.jobs.wire import JobFacts
from service.ledger import accountants
from service.ledger.charging import AccountKey, account_keys
from service.ledger.units import Cost
from service.operations.tables import Job

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
            "links": {"self": place, **{part: f"{place}/{part}" for part in _parts(job)}},
        }
    )


def _parts(job: Job) -> list[str]:
    """Return what there is to get of a job that has succeeded."""
    has_differences = job.kind != CLUSTER and questions.get(job.kind).has_differences
    return ["result", "receipt", "transcript", *(["differences"] if has_differences else [])]


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
    paying = {key: balances[key] for key in account_keys(selection.charged(planned.periods), right.grant_id)}
    rooms: dict[str, Cost] = {}
    in_population = _in_population(session, planned)
    if planned.price.alike:
        assert planned.of_person is not None
        number = planned.of_person.population.id
        paying[AccountKey(population=number)] = ledger.of_population(session, number)
    for key, balance in paying.items():
        rooms[_kind(key)] = balance.remaining.at_most(rooms.get(_kind(key), balance.remaining))
    fits = all(cost.fits(room) for room in rooms.values()) and (
        in_population is None or in_population["fits"]
    )
    amount = right.accountant.amount
    return {
        "plan": {**plan.to_json(), "domain": plan.described.to_json()},
        "digest": plan.digest,
        "cost": amount(cost),
        "quote": planned.quote,
        "planned_seconds": planned.planned_ms / 1000,
        "fits": fits,
        "remaining_after": {name: amount(room - cost) for name, room in rooms.items()} if fits else None,
        "accounts": _tightest(session, right, paying),
        "shortfall": None if fits else _shortfall(session, planned, paying, in_population),
        "population": in_population,
        "forecast": dict(plan.forecast),
        "accuracy": accuracy(plan, earlier),
        "earlier": earlier,
        **selection.described(planned.periods),
        "warnings": dataset_view.warnings(right.dataset, plan.described),
    }


def _kind(key: AccountKey) -> str:
    """Return what callers call an account: their cap, a budget, or the population."""
    if key.population is not None:
        return "population"
    return "budget" if key.grant is None else "cap"


def _tightest(
    session: Session, right: Right, paying: Mapping[AccountKey, ledger.Balance]
) -> dict[str, dict[str, Any]]:
    """Describe the balances with the least left that a job is charged to: of budgets, and of caps."""
    found = {}
    own = {key: balance for key, balance in paying.items() if key.population is None}
    for kind in dict.fromkeys(map(_kind, own)):
        of_kind = {key: balance for key, balance in own.items() if _kind(key) == kind}
        key = min(of_kind, key=lambda key: (of_kind[key].remaining.loss, of_kind[key].remaining.delta))
        balance = accounts.described(session, right.dataset, right.grant, key, of_kind[key])
        found[kind] = {"period": key.period or None, **balance}
    return found


def _in_population(session: Session, planned: PlannedJob) -> dict[str, Any] | None:
    """Describe what a job costs one person of the dataset's population, and what is left there."""
    found = planned.of_person
    if found is None:
        return None
    room, accountant = ledger.of_population(session, found.population.id).remaining, found.accountant
    fits = found.cost.fits(room)
    return {
        "name": found.population.name,
        "cost": accountant.amount(found.cost),
        "remaining": accountant.amount(room),
        "fits": fits,
        "sentence": f"It costs one person of the population {found.population.name} "
        f"{accountant.in_words(found.cost)}, of {accountant.in_words(room)} left for all its datasets.",
    }


def _whose(planned: PlannedJob, key: AccountKey) -> str:
    """Return what the account with the least left is called in a sentence."""
    if key.population is not None and planned.of_person is not None:
        return f"the population {planned.of_person.population.name}"
    if key.grant is not None:
        return "your cap"
    return "the budget" if key.period else "the dataset's budget"


def _shortfall(
    session: Session,
    planned: PlannedJob,
    paying: Mapping[AccountKey, ledger.Balance],
    in_population: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Say which account has too little left for a job, what to do about it, and what would fit instead."""
    cost, accountant = planned.cost, planned.right.accountant
    rooms = {key: balance.remaining for key, balance in paying.items()}
    if in_population is not None and all(cost.fits(room) for room in rooms.values()):
        return {
            "sentence": f"This does not fit. {in_population['sentence']}",
            "next": PopulationExhausted.next_step,
            "offer": None,
        }
    least = Cost(min(room.loss for room in rooms.values()), min(room.delta for room in rooms.values()))
    short = "loss" if cost.loss > least.loss else "delta"
    tightest = min(rooms, key=lambda name: getattr(rooms[name], short))
    where = f" in {tightest.period}" if tightest.period else ""
    lacking = {key.period for key, room in rooms.items() if not cost.fits(room)}
    largest = selection.largest_range(planned.periods.labels, lacking) if planned.periods and where else None
    smaller = Cost(min(cost.loss, least.loss), min(cost.delta, least.delta))
    automatic = planned.body.delta is None and cost.delta > least.delta
    return {
        "sentence": f"This does not fit: it costs {accountant.in_words(cost)}, and "
        f"{_whose(planned, tightest)}{where} has {accountant.in_words(rooms[tightest])} left.",
        "next": (_LEAST_DELTA if automatic else "") + "Ask for less, or request more.",
        "offer": accountant.amount(smaller) if accountant.charges_as_asked and smaller.loss > 0 else None,
        "request": planned.cap_to_request(session),
        "largest_range": largest,
    }
