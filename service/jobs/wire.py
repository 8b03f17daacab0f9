"""Wire types of algorithms, plans, jobs, results and receipts."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field

from service.datasets.wire import AmountFacts
from service.http.wire import Amount, Answer, Body, Moment, Name, Page, example, page_example

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
_REQUEST = {"dataset": "flowers", "k": 3, "epsilon": "0.5"}
_ID = "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d"
_QUOTE = "9b" * 32
_COST = {"epsilon": "0.5", "delta": "0.000001"}


def _at_most_63_bits(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has at most 63 bits")
    return value


class PlanBody(Body, json_schema_extra=example(_REQUEST)):
    """Request of a plan; that of a job has the same fields and may carry the plan's quote."""

    dataset: Name
    algorithm: str = Field(default="auto", max_length=64, pattern=r"^[a-z0-9-]+$")
    objective: Literal["means", "medians"] = "means"
    k: int = Field(ge=1, le=10_000)
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


class JobBody(PlanBody, json_schema_extra=example({**_REQUEST, "quote": _QUOTE})):
    """A job, or a rehearsal of one on synthetic rows."""

    quote: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="the plan's `quote`: the job is refused if anything else would be charged",
    )


_ALGORITHM = {
    "name": "sulq",
    "summary": "Lloyd's rounds with noisy averages, from public starting points",
    "objectives": ["means"],
    "guarantee": "either",
    "domains": ["dense", "sparse"],
    "options": {"type": "object", "properties": {"rounds": {"type": "integer", "default": 5}}},
}


class AlgorithmFacts(Answer, json_schema_extra=example(_ALGORITHM)):
    """An algorithm of the registry."""

    name: str
    summary: str
    objectives: list[str]
    guarantee: Literal["pure", "approximate", "either"]
    domains: list[str]
    options: dict[str, Any]


class AlgorithmList(Answer, json_schema_extra=example({"items": [_ALGORITHM]})):
    """Every algorithm."""

    items: list[AlgorithmFacts]


_PLANNED = {
    "plan": {"algorithm": "sulq", "k": 3, "steps": [{"name": "counts", "repeats": 5}]},
    "digest": "5e" * 32,
    "cost": _COST,
    "quote": _QUOTE,
    "fits": True,
    "remaining_after": {
        "budget": {"epsilon": "2.5", "delta": "0"},
        "cap": {"epsilon": "0.5", "delta": "0"},
    },
    "forecast": {},
    "warnings": [],
}


class Quote(Answer, json_schema_extra=example(_PLANNED)):
    """A plan with its cost, what would remain, and a forecast of its accuracy."""

    plan: dict[str, Any]
    digest: str
    cost: AmountFacts
    quote: str = Field(description="send it with the job to be charged this cost, or nothing")
    fits: bool
    remaining_after: dict[str, AmountFacts] | None
    forecast: dict[str, Any]
    warnings: list[str]


_JOB = {
    "id": _ID,
    "dataset": "flowers",
    "analyst": "ada",
    "state": "running",
    "rehearsal": False,
    "request": _REQUEST,
    "algorithm": "sulq",
    "cost": _COST,
    "plan_digest": "5e" * 32,
    "phase": "sums",
    "progress": {"measured": 4, "planned": 10},
    "queued_at": "2030-01-01T09:00:00.000Z",
    "claimed_at": "2030-01-01T09:00:01.000Z",
    "finished_at": None,
    "message": None,
    "links": {
        "self": f"/v1/jobs/{_ID}",
        "result": f"/v1/jobs/{_ID}/result",
        "receipt": f"/v1/jobs/{_ID}/receipt",
    },
}


class JobProgress(Answer):
    """Number of measurements made and planned."""

    measured: int
    planned: int


class JobFacts(Answer, json_schema_extra=example(_JOB)):
    """State of a job."""

    id: str
    dataset: str
    analyst: str
    state: JobState
    rehearsal: bool
    request: dict[str, Any]
    algorithm: str
    cost: AmountFacts
    plan_digest: str
    phase: str | None
    progress: JobProgress | None
    queued_at: Moment
    claimed_at: Moment | None
    finished_at: Moment | None
    message: str | None
    links: dict[str, str]


class JobPage(Page[JobFacts], json_schema_extra=page_example(_JOB)):
    """A page of jobs, newest first, and the cursor of the next."""


class NoiseFacts(Answer):
    """Standard deviations of the noise in a result."""

    size: float | None = Field(description="in the size of a cluster, in records")
    centres: list[float] | None = Field(
        description="in each coordinate of each centre, in units of the widest column"
    )
    columns: list[float] | None = Field(description="factors of `centres` for each column; else all are 1")


_RESULT = {
    "job": _ID,
    "dataset": "flowers",
    "rehearsal": False,
    "algorithm": "sulq",
    "objective": "means",
    "columns": ["petal_length", "petal_width"],
    "centres": [[1.46, 0.25], [4.26, 1.33], [5.55, 2.03]],
    "sizes": [4963.0, 5012.0, 5041.0],
    "noise": {"size": 11.3, "centres": [0.014, 0.013, 0.013], "columns": [1.0, 0.4]},
    "draws": {"starts": "9f86d081884c7d659a2feaa0c55ad015"},
    "details": {},
    "privacy": {"epsilon": "0.5", "delta": "0.000001", "unit": "row"},
    "receipt": f"/v1/jobs/{_ID}/receipt",
}


class ResultFacts(Answer, json_schema_extra=example(_RESULT)):
    """Released result of a job."""

    job: str
    dataset: str
    rehearsal: bool
    algorithm: str
    objective: str
    columns: list[str] | None
    centres: list[list[float]]
    sizes: list[float] | None
    noise: NoiseFacts | None = Field(default=None, description="missing from results of earlier versions")
    draws: dict[str, str]
    details: dict[str, Any]
    privacy: dict[str, Any]
    receipt: str


_RECEIPT = {
    "format": 1,
    "job": _ID,
    "dataset": "flowers",
    "rehearsal": False,
    "charged": _COST,
    "accountant": "sum",
    "privacy_unit": "row",
    "neighbours": "add or remove one record",
    "steps": [{"name": "counts", "mechanism": {"kind": "laplace"}, "repeats": 5, "share": 0.41}],
    "versions": {"cairn": "0.1.0"},
    "registry": {"privacy_unit": "row", "release_type": "interactive"},
    "digest": "5e" * 32,
}


class Receipt(Answer, extra="allow", json_schema_extra=example(_RECEIPT)):
    """Record of what was promised and charged; nothing in it comes from rows."""

    format: int
    job: str
    dataset: str
    rehearsal: bool
    charged: AmountFacts
    accountant: str
    privacy_unit: str
    neighbours: str
    steps: list[dict[str, Any]]
    versions: dict[str, str]
    registry: dict[str, Any]
    digest: str
