"""Wire types of results (of clusterings and of questions), made-up rows and receipts."""

from typing import Annotated, Any, Literal

from pydantic import Field

from service.datasets.bounds_wire import WorkingColumn
from service.datasets.periods.wire import PeriodName
from service.datasets.wire import AmountFacts
from service.http.wire import Answer, JobKind, example

_ID = "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d"


class NoiseFacts(Answer):
    """Standard deviations of the noise in a result."""

    size: float | None = Field(description="in the size of a cluster, in records")
    centres: list[float] | None = Field(
        description="in each coordinate of each centre, in units of the widest column"
    )
    columns: list[float] | None = Field(description="factors of `centres` for each column; else all are 1")
    tail: float | None = Field(
        default=None, description="standard deviations that the noise stays within in 95 of 100 runs"
    )


class NoiseIntervals(Answer):
    """95% intervals of sizes and centres of a single k, for the noise alone.

    They leave out what clipping cut off, and what another run would find. Those of centres are approximate.
    """

    size_low: list[float] | None = Field(default=None, description="missing where no sizes are counted")
    size_high: list[float] | None = None
    centre_low: list[list[float]] | None = Field(
        default=None, description="missing where the noise in centres is not known, and of sparse rows"
    )
    centre_high: list[list[float]] | None = None


class Interval(Answer):
    """An estimate, and an interval of nominally 95%."""

    value: float
    low: float
    high: float


class ColumnProfile(Answer):
    """Value of a centre in one column of a table."""

    column: str
    kind: str = Field(description="the kind of the column, as `GET /v1/column-kinds` lists it")
    measure: Literal["mean", "median", "geometric mean", "geometric median", "rate", "shares"]
    value: float | str | None = Field(default=None, description="a number, a rate, a date or a time")
    shares: dict[str, float] | None = Field(default=None, description="of each level; they add up to one")
    noise: float | None = Field(
        default=None, description="standard deviation, in days for a date and in seconds for a time"
    )
    noise_factor: float | None = Field(default=None, description="of a geometric mean: up or down by this")
    value_low: float | str | None = Field(
        default=None, description="95% intervals; missing where the noise is not known"
    )
    value_high: float | str | None = None
    shares_low: dict[str, float] | None = None
    shares_high: dict[str, float] | None = None


class LevelFacts(Answer):
    """Facts about each cluster, for one k of a job that left k open.

    Intervals speak of the records nearest to each centre: how many there are, and where their mean lies.
    """

    k: int
    centre_low: list[list[float]]
    centre_high: list[list[float]]
    size_low: list[float]
    size_high: list[float]
    spreads: list[float] = Field(description="root mean squared distance to the centre")
    apart: list[float] = Field(description="distance to the next centre")
    real: list[bool] = Field(description="false where noise alone could have made the cluster")
    loss: Interval = Field(
        description="mean squared distance to the nearest centre, of records within the range's `reach`"
    )
    explained: float = Field(description="share of the variance of all records")


class MergedFacts(Answer):
    """The clusters of a single k that were merged into fewer; numbers count from 0, as in `centres`."""

    of: int = Field(description="the k that the job asked for")
    groups: list[list[int]] = Field(description="for each cluster those that it is made of")


class CurvePoint(Answer):
    """The loss at one k."""

    k: int
    loss: Interval
    explained: float


class RangeFacts(Answer):
    """The range of a job that left k open, and what holds for all of it."""

    first: int = Field(alias="from")
    last: int = Field(alias="to")
    suggested: int = Field(description="the k of the centres and sizes, unless another was asked for")
    reason: str
    curve: list[CurvePoint]
    tree: dict[str, list[Any]] = Field(description="merges of fine clusters, and the loss that each adds")
    reach: float = Field(description="losses are of records within this distance of a fine cluster")
    beyond: float | None = Field(
        default=None, description="about how many records lie beyond `reach`, at most"
    )
    heavy_tailed: bool = Field(description="whether records beyond `reach` may matter")
    warning: str | None = Field(default=None, description="under heavy tails: what the losses leave out")
    made_up_rows: int


_RESULT = {
    "job": _ID,
    "dataset": "flowers",
    "rehearsal": False,
    "algorithm": "sulq",
    "objective": "means",
    "columns": ["petal_length", "petal_width"],
    "centres": [[1.46, 0.25], [4.26, 1.33], [5.55, 2.03]],
    "sizes": [4963.0, 5012.0, 5041.0],
    "noise": {"size": 11.3, "centres": [0.014, 0.013, 0.013], "columns": [1.0, 0.4], "tail": 1.96},
    "intervals": {
        "size_low": [4940.4, 4989.4, 5018.4],
        "size_high": [4985.6, 5034.6, 5063.6],
        "centre_low": [[1.43, 0.24], [4.23, 1.32], [5.52, 2.02]],
        "centre_high": [[1.49, 0.26], [4.29, 1.34], [5.58, 2.04]],
    },
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
    centres: list[list[float]] = Field(
        description="of a table a number for each coordinate: shares of levels, logarithms where a column is "
        "on a log scale, days or seconds since 1970"
    )
    profiles: list[list[ColumnProfile]] | None = Field(
        default=None, description="of a table: each centre column by column, in the columns' own kinds"
    )
    sizes: list[float] | None
    noise: NoiseFacts | None = Field(default=None, description="missing from results of earlier versions")
    intervals: NoiseIntervals | None = Field(
        default=None, description="of jobs of a single k; missing from results of earlier versions"
    )
    draws: dict[str, str]
    details: dict[str, Any]
    level: LevelFacts | None = Field(default=None, description="only of jobs that left k open")
    range: RangeFacts | None = Field(default=None, description="only of jobs that left k open")
    merged: MergedFacts | None = Field(
        default=None, description="only where a smaller k was asked for than the job had"
    )
    privacy: dict[str, Any]
    receipt: str


_AXES = {"units": [0.0001, 0.00004], "low": [0.0, 0.0], "high": [7.0, 3.0], "scales": None, "offsets": None}


class AxesFacts(Answer, json_schema_extra=example(_AXES)):
    """Facts about each coordinate of a result's centres, to draw them by; empty for site numbers."""

    units: list[float] = Field(description="distances are Euclidean after division by these")
    low: list[float]
    high: list[float]
    scales: list[Literal["number", "log", "share", "date", "datetime"]] | None = Field(
        description="of a table: numbers, their logarithms, shares of one, days or seconds since 1970"
    )
    offsets: list[float] | None = Field(description="of a table: added before the logarithm was taken")


class SampleFacts(
    Answer, json_schema_extra=example({"columns": ["a", "b"], "rows": [[0.1, 0.2]], "made_up": True})
):
    """Made-up rows that agree with a release; none of them is a record."""

    columns: list[str]
    rows: list[list[float | bool | str]] = Field(description="of a table: values of each column's kind")
    made_up: Literal[True]


_FINDINGS = {
    "job": _ID,
    "dataset": "flowers",
    "rehearsal": False,
    "kind": "quantiles",
    "clusterings": [],
    "findings": {
        "levels": [0.5],
        "columns": [
            {
                "column": "petal_length",
                "kind": "number",
                "values": [4.3],
                "values_low": [4.21],
                "values_high": [4.37],
                "count": 15021.0,
                "count_low": 14994.0,
                "count_high": 15048.0,
            }
        ],
        "noise": {"count": 8.5, "rank": 29.4},
    },
    "view": [
        {"type": "sentence", "text": "Counts are noisy: ±17 records in 95 of 100 runs."},
        {
            "type": "table",
            "title": "Quantiles",
            "headings": [{"name": "Column", "format": "text"}, {"name": "50%", "format": "number"}],
            "rows": [
                [
                    "petal_length",
                    {"value": 4.3, "low": 4.21, "high": 4.37, "text": "4.3 (4.21 to 4.37)"},
                ]
            ],
        },
    ],
    "bounds": [],
    "draws": {},
    "privacy": {"epsilon": "0.5", "delta": "0", "unit": "row"},
    "receipt": f"/v1/jobs/{_ID}/receipt",
}


class Estimate(Answer):
    """A released number with its 95% interval; dates and times are text."""

    value: float | str | None
    low: float | str | None
    high: float | str | None
    text: str = Field(description="number and interval as people read them, or that noise hides it")


class SentencePart(Answer):
    """A sentence."""

    type: Literal["sentence"]
    text: str


class Heading(Answer):
    """The heading of a column, and whether numbers stand below it."""

    name: str
    format: Literal["text", "number"]


class GridPart(Answer):
    """A table."""

    type: Literal["table"]
    title: str
    headings: list[Heading]
    rows: list[list[float | str | Estimate | None]]


class BarFacts(Answer):
    """A share of a total, which is as long as its bar, and the count that it represents."""

    share: Estimate
    count: Estimate | None = None


class SeriesFacts(Answer):
    """The bars of one histogram."""

    name: str
    bars: list[BarFacts]


class BarsPart(Answer):
    """Histograms next to each other, of the same bins."""

    type: Literal["bars"]
    title: str
    bins: list[str]
    series: list[SeriesFacts]


class ProposedBounds(Answer):
    """Bounds of a column that an answer proposes: numbers, or dates and times as text."""

    column: str
    low: float | str
    high: float | str


ViewPart = Annotated[SentencePart | GridPart | BarsPart, Field(discriminator="type")]


class FindingsFacts(Answer, json_schema_extra=example(_FINDINGS)):
    """Released result of a question."""

    job: str
    dataset: str
    rehearsal: bool
    kind: JobKind
    clusterings: list[dict[str, Any]] = Field(description="those it is about: job, k and digest of centres")
    findings: dict[str, Any] = Field(description="the answer; docs/questions.md describes each kind's")
    view: list[ViewPart] = Field(description="the answer ready to show, the same way for every kind")
    bounds: list[ProposedBounds] = Field(description="working bounds that the answer proposes")
    draws: dict[str, str]
    privacy: dict[str, Any]
    receipt: str


class AnswerName(Answer):
    """An answer by its job."""

    job: str
    dataset: str


_DIFFERENCES = {
    "first": {"job": _ID, "dataset": "stays-2025"},
    "second": {"job": _ID, "dataset": "stays-2026"},
    "kind": "profile",
    "clusterings": [{"job": _ID, "k": 3, "digest": "5e" * 32}],
    "view": [{"type": "sentence", "text": "12 of 60 differences are certain at 95%, each by itself."}],
}


class DifferencesFacts(Answer, json_schema_extra=example(_DIFFERENCES)):
    """Two answers about the same clusters side by side: of two periods, two places, or twice of one."""

    first: AnswerName
    second: AnswerName
    kind: JobKind
    clusterings: list[dict[str, Any]] = Field(
        description="those both are about: job, k and digest of centres"
    )
    view: list[ViewPart] = Field(description="differences with their intervals, the most certain first")


_RECEIPT = {
    "format": 2,
    "job": _ID,
    "dataset": "flowers",
    "rehearsal": False,
    "charged": {"epsilon": "0.5", "delta": "0.000001"},
    "accountant": "sum",
    "privacy_unit": "row",
    "neighbours": "add or remove one record",
    "steps": [{"name": "counts", "mechanism": {"kind": "laplace"}, "repeats": 5, "share": 0.41}],
    "transcript": {"format": 1, "bytes": 8120, "sha256": "7c" * 32},
    "versions": {"cairn": "0.1.0"},
    "citation": "Centres of 3 clusters (k-means) of the dataset “flowers”, computed for ada by Cairn 0.1.0.",
    "explanation": [{"question": "Who is protected?", "answer": "Each single row."}],
    "registry": {"url_slug": "flowers-6f1cbb0e", "status": "Draft", "tier": 3, "deployment": {}},
    "digest": "5e" * 32,
    "signature": {
        "algorithm": "Ed25519",
        "key": "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k",
        "value": f"{'A' * 86}==",
    },
}


class Signature(Answer):
    """An Ed25519 signature of a receipt's digest."""

    algorithm: str
    key: str = Field(description="id of the public key, see `/.well-known/cairn-keys.json`")
    value: str = Field(description="in base64")


class TranscriptFacts(Answer):
    """A transcript by its digest."""

    format: int
    bytes: int
    sha256: str


class ChargeFacts(Answer):
    """Place and hash of the entry that charged a job, in the ledger of its dataset."""

    sequence: int
    hash: str


class ReleasedFacts(Answer):
    """Digests of what a job released."""

    result: str = Field(description="SHA-256 of the result as stored: of a clustering, the JSON that is sent")
    answers: str | None = Field(description="SHA-256 of the digests of the answers for other k, if any")


class Receipt(Answer, extra="allow", json_schema_extra=example(_RECEIPT)):
    """Record of what was promised and charged; of what was released it holds a digest alone."""

    format: int
    job: str
    dataset: str
    rehearsal: bool
    charged: AmountFacts
    accountant: str
    privacy_unit: str
    neighbours: str
    steps: list[dict[str, Any]]
    unit: str | None = Field(
        default=None, description="of a dataset with periods: the declared unit of privacy; else missing"
    )
    periods: list[PeriodName] | None = Field(
        default=None, description="the periods that were read, each in this version; else missing"
    )
    version: int | None = Field(
        default=None,
        description="of a dataset without periods that was corrected: the version of its rows that was read; "
        "else missing",
    )
    bounds: str | None = Field(
        default=None,
        description="SHA-256 of the dataset's domain, without the sizes of periods; else missing",
    )
    lost_in_all: AmountFacts | None = Field(
        default=None,
        description="with the unit `person-in-period`: what this job costs somebody with rows in all its "
        "periods; else missing",
    )
    working_bounds: list[WorkingColumn] | None = Field(
        default=None,
        description="columns whose bounds were narrower than declared; missing if there are none",
    )
    charge: ChargeFacts | None = Field(
        default=None, description="null for a rehearsal, missing in earlier versions: the entry of the charge"
    )
    released: ReleasedFacts | None = Field(
        default=None, description="digests of the result as it is stored; missing in earlier versions"
    )
    transcript: TranscriptFacts | None = Field(
        default=None, description="null, or missing in earlier versions: the job has no transcript"
    )
    versions: dict[str, str]
    citation: str | None = Field(default=None, description="a sentence to cite the release by")
    explanation: list[dict[str, str]] = Field(
        default_factory=list, description="questions of a data protection officer, answered"
    )
    registry: dict[str, Any] | None = Field(
        description="an entry of the public registry of differential privacy deployments"
    )
    digest: str
    signature: Signature | None = Field(
        default=None, description="of the digest; receipts of format 1 are not signed"
    )
