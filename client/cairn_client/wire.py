"""The types of the service's responses, as frozen dataclasses.

Amounts are exact decimals; times are datetimes with a time zone. Fields that a newer service adds are
ignored, and fields that an older one does not send take their default, so that client and service need not be
upgraded together.
"""

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import Any, Literal

from cairn_client.forecast import plan_verdict
from cairn_client.formatting import number

#: An amount of epsilon or delta as a caller may write it.
Number = int | float | str | Decimal


def amount_text(value: Number) -> str:
    """The exact decimal to send; a float means the number that it prints as."""
    if isinstance(value, bool):
        raise ValueError("a boolean is not an amount; write a number such as 0.5")
    try:
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except InvalidOperation:
        raise ValueError(f"{value!r} is not an amount; write a number such as 0.5") from None
    if not number.is_finite():
        raise ValueError(f"{value!r} is not an amount; write a number such as 0.5")
    return format(number, "f")


@dataclass(frozen=True)
class Amount:
    """An amount of privacy loss. With the accountant `zcdp` it is `rho`, and epsilon is its equivalent."""

    epsilon: Decimal
    delta: Decimal
    rho: Decimal | None = None

    def __str__(self) -> str:
        """Rounded to six digits for people; the fields are exact."""
        name, loss = ("epsilon", self.epsilon) if self.rho is None else ("rho", self.rho)
        return f"{name} {number(loss, 6)}, delta {number(self.delta, 6)}"


@dataclass(frozen=True)
class Account:
    """The balance of a budget or a cap; `declared` is the epsilon and delta that the curator set."""

    declared: Amount
    total: Amount
    spent: Amount
    reserved: Amount
    remaining: Amount


class Doubt(StrEnum):
    """Doubts about the rows of a draft that can be confirmed."""

    LEFT_OUT = "left-out"
    CLIPPED = "clipped"
    SIZE = "size"


@dataclass(frozen=True)
class ColumnReport:
    """Values of a column that were missing, unreadable, no declared level, or outside its bounds."""

    name: str
    missing: int
    unreadable: int
    below: int
    above: int
    examples: list[str]
    unknown: int = 0


@dataclass(frozen=True)
class DoubtReport:
    """A reason to look again before the rows are sealed, and the word that confirms it."""

    confirm: str
    detail: str


@dataclass(frozen=True)
class UploadReport:
    """The report on the rows of a dataset; only its curator sees it."""

    format: str
    rows: int
    clipped_rows: int
    bad_rows: int
    bad_row_lines: list[dict[str, Any]]
    rows_over_limit: int
    ignored_columns: list[str]
    bytes: int
    sha256: str
    warnings: list[str]
    columns: list[ColumnReport] = field(default_factory=list)
    doubts: list[DoubtReport] = field(default_factory=list)
    read_as: str = ""


@dataclass(frozen=True)
class WorkingColumn:
    """A column with bounds narrower than declared, and where they come from."""

    column: str
    low: Any
    high: Any
    #: "released by job ..." or "typed by the curator".
    origin: str
    job: str | None = None

    def as_sent(self) -> dict[str, Any]:
        """What sets these bounds again."""
        if self.job is not None:
            return {"column": self.column, "job": self.job}
        return {"column": self.column, "low": self.low, "high": self.high}


@dataclass(frozen=True)
class WorkingBoundsFacts:
    """The bounds in which new jobs are planned; columns that are not named have their declared ones."""

    columns: list[WorkingColumn]
    digest: str
    set_at: datetime


@dataclass(frozen=True)
class DatasetFacts:
    """Public facts of a dataset, its budget and your cap; for its owner, the upload report."""

    name: str
    description: str
    state: str
    kind: str
    columns: list[str] | None
    dimension: int
    bounds: dict[str, Any]
    scaling: str | None
    size: int
    rows_per_person: int
    id_column: str | None
    privacy_unit: str
    accountant: str
    release_ticks: bool
    least_epsilon: str
    jobs_per_hour: int
    overruns: int | None
    size_warning: str | None
    owner: str
    created_at: datetime
    warnings: list[str]
    budget: Account
    cap: Account | None = None
    upload: UploadReport | None = None
    revised: list[str] = field(default_factory=list)
    #: Of a table: all columns, as they were declared.
    table: list[dict[str, Any]] | None = None
    #: Kinds of jobs that your grant allows.
    kinds: list[str] | None = None
    #: Narrower bounds that new jobs use.
    working_bounds: WorkingBoundsFacts | None = None


@dataclass(frozen=True)
class GrantFacts:
    """An analyst's permission to use a dataset, with its cap."""

    analyst: str
    cap: Account
    created_at: datetime
    revoked_at: datetime | None = None
    #: Kinds of jobs that it allows.
    kinds: list[str] = field(default_factory=lambda: ["cluster"])


@dataclass(frozen=True)
class LedgerRow:
    """One entry of a dataset's ledger; analysts see only their own, without the hashes."""

    sequence: int
    kind: str
    at: datetime
    analyst: str | None
    job: str | None
    amount: Amount
    actor: str | None = None
    previous: str | None = None
    hash: str | None = None


@dataclass(frozen=True)
class VerifyReport:
    """The outcome of checking a ledger."""

    ok: bool
    entries: int
    head: str
    faults: list[str]
    since: int = 0


@dataclass(frozen=True)
class Retirement:
    """The outcome of retiring a dataset."""

    state: str
    voided_jobs: int


#: What the numbers of a set of sites mean.
SiteKind = Literal["coordinates", "great-circle", "distances"]


@dataclass(frozen=True)
class SiteSetFacts:
    """A set of public sites."""

    name: str
    kind: str
    count: int
    width: int
    created_at: datetime


@dataclass(frozen=True)
class WhoAmI:
    """Name and role of a key's owner."""

    name: str
    role: str


@dataclass(frozen=True)
class KeyFacts:
    """A key without its secret."""

    id: str
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class NewKey(KeyFacts):
    """A new key, shown only once; its text is not part of `repr`, to keep it out of logs."""

    key: str = field(repr=False)


@dataclass(frozen=True)
class SessionFacts:
    """A browser that is signed in with a key."""

    id: str
    key: str
    created_at: datetime
    expires_at: datetime
    remembered: bool
    current: bool


@dataclass(frozen=True)
class PrincipalFacts:
    """An account of a person or program; its keys and sessions are listed for whoever manages it."""

    name: str
    role: str
    created_by: str | None
    created_at: datetime
    disabled_at: datetime | None
    keys: list[KeyFacts]
    sessions: list[SessionFacts] = field(default_factory=list)


@dataclass(frozen=True)
class NewPrincipal:
    """A new account with its first key, which is shown only once."""

    name: str
    role: str
    first_key: NewKey


@dataclass(frozen=True)
class AuditEntry:
    """One entry of the audit log."""

    id: int
    at: datetime
    actor: str
    action: str
    dataset: str | None
    details: dict[str, Any]


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


@dataclass(frozen=True)
class KindFacts:
    """A kind of question; `options` is a JSON Schema."""

    name: str
    summary: str
    #: Number of clusterings that it is about.
    clusterings: int
    #: 0 where it takes no columns.
    most_columns: int
    options: dict[str, Any]


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
    #: The uncertainty that your newest comparable release states: noise, clipping and what noise hides.
    earlier: dict[str, Any] | None = None

    @property
    def average_size(self) -> float:
        """Records in an average cluster, from the public size of the dataset."""
        return float(self.plan["domain"]["size"]) / float(self.plan.get("k", 1))

    @property
    def size_error(self) -> float | None:
        """The standard deviation of the noise in a cluster's size; None where no sizes are counted."""
        return self.forecast.get("size_noise")

    @property
    def verdict(self) -> str | None:
        """The noise beside the clusters, and what your earlier release adds; None without a forecast."""
        return plan_verdict(self.plan, self.forecast, self.average_size, self.earlier)


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


@dataclass(frozen=True)
class NoiseFacts:
    """Standard deviations of the noise in a result; None where nothing is known.

    `size` is in records. `centres` holds one for each centre, in units of the widest column; `columns` holds
    the factors for each column, where they differ.
    """

    size: float | None
    centres: list[float] | None
    columns: list[float] | None


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
    #: Of a table: each centre column by column, in the columns' own kinds.
    profiles: list[list[dict[str, Any]]] | None = None
    #: Only of jobs that left k open: what is known of each cluster, and of the whole range.
    level: dict[str, Any] | None = None
    range: dict[str, Any] | None = None
    #: Only where a smaller k was asked for than the job had: which clusters were merged.
    merged: dict[str, Any] | None = None


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
