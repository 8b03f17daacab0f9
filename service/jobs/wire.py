"""Wire types of algorithms, plans, jobs, results and receipts."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from service.datasets.wire import AmountFacts
from service.http.wire import Amount, Answer, Body, Name, example

__all__ = [
    "AlgorithmFacts",
    "AlgorithmList",
    "JobBody",
    "JobFacts",
    "JobPage",
    "PlanBody",
    "Quote",
    "Receipt",
    "ResultFacts",
]

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
_REQUEST = {"dataset": "flowers", "k": 3, "epsilon": "0.5"}
_ID = "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d"
_COST = {"epsilon": "0.5", "delta": "0.000001"}


def _moderate(value: Any) -> Any:
    if isinstance(value, int) and abs(value) >= 2**63:
        raise ValueError("a whole number has at most 63 bits")
    return value


class PlanBody(Body):
    """What an analyst asks for; the same as the body of a job."""

    model_config = ConfigDict(json_schema_extra=example(_REQUEST))

    dataset: Name
    algorithm: str = Field(default="auto", max_length=64, pattern=r"^[a-z0-9-]+$")
    objective: Literal["means", "medians"] = "means"
    k: int = Field(ge=1, le=10_000)
    epsilon: Amount
    delta: Amount | None = Field(
        None, description="default: min(1e-6, 1/(10 N)), or 0 where no delta is offered"
    )
    options: dict[str, Annotated[Any, AfterValidator(_moderate)]] = Field(
        default_factory=dict, max_length=100
    )
    sites: Name | None = Field(
        None, description="a site set of the dataset, for algorithms that choose among sites"
    )


class JobBody(PlanBody):
    """A job, or a rehearsal of one on synthetic rows."""

    model_config = ConfigDict(json_schema_extra=example({**_REQUEST, "rehearsal": False}))

    rehearsal: bool = Field(
        False, description="run on synthetic rows drawn inside the public bounds, for free"
    )


_ALGORITHM = {
    "name": "sulq",
    "summary": "Lloyd's rounds with noisy averages, from public starting points",
    "objectives": ["means"],
    "guarantee": "either",
    "domains": ["dense", "sparse"],
    "options": {"type": "object", "properties": {"rounds": {"type": "integer", "default": 5}}},
}


class AlgorithmFacts(Answer):
    """An algorithm of the registry."""

    model_config = ConfigDict(json_schema_extra=example(_ALGORITHM))

    name: str
    summary: str
    objectives: list[str]
    guarantee: Literal["pure", "approximate", "either"]
    domains: list[str]
    options: dict[str, Any]


class AlgorithmList(Answer):
    """Every algorithm."""

    model_config = ConfigDict(json_schema_extra=example({"items": [_ALGORITHM]}))

    items: list[AlgorithmFacts]


class Quote(Answer):
    """A plan with its price: what it measures, what it costs, what would remain, how well it should do."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "plan": {"algorithm": "sulq", "k": 3, "steps": [{"name": "counts", "repeats": 5}]},
                "digest": "5e" * 32,
                "cost": _COST,
                "fits": True,
                "remaining_after": {
                    "budget": {"epsilon": "2.5", "delta": "0"},
                    "cap": {"epsilon": "0.5", "delta": "0"},
                },
                "forecast": {},
                "warnings": [],
            }
        )
    )

    plan: dict[str, Any]
    digest: str
    cost: AmountFacts
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
    """How many of the planned measurements are made."""

    measured: int
    planned: int


class JobFacts(Answer):
    """Where a job stands."""

    model_config = ConfigDict(json_schema_extra=example(_JOB))

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
    queued_at: str
    claimed_at: str | None
    finished_at: str | None
    message: str | None
    links: dict[str, str]


class JobPage(Answer):
    """Some jobs, newest first, and where the next page begins."""

    model_config = ConfigDict(json_schema_extra=example({"items": [_JOB], "next": None}))

    items: list[JobFacts]
    next: str | None


class ResultFacts(Answer):
    """What a job released."""

    model_config = ConfigDict(
        json_schema_extra=example(
            {
                "job": _ID,
                "dataset": "flowers",
                "rehearsal": False,
                "algorithm": "sulq",
                "objective": "means",
                "columns": ["petal_length", "petal_width"],
                "centres": [[1.46, 0.25], [4.26, 1.33], [5.55, 2.03]],
                "sizes": [4963.0, 5012.0, 5041.0],
                "draws": {"starts": "9f86d081884c7d659a2feaa0c55ad015"},
                "details": {},
                "privacy": {"epsilon": "0.5", "delta": "0.000001", "unit": "row"},
                "receipt": f"/v1/jobs/{_ID}/receipt",
            }
        )
    )

    job: str
    dataset: str
    rehearsal: bool
    algorithm: str
    objective: str
    columns: list[str] | None
    centres: list[list[float]]
    sizes: list[float] | None
    draws: dict[str, str]
    details: dict[str, Any]
    privacy: dict[str, Any]
    receipt: str


class Receipt(Answer):
    """Everything that was promised and charged, for the record; nothing in it comes from rows."""

    model_config = ConfigDict(
        extra="allow",
        json_schema_extra=example(
            {
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
        ),
    )

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
