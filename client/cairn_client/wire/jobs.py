"""Responses about algorithms, plans, jobs and results."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cairn_client.notebook import facts_html
from cairn_client.wire.amounts import Amount


@dataclass(frozen=True)
class AlgorithmFacts:
    """An algorithm of the service; `options` is a JSON Schema."""

    name: str
    summary: str
    objectives: list[str]
    guarantee: str
    domains: list[str]
    options: dict[str, Any]
    #: Whether k may be a range, for means of dense rows and tables.
    leaves_k_open: bool = False
    #: `house` for Cairn's own algorithm, `literature` for published ones; empty from an older service.
    origin: str = ""


@dataclass(frozen=True)
class KindFacts:
    """A kind of question; `options` is a JSON Schema."""

    name: str
    #: In headings, followed by "of" and the name of the dataset.
    title: str
    #: What it tells, as a choice in a form.
    label: str
    summary: str
    #: Number of clusterings that it is about.
    clusterings: int
    #: 0 where it takes no columns.
    most_columns: int
    options: dict[str, Any]
    #: Of a dataset: the columns to choose from, and why others cannot be asked about.
    columns: list[dict[str, Any]] | None


@dataclass(frozen=True)
class OfPerson:
    """What a job costs one person of the dataset's population, in the population's currency."""

    #: Of the population.
    name: str
    cost: Amount
    remaining: Amount
    fits: bool
    sentence: str


@dataclass(frozen=True)
class PlanFacts:
    """A plan: what is measured, what it costs, what would be left, and a forecast of its accuracy."""

    plan: dict[str, Any]
    digest: str
    cost: Amount
    quote: str
    planned_seconds: float
    fits: bool
    remaining_after: dict[str, Amount] | None
    forecast: dict[str, Any]
    warnings: list[str]
    #: The forecast in words: `figures`, `verdict` and `basis`.
    accuracy: dict[str, Any]
    #: The uncertainty that your newest comparable release states: noise, clipping and what noise hides.
    earlier: dict[str, Any] | None = None
    #: Of a job that does not fit: the reason (`sentence`), what to do (`next`), and an amount that would fit.
    shortfall: dict[str, Any] | None = None
    #: Label and version of each period that the job reads.
    periods: list[dict[str, Any]] | None = None
    #: In a dataset without periods: the version of its rows.
    version: int | None = None
    #: The balances with the least left that the job is charged to, of budgets and of your caps.
    accounts: dict[str, Any] = field(default_factory=dict)
    #: What it costs one person of the dataset's population, and what is left there.
    population: OfPerson | None = None

    def __repr__(self) -> str:
        fit = "fits" if self.fits else "does not fit"
        return f"<Plan by {self.plan['algorithm']}: {self.cost}, {fit}. {self.verdict}>"

    def _repr_html_(self) -> str:
        """The plan in a notebook."""
        after = self.remaining_after or {}
        shortfall = self.shortfall or {}
        facts = [
            ("Cost", self.cost),
            ("Fits", "yes" if self.fits else shortfall.get("sentence", "no")),
            *((f"Would remain of the {name}", amount) for name, amount in after.items()),
            *([("Population", self.population.sentence)] if self.population else []),
            ("Result after", f"{self.planned_seconds:g} s"),
            ("Forecast", self.verdict),
            *(("Warning", each) for each in self.warnings),
        ]
        return facts_html(f"Plan by {self.plan['algorithm']}", facts)

    @property
    def average_size(self) -> float:
        """Records in an average cluster, from the public size of the dataset."""
        return float(self.plan["domain"]["size"]) / float(self.plan.get("k", 1))

    @property
    def size_error(self) -> float | None:
        """The standard deviation of the noise in a cluster's size; None where no sizes are counted."""
        return self.forecast.get("size_noise")

    @property
    def verdict(self) -> str:
        """What the noise does to the result, and what your earlier release adds."""
        return str(self.accuracy["verdict"]["sentence"])


@dataclass(frozen=True)
class JobProgress:
    """The number of measurements that are due by planned time, of those planned."""

    measured: int
    planned: int


@dataclass(frozen=True)
class JobFacts:
    """The state of a job."""

    id: str
    name: str
    note: str
    dataset: str
    analyst: str
    state: str
    rehearsal: bool
    request: dict[str, Any]
    #: What was asked for, in words.
    asked_for: str
    algorithm: str
    cost: Amount
    plan_digest: str
    phase: str | None
    progress: JobProgress | None
    queued_at: datetime
    claimed_at: datetime | None
    planned_seconds: float
    due_at: datetime | None
    finished_at: datetime | None
    message: str | None
    links: dict[str, str]
    #: Label and version of each period that it reads.
    periods: list[dict[str, Any]] | None = None
    #: In a dataset without periods: the version of its rows that it reads.
    version: int | None = None


@dataclass(frozen=True)
class NoiseFacts:
    """Standard deviations of the noise in a result; None where nothing is known.

    `size` is in records. `centres` holds one for each centre, in units of the widest column; `columns` holds
    the factors for each column, where they differ. Noise stays within `tail` standard deviations in 95 of 100
    runs.
    """

    size: float | None
    centres: list[float] | None
    columns: list[float] | None
    tail: float | None = None


@dataclass(frozen=True)
class ResultFacts:
    """The result of a job."""

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
    noise: NoiseFacts | None = None
    #: Of jobs of a single k: 95% intervals of sizes and centres, for the noise alone, as far as it is known.
    intervals: dict[str, Any] | None = None
    #: Of a table: each centre column by column, in the columns' own kinds.
    profiles: list[list[dict[str, Any]]] | None = None
    #: Only of jobs that left k open: what is known of each cluster, and of the whole range.
    level: dict[str, Any] | None = None
    range: dict[str, Any] | None = None
    #: Only where a smaller k was asked for than the job had: which clusters were merged.
    merged: dict[str, Any] | None = None


@dataclass(frozen=True)
class DifferencesFacts:
    """Two answers about the same clusters side by side."""

    #: The job and the dataset of each.
    first: dict[str, str]
    second: dict[str, str]
    kind: str
    clusterings: list[dict[str, Any]]
    #: The differences ready to show: sentences, tables and bars, each with its `type`.
    view: list[dict[str, Any]]


@dataclass(frozen=True)
class FindingsFacts:
    """The result of a question."""

    job: str
    dataset: str
    rehearsal: bool
    kind: str
    #: Those it is about: job, k and digest of the centres.
    clusterings: list[dict[str, Any]]
    findings: dict[str, Any]
    draws: dict[str, str]
    privacy: dict[str, Any]
    receipt: str
    #: The answer ready to show: sentences, tables and bars, each with its `type`.
    view: list[dict[str, Any]] = field(default_factory=list)
    #: Working bounds that the answer proposes.
    bounds: list[dict[str, Any]] = field(default_factory=list)
