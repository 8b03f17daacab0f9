"""Wire types of requests for access."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from core.privacy.budget import DELTA_UNIT, EPSILON_UNIT, to_units, units_text
from service.datasets.wire import AmountFacts, BudgetFacts, WantedBody
from service.http.wire import Answer, Body, JobKind, Moment, Name, Page, Words, example, page_example
from service.jobs.wire import AccuracyFacts, PlanBody

REQUEST_PATTERN = "^[0-9a-f-]{36}$"
_WANTED = {"epsilon": "2", "delta": "0.000001", "purpose": "frailty after surgery", "permit": "2030/17"}
_TERMS = (*WantedBody.model_fields,)


class AccessRequestBody(WantedBody, json_schema_extra=example({"dataset": "flowers", **_WANTED})):
    """A request to the owner of a dataset; or, from its owner, to a second curator.

    Epsilon and delta are those of the whole cap, or of the whole total, not of what is to be added to it.
    """

    dataset: Name
    analyst: Name | None = Field(
        default=None, description="from the dataset's owner: whose grant; default: your own"
    )
    about: Literal["grant", "total"] = Field(
        default="grant", description="`total`: from the dataset's owner, who wants to raise it"
    )
    period: Name | None = Field(default=None, description="whose total, where each period has one")
    plan: PlanBody | None = Field(default=None, description="the job that it is for")

    @model_validator(mode="after")
    def _asks_for_something(self) -> Self:
        if not self.wanted():
            words = "say what you ask for: an epsilon, a delta, kinds of jobs, an end or other terms"
            raise PydanticCustomError("nothing_asked", "{words}", {"words": words})
        if self.plan is not None and (self.plan.dataset != self.dataset or self.plan.rehearsal):
            words = "the plan of a request must be of a job on its dataset"
            raise PydanticCustomError("other_plan", "{words}", {"words": words})
        return self

    def wanted(self) -> dict[str, Any]:
        """Return what is asked for, as it is stored."""
        return stored_terms(self)


class DecisionBody(WantedBody, json_schema_extra=example({"epsilon": "1", "reason": "half for now"})):
    """What is granted where it differs from what was asked for, and a word of reason."""

    reason: Words = ""


class ReasonBody(Body, json_schema_extra=example({"reason": "not for this purpose"})):
    """A word of reason."""

    reason: Annotated[Words, Field(min_length=1)]


def stored_terms(body: WantedBody) -> dict[str, Any]:
    """Return the amounts and terms that a body names, as JSON; an end can be null."""
    named = body.model_dump(mode="json", include=set(_TERMS), exclude_unset=True)
    for name, unit in (("epsilon", EPSILON_UNIT), ("delta", DELTA_UNIT)):
        if named.get(name) is not None:
            named[name] = units_text(to_units(named[name], unit, name), unit)
    return {name: value for name, value in named.items() if value is not None or name == "ends_at"}


_ASKED = {
    **_WANTED,
    "kinds": None,
    "ends_at": None,
    "keeps_results": None,
    "words": "a cap of epsilon 2, delta 0.000001, by permit 2030/17",
}


class WantedFacts(Answer, json_schema_extra=example(_ASKED)):
    """Amounts and terms; what is null stays as it is."""

    epsilon: str | None = None
    delta: str | None = None
    kinds: list[JobKind] | None = None
    purpose: str | None = None
    permit: str | None = None
    ends_at: Moment | None = None
    keeps_results: bool | None = None
    words: str = Field(description="amounts, kinds, permit and end as part of a sentence")


_PLAN: dict[str, Any] = {
    "request": {"dataset": "flowers", "k": 3, "epsilon": "0.5"},
    "asked_for": "3 centres",
    "cost": {"epsilon": "0.5", "delta": "0"},
    "planned_seconds": 0.75,
    "accuracy": None,
    "problem": None,
}


class PlanSummary(Answer, json_schema_extra=example(_PLAN)):
    """The job that a request is for; cost and forecast as they were when it was asked."""

    request: dict[str, Any]
    asked_for: str
    cost: AmountFacts | None = None
    planned_seconds: float | None = None
    accuracy: AccuracyFacts | None = None
    problem: str | None = Field(default=None, description="why it could not be planned")


class Others(Answer, json_schema_extra=example({"analysts": 2, "caps": {"epsilon": "3", "delta": "0"}})):
    """What other analysts hold; caps may add up to more than the total, which decides."""

    analysts: int
    caps: AmountFacts


_ZERO = {"epsilon": "0", "delta": "0"}
_TOTAL = {"epsilon": "3", "delta": "0.000001"}
_BALANCE = {"declared": _TOTAL, "total": _TOTAL, "spent": _ZERO, "reserved": _ZERO, "remaining": _TOTAL}


class Standing(Answer, json_schema_extra=example({"budget": _BALANCE, "cap": None, "others": None})):
    """What is left of the dataset, what the analyst holds, and what others hold."""

    budget: BudgetFacts
    cap: BudgetFacts | None
    others: Others | None


_REQUEST = {
    "id": "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d",
    "dataset": "flowers",
    "owner": "carla",
    "about": "grant",
    "analyst": "ada",
    "period": None,
    "asked_by": "ada",
    "asked_at": "2030-01-01T09:00:00.000Z",
    "asked": _ASKED,
    "plan": None,
    "state": "open",
    "decided": None,
    "decided_by": None,
    "decided_at": None,
    "reason": "",
    "seconded_by": None,
    "seconded_at": None,
    "acts": ["withdraw"],
    "standing": None,
}


class AccessRequestFacts(Answer, json_schema_extra=example(_REQUEST)):
    """A request, and what became of it."""

    id: str
    dataset: str
    owner: str = Field(description="of the dataset: who decides")
    about: Literal["grant", "total"]
    analyst: str | None = Field(description="whose grant; null: it is about a total")
    period: str | None
    asked_by: str
    asked_at: Moment
    asked: WantedFacts
    plan: PlanSummary | None
    state: Literal["open", "proposed", "granted", "declined", "withdrawn"] = Field(
        description="`proposed`: the owner agrees, and a second curator must"
    )
    decided: WantedFacts | None = Field(description="what the owner agreed to")
    decided_by: str | None
    decided_at: Moment | None
    reason: str
    seconded_by: str | None
    seconded_at: Moment | None
    acts: list[Literal["grant", "second", "decline", "withdraw"]] = Field(
        description="what you may do with it now"
    )
    standing: Standing | None = Field(description="to whoever decides, while it is pending")


class AccessRequestPage(Page[AccessRequestFacts], json_schema_extra=page_example(_REQUEST)):
    """A page of requests, newest first, and the cursor of the next."""
