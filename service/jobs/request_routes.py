"""Routes of requests for access: ask, list, grant, agree as a second curator, decline, withdraw."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query
from sqlalchemy import ColumnElement
from sqlalchemy.orm import Session

from core import errors as core_errors
from service.datasets import requests
from service.datasets.access import Right
from service.datasets.decisions import Decision
from service.datasets.periods import selection
from service.datasets.requests import Wanted
from service.errors import Forbidden, InvalidRequest, ServiceError
from service.http.context import Context, Services
from service.http.json_limits import StrictRoute
from service.http.paging import Paging
from service.http.problems import answers
from service.http.route_limits import limited
from service.http.wire import NAME_PATTERN
from service.jobs import plans, request_view, view
from service.jobs.accuracy import accuracy
from service.jobs.limits import Limits
from service.jobs.planned import price
from service.jobs.request_wire import (
    REQUEST_PATTERN,
    AccessRequestBody,
    AccessRequestFacts,
    AccessRequestPage,
    DecisionBody,
    ReasonBody,
    stored_terms,
)
from service.jobs.routes import PLANNED
from service.jobs.wire import PlanBody
from service.ledger.units import LARGEST_UNITS
from service.operations.states import RequestState
from service.operations.tables import AccessRequest, Dataset, Principal
from service.people import principals
from service.people.authentication import Caller, Curator, Reader, User

router = APIRouter(prefix="/v1/requests", tags=["requests"], route_class=StrictRoute)
RequestId = Annotated[str, Path(pattern=REQUEST_PATTERN, description="id of a request")]
#: Longest request of a plan that is kept, as JSON.
_LONGEST_PLAN = 16 << 10


@dataclass(frozen=True)
class RequestFilter:
    """Which requests to list; what is left out does not matter."""

    dataset: Annotated[str | None, Query(pattern=NAME_PATTERN, description="only on this dataset")] = None
    state: Annotated[RequestState | None, Query(description="only in this state")] = None
    waiting: Annotated[
        bool, Query(description="only those that wait for you; of an analyst: that are not decided yet")
    ] = False

    def conditions(self, caller: Caller) -> Iterator[ColumnElement[bool]]:
        """Yield what the filters demand."""
        if self.dataset is not None:
            yield Dataset.name == self.dataset
        if self.state is not None:
            yield AccessRequest.state == self.state
        if self.waiting:
            yield requests.waiting_for(caller)


@router.post("", status_code=201, responses=answers("retired"))
@limited(PLANNED)
def ask_for_access(body: AccessRequestBody, caller: User, context: Services) -> AccessRequestFacts:
    """Ask the owner of a dataset for a grant, a larger cap, other kinds of jobs or a longer time.

    The owner asks a second curator for what one curator may not allow alone, for an analyst or for a total.
    """
    by = Decision.of(caller, context)
    with context.database.read() as session:
        dataset = requests.requestable(session, body.dataset, caller)
    plan = None if body.plan is None else _planned(context, caller, dataset, body.plan, by.at)
    with context.database.write() as session:
        dataset = session.get_one(Dataset, dataset.id)
        wanted = Wanted(body.wanted(), _analyst(session, dataset, body, caller), body.period)
        most = context.settings.max_open_requests
        row = requests.ask(session, dataset, wanted, plan, caller=caller, at=by.at, most=most)
        if dataset.owner_id == caller.id:
            requests.propose(session, row, caller=caller, by=by)
        return _facts(session, row, caller)


@router.get("", responses=answers())
def list_access_requests(
    caller: Reader, context: Services, paging: Paging, wanted: Annotated[RequestFilter, Depends()]
) -> AccessRequestPage:
    """List your requests, those on your datasets, and what waits for a second curator, newest first."""
    with context.database.read() as session:
        conditions = wanted.conditions(caller)
        found = requests.page(session, caller, *conditions, before=paging.after(str), limit=paging.fetch)
        shown, following = paging.cut(found, lambda each: each.id)
        return AccessRequestPage(items=[_facts(session, each, caller) for each in shown], next=following)


@router.get("/{request_id}", responses=answers())
def get_access_request(request_id: RequestId, caller: Reader, context: Services) -> AccessRequestFacts:
    """Get a request, and what became of it."""
    with context.database.read() as session:
        return _facts(session, requests.find(session, request_id, caller), caller)


@router.post("/{request_id}/grant", responses=answers("already-decided", "retired"))
def grant_request(
    request_id: RequestId, body: DecisionBody, caller: Curator, context: Services
) -> AccessRequestFacts:
    """Grant a request on a dataset that you own: all of it, or what you name instead.

    What one curator may not allow alone is then `proposed`, until a second one agrees.
    """
    by = Decision.of(caller, context)
    with context.database.write() as session:
        row = requests.find(session, request_id, caller)
        requests.decide(session, row, stored_terms(body), body.reason, caller=caller, by=by)
        return _facts(session, row, caller)


@router.post("/{request_id}/second", responses=answers("already-decided", "retired"))
def second_request(request_id: RequestId, caller: Curator, context: Services) -> AccessRequestFacts:
    """Agree, as a second curator, to what the owner of a dataset proposes; it is then done."""
    by = Decision.of(caller, context)
    with context.database.write() as session:
        row = requests.find(session, request_id, caller)
        requests.second(session, row, caller=caller, by=by)
        return _facts(session, row, caller)


@router.post("/{request_id}/decline", responses=answers("already-decided"))
def decline_request(
    request_id: RequestId, body: ReasonBody, caller: Curator, context: Services
) -> AccessRequestFacts:
    """Decline a request, with a word of reason, as the dataset's owner or as a second curator."""
    with context.database.write() as session:
        row = requests.find(session, request_id, caller)
        requests.decline(session, row, body.reason, caller=caller, at=context.clock.now())
        return _facts(session, row, caller)


@router.delete("/{request_id}", responses=answers("already-decided"))
def withdraw_request(request_id: RequestId, caller: User, context: Services) -> AccessRequestFacts:
    """Withdraw a request of yours that is not decided yet."""
    with context.database.write() as session:
        row = requests.find(session, request_id, caller)
        requests.withdraw(session, row, caller=caller, at=context.clock.now())
        return _facts(session, row, caller)


def _facts(session: Session, row: AccessRequest, caller: Caller) -> AccessRequestFacts:
    return AccessRequestFacts.model_validate(request_view.facts(session, row, caller))


def _analyst(session: Session, dataset: Dataset, body: AccessRequestBody, caller: Caller) -> Principal | None:
    """Return whose grant is asked for; None for a total. Only the owner asks for others, and for totals."""
    owns = dataset.owner_id == caller.id
    if not owns and (body.about == "total" or body.analyst not in (None, caller.name)):
        raise Forbidden("you can ask for a grant of your own", next_step="Leave `analyst` and `about` out.")
    if body.about == "total":
        if body.analyst is not None or set(body.wanted()) - {"epsilon", "delta", "purpose"}:
            raise InvalidRequest(
                "a total has an epsilon and a delta alone", next_step="Leave the others out."
            )
        return None
    if body.period is not None:
        raise InvalidRequest("a grant is for all periods", next_step="Leave `period` out.")
    if owns and body.analyst is None:
        raise InvalidRequest(
            "the owner of a dataset needs no grant on it", next_step="Name an analyst, or ask for a total."
        )
    return principals.find(session, body.analyst or caller.name)


def _planned(
    context: Context, caller: Caller, dataset: Dataset, body: PlanBody, now: datetime
) -> dict[str, Any]:
    """Return a summary of a plan, or why there is none: from public facts, whatever is left or granted."""
    request = {name: value for name, value in body.asked().items() if value is not None}
    if len(json.dumps(request)) > _LONGEST_PLAN:
        raise InvalidRequest(
            f"the plan of a request may have at most {_LONGEST_PLAN >> 10} KiB",
            next_step="Name sites by a stored set, or leave the plan out.",
        )
    summary = {"request": request, "asked_for": view.asked_for(request)}
    right = Right(caller, dataset)
    try:
        with context.database.read() as session:
            periods = selection.choose(session, dataset, body.periods)
            inputs = plans.inputs_of(session, right, body, periods, now)
        limits = Limits.of(context.settings, context.plan_bytes())
        plan = plans.make_plan(right, body, inputs, limits.work, delta_left=LARGEST_UNITS)
        with context.database.read() as session:
            planned = price(session, right, body, plan, limits, inputs.periods)
    except (ServiceError, core_errors.InvalidRequest) as problem:
        return {**summary, "problem": str(problem)}
    return {
        **summary,
        "cost": right.accountant.amount(planned.cost),
        "planned_seconds": planned.planned_ms / 1000,
        "accuracy": accuracy(plan, None),
    }
