"""Wire types of algorithms, kinds of questions, plans and jobs."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    Tag,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from service.datasets.periods.wire import PeriodChoice, PeriodName
from service.datasets.wire import BALANCE, AmountFacts, BudgetFacts
from service.http.wire import (
    VISIBLE_PATTERN,
    Amount,
    Answer,
    Body,
    ColumnName,
    JobKind,
    Moment,
    Name,
    Page,
    Plain,
    Words,
    example,
    page_example,
)
from service.ledger.accountants import AccountantName

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
_REQUEST = {"dataset": "flowers", "k": 3, "epsilon": "0.5"}
_ID = "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d"
_JOB_ID = "^[0-9a-f-]{36}$"
_QUOTE = "9b" * 32
_COST = {"epsilon": "0.5", "delta": "0.000001"}


def _at_most_63_bits(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has at most 63 bits")
    return value


class OpenK(Body):
    """Every number of clusters in a range: one release answers for all of them."""

    first: int = Field(alias="from", ge=1, le=64)
    last: int = Field(alias="to", ge=1, le=64)


#: A number of clusters, or a range. Tags begin with a colon, so that no problem names them as a field.
Clusters = Annotated[
    Annotated[int, Field(ge=1, le=10_000), Tag(":number")] | Annotated[OpenK, Tag(":range")],
    Discriminator(lambda given: ":range" if isinstance(given, dict | OpenK) else ":number"),
]


class ClusteringBody(Body, json_schema_extra=example({"job": _ID, "k": 3})):
    """A clustering that a question is about: a job whose result you can see."""

    job: str = Field(pattern=_JOB_ID)
    k: Annotated[int, Field(ge=1, le=10_000)] | None = Field(
        default=None, description="of a job that left k open; default: the suggested k"
    )
    digest: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of the centres as little-endian doubles; others are refused",
    )


#: Fields of a request that only clusterings have, and those that only questions have.
_OF_CLUSTERINGS = ("algorithm", "objective", "k", "sites", "weights", "scaling", "public_rows")
_OF_QUESTIONS = ("clusterings",)


class PlanBody(Body, json_schema_extra=example(_REQUEST)):
    """Request of a plan; that of a job has the same fields and may carry the plan's quote."""

    dataset: Name
    kind: JobKind = Field(
        default="cluster", description="a clustering, or a question; `GET /v1/kinds` lists them"
    )
    algorithm: str = Field(default="auto", max_length=64, pattern=r"^[a-z0-9-]+$")
    objective: Literal["means", "medians"] = "means"
    k: Clusters | None = Field(
        default=None,
        validate_default=True,
        description='of a clustering: a number, or a range `{"from": 1, "to": 32}` that leaves it open',
    )
    epsilon: Amount
    delta: Amount | None = Field(
        None,
        description="default: min(1e-6, 1/(10 N)) or what is left, at least a tenth of it; 0 if none offered",
    )
    options: dict[str, Annotated[Any, AfterValidator(_at_most_63_bits)]] = Field(
        default_factory=dict, max_length=100
    )
    sites: Name | None = Field(
        None, description="a site set of the dataset, for algorithms that choose among sites"
    )
    rehearsal: bool = Field(
        False, description="run on synthetic rows drawn inside the public bounds, for free"
    )
    rehearse_on: str | None = Field(
        default=None,
        pattern=_JOB_ID,
        description="of a rehearsal: a job that left k open and whose result you can see, to run on its "
        "made-up rows",
    )
    columns: Annotated[list[ColumnName], Field(min_length=1, max_length=1000)] | None = Field(
        default=None,
        description="of a table: the columns to cluster on; default: all that are there for it. Of a "
        "question: the columns that it is about",
    )
    weights: Annotated[dict[ColumnName, float], Field(max_length=1000)] | Literal["fair"] | None = Field(
        default=None,
        description="of a table: how much columns count in distances; `fair` weighs them by their kinds, so "
        "that none rules; default: as declared",
    )
    scaling: Literal["declared", "private"] = Field(
        default="declared",
        description="of a table: scale columns by their bounds, or by ranges that 5% of epsilon measure",
    )
    public_rows: bool = Field(
        default=True, description="of means: learn from the dataset's public rows, if it has any"
    )
    clusterings: Annotated[list[ClusteringBody], Field(min_length=1, max_length=2)] | None = Field(
        default=None, description="of a question: the clusterings that it is about"
    )
    periods: PeriodChoice | None = Field(
        default=None,
        description='of a dataset with periods: labels, or a range `{"from": "2026-01", "to": "2026-03"}`; '
        "default: all that are sealed",
    )

    @field_validator("k")
    @classmethod
    def _clusterings_need_k(cls, k: int | OpenK | None, info: ValidationInfo) -> int | OpenK | None:
        if k is None and info.data.get("kind") == "cluster":
            raise PydanticCustomError("missing", "must be given")
        return k

    @model_validator(mode="after")
    def _has_the_fields_of_its_kind(self) -> Self:
        other = _OF_QUESTIONS if self.kind == "cluster" else _OF_CLUSTERINGS
        given = [name for name in other if name in self.model_fields_set]
        if given:
            words = f"a request of kind {self.kind} takes no {given[0]}: leave it out"
            raise PydanticCustomError("other_kind", "{words}", {"words": words})
        if self.rehearse_on is not None and not self.rehearsal:
            words = "rehearse_on is a field of rehearsals: send rehearsal true with it, or leave it out"
            raise PydanticCustomError("no_rehearsal", "{words}", {"words": words})
        return self

    def asked(self) -> dict[str, Any]:
        """Return the request without its quote; what is asked of tables or in questions where it is asked."""
        whole = self.model_dump(mode="json", by_alias=True, exclude={"quote"})
        unasked: dict[str, Any] = {"columns": None, "weights": None, "scaling": "declared", "kind": "cluster"}
        unasked |= {"rehearse_on": None, "public_rows": True, "periods": None}
        unasked |= dict.fromkeys(_OF_QUESTIONS)
        if self.kind != "cluster":
            whole = {name: value for name, value in whole.items() if name not in _OF_CLUSTERINGS}
        return {name: value for name, value in whole.items() if name not in unasked or value != unasked[name]}


class JobBody(PlanBody, json_schema_extra=example({**_REQUEST, "quote": _QUOTE})):
    """A job, or a rehearsal of one on synthetic rows."""

    quote: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="the plan's `quote`: the job is refused if anything else would be charged",
    )


class NoteBody(Body, json_schema_extra=example({"name": "baseline", "note": "Before the reform."})):
    """The name of a job and a note about it; a field that is left out stays as it is."""

    name: Annotated[str, Plain] | None = Field(default=None, max_length=80, pattern=VISIBLE_PATTERN)
    note: Words | None = None


_ALGORITHM = {
    "name": "sulq",
    "summary": "Lloyd's rounds with noisy averages, from public starting points",
    "origin": "literature",
    "objectives": ["means"],
    "guarantee": "either",
    "domains": ["dense", "sparse"],
    "leaves_k_open": False,
    "options": {"type": "object", "properties": {"rounds": {"type": "integer", "default": 5}}},
}


class AlgorithmFacts(Answer, json_schema_extra=example(_ALGORITHM)):
    """An algorithm of the registry."""

    name: str
    summary: str
    origin: Literal["house", "literature"] = Field(
        description="`house` for Cairn's own algorithm, `literature` for published ones"
    )
    objectives: list[str]
    guarantee: Literal["pure", "approximate", "either"]
    domains: list[str]
    leaves_k_open: bool = Field(description="whether k may be a range, for means of dense rows and tables")
    options: dict[str, Any]


_KIND = {
    "name": "profile",
    "title": "Profile",
    "label": "who is in each cluster",
    "summary": "for each cluster of a clustering its size and a histogram of each column",
    "clusterings": 1,
    "most_columns": 1000,
    "options": {"type": "object", "properties": {"bins": {"type": "integer", "default": 10}}},
    "columns": None,
}


class OfferedColumn(Answer):
    """A column of a dataset in a form that asks a question."""

    name: str
    refused: str | None = Field(description="why it cannot be asked about")
    suggested: bool = Field(description="whether a form ticks it at first")
    kept: bool = Field(description="whether it was kept for questions, and is not clustered on")


class KindFacts(Answer, json_schema_extra=example(_KIND)):
    """A kind of question."""

    name: JobKind
    title: str = Field(description='in headings, followed by "of" and the name of the dataset')
    label: str = Field(description="what it tells, as a choice in a form")
    summary: str
    clusterings: int = Field(description="number of clusterings that it is about")
    most_columns: int = Field(description="0 where it takes no columns")
    options: dict[str, Any]
    columns: list[OfferedColumn] | None = Field(
        description="of the dataset that was named: columns to choose from; empty where there is no choice"
    )


class KindList(Answer, json_schema_extra=example({"items": [_KIND]})):
    """Every kind of question."""

    items: list[KindFacts]


class AlgorithmList(Answer, json_schema_extra=example({"items": [_ALGORITHM]})):
    """Every algorithm."""

    items: list[AlgorithmFacts]


_ACCOUNTANT = {
    "name": "sum",
    "title": "Plain sum",
    "advice": "adds up epsilons and is easy to explain",
}


class AccountantFacts(Answer, json_schema_extra=example(_ACCOUNTANT)):
    """An accountant of the registry."""

    name: AccountantName
    title: str
    advice: str = Field(description="what it is good for")


class AccountantList(Answer, json_schema_extra=example({"items": [_ACCOUNTANT]})):
    """Every accountant."""

    items: list[AccountantFacts]


_PLANNED = {
    "plan": {"algorithm": "sulq", "k": 3, "steps": [{"name": "counts", "repeats": 5}]},
    "digest": "5e" * 32,
    "cost": _COST,
    "quote": _QUOTE,
    "planned_seconds": 0.75,
    "fits": True,
    "remaining_after": {
        "budget": {"epsilon": "2.5", "delta": "0"},
        "cap": {"epsilon": "0.5", "delta": "0"},
    },
    "accounts": {"budget": {**BALANCE, "period": None}, "cap": {**BALANCE, "period": None}},
    "shortfall": None,
    "periods": None,
    "version": 1,
    "population": None,
    "forecast": {"size_noise": 12.1},
    "accuracy": {
        "figures": [
            {
                "name": "size_noise",
                "label": "Size of a cluster",
                "value": "± 24",
                "explanation": "records in 95 of 100 runs; an average one has 5,000",
            }
        ],
        "verdict": {"tone": "good", "sentence": "The noise is small compared with the clusters."},
        "basis": "From public numbers alone: 10 measurements with noise, for about 15,000 records.",
    },
    "earlier": None,
    "warnings": [],
}


class EarlierFacts(Answer):
    """The uncertainty that your newest comparable release states: noise, clipping and what noise hides."""

    job: str
    epsilon: str
    k: int = Field(description="the number of clusters that this is about")
    uncertain: int = Field(description="centres that may be off by more than half the spread of a cluster")
    sentence: str


class AccuracyFigure(Answer):
    """A figure of a forecast, ready to show."""

    name: str
    label: str
    value: str
    explanation: str


class Verdict(Answer):
    """What noise does to the result, in words."""

    tone: Literal["good", "warn", "bad"] | None = Field(description="null where nothing is compared")
    sentence: str


class AccuracyFacts(Answer):
    """The accuracy to expect, in words."""

    figures: list[AccuracyFigure]
    verdict: Verdict
    basis: str = Field(description="what the figures rest on")


class PeriodEnds(Answer, json_schema_extra=example({"from": "2026-01", "to": "2026-03"})):
    """The first and the last period of a range."""

    first: str = Field(alias="from")
    last: str = Field(alias="to")


class Shortfall(Answer):
    """Why a job does not fit, in words."""

    sentence: str
    next: str
    offer: AmountFacts | None = Field(description="epsilon and delta of a request that would fit")
    request: AmountFacts | None = Field(
        default=None, description="to an analyst: the cap to request, in which the job would fit"
    )
    largest_range: PeriodEnds | None = Field(
        default=None, description="the largest range of the periods asked for in which it would fit"
    )


class PaidFrom(BudgetFacts):
    """The balance of an account that a job is charged to."""

    period: str | None = Field(description="of the account; null: the dataset as a whole")


class OfPerson(Answer):
    """What a job costs one person of the population that the dataset is in, and what is left there."""

    name: str = Field(description="of the population")
    cost: AmountFacts = Field(description="in the population's currency")
    remaining: AmountFacts
    fits: bool
    sentence: str


class Quote(Answer, json_schema_extra=example(_PLANNED)):
    """A plan with its cost, what would remain, and a forecast of its accuracy."""

    plan: dict[str, Any]
    digest: str
    cost: AmountFacts
    quote: str = Field(description="send it with the job to be charged this cost, or nothing")
    planned_seconds: float = Field(description="time from a worker's claim of the job to its result")
    fits: bool
    remaining_after: dict[str, AmountFacts] | None
    accounts: dict[str, PaidFrom] = Field(
        description="`budget` and, to an analyst, `cap`: those with the least left that the job is charged to"
    )
    shortfall: Shortfall | None = Field(description="of a job that does not fit: what is short, what to do")
    forecast: dict[str, Any] = Field(description="from public numbers alone: it counts noise only")
    accuracy: AccuracyFacts = Field(description="the forecast in words, ready to show")
    earlier: EarlierFacts | None = Field(
        default=None, description="what a release of yours that left k open says beyond noise"
    )
    periods: list[PeriodName] | None = Field(
        default=None, description="the periods that it reads, in their present versions; null: there are none"
    )
    version: int | None = Field(
        default=None,
        description="of a dataset without periods: the present version of its rows, one more after each "
        "correction",
    )
    population: OfPerson | None = Field(
        description="what it costs one person of the dataset's population; null: it is in none"
    )
    warnings: list[str]


_JOB = {
    "id": _ID,
    "name": "baseline",
    "note": "Before the reform.",
    "dataset": "flowers",
    "analyst": "ada",
    "state": "running",
    "rehearsal": False,
    "request": _REQUEST,
    "asked_for": "3 centres",
    "periods": None,
    "version": 1,
    "algorithm": "sulq",
    "cost": _COST,
    "plan_digest": "5e" * 32,
    "phase": "sums",
    "progress": {"measured": 4, "planned": 10},
    "queued_at": "2030-01-01T09:00:00.000Z",
    "claimed_at": "2030-01-01T09:00:01.000Z",
    "planned_seconds": 0.75,
    "due_at": "2030-01-01T09:00:01.750Z",
    "finished_at": None,
    "message": None,
    "links": {
        "self": f"/v1/jobs/{_ID}",
        "result": f"/v1/jobs/{_ID}/result",
        "receipt": f"/v1/jobs/{_ID}/receipt",
        "transcript": f"/v1/jobs/{_ID}/transcript",
    },
}


class JobProgress(Answer):
    """Measurements due by now and planned in all; by planned time, not by what the worker has done."""

    measured: int
    planned: int


class JobFacts(Answer, json_schema_extra=example(_JOB)):
    """State of a job."""

    id: str
    name: str = Field(description="what the analyst calls it, or empty")
    note: str = Field(description="what the analyst wrote about it, or empty")
    dataset: str
    analyst: str
    state: JobState
    rehearsal: bool
    request: dict[str, Any]
    asked_for: str = Field(description="what was asked for, in words")
    periods: list[PeriodName] | None = Field(
        description="the periods that it reads, in the versions that are there when it is claimed; null: the "
        "dataset has none"
    )
    version: int | None = Field(
        description="of a dataset without periods: the version of its rows that is there when it is claimed"
    )
    algorithm: str
    cost: AmountFacts
    plan_digest: str
    phase: str | None
    progress: JobProgress | None
    queued_at: Moment
    claimed_at: Moment | None
    planned_seconds: float = Field(description="time from the claim to the result, from public numbers")
    due_at: Moment | None = Field(description="while the job runs: when its end is shown")
    finished_at: Moment | None
    message: str | None
    links: dict[str, str] = Field(
        description="calls about the job; `differences` only where two answers can be set side by side"
    )


class JobPage(Page[JobFacts], json_schema_extra=page_example(_JOB)):
    """A page of jobs, newest first, and the cursor of the next."""
