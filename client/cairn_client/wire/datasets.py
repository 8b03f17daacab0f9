"""Responses about datasets, uploads, grants, ledgers and sites."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from cairn_client.wire.amounts import Account, Amount


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
    #: Rows left out because a column declares this of its missing values; they are among `bad_rows`.
    gap_rows: int = 0


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
        """The body of a request that sets these bounds again."""
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
class PublicRowSetFacts:
    """Public rows that new jobs may learn from."""

    rows: int
    digest: str
    set_at: datetime


@dataclass(frozen=True)
class GrantTerms:
    """What a grant is for, and until when."""

    purpose: str
    permit: str
    ends_at: datetime | None
    keeps_results: bool


@dataclass(frozen=True)
class CorrectionFacts:
    """The draft of a correction."""

    version: int
    upload: UploadReport | None


@dataclass(frozen=True)
class PopulationOfDataset:
    """The population that a dataset is in, and what is left of it for all its datasets together."""

    name: str
    accountant: str
    declared: Amount
    total: Amount
    remaining: Amount
    #: Declared in place of an id column: nobody has two rows, or two in one period.
    one_row_per_person: bool


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
    #: What each of these columns holds.
    table_in_words: list[str] | None = None
    #: How delimited text is read; `format` 1: by inference, in an earlier version.
    reading: dict[str, Any] = field(default_factory=dict)
    #: Kinds of jobs that your grant allows.
    kinds: list[str] | None = None
    grant: GrantTerms | None = None
    #: Narrower bounds that new jobs use.
    working_bounds: WorkingBoundsFacts | None = None
    #: Whether results appear at planned times.
    planned_release: bool = True
    #: The older name of `planned_release`.
    release_ticks: bool = True
    #: Public rows that new jobs may learn from.
    public_rows: PublicRowSetFacts | None = None
    #: The unit of privacy of a dataset with periods: `record`, `person-in-period` or `person`.
    unit: str | None = None
    #: Of its rows, one more after each correction; None: its periods have versions.
    version: int | None = 1
    corrected_at: datetime | None = None
    #: For the owner: the draft of the next version.
    correction: CorrectionFacts | None = None
    #: With the unit `person-in-period`: what somebody with rows in all periods has lost so far.
    lost_in_all: Amount | None = None
    #: The people whose rows these are, if they may be in other datasets too.
    population: PopulationOfDataset | None = None


@dataclass(frozen=True)
class MemberFacts:
    """A dataset of a population, and what its jobs have cost one person, in the population's currency."""

    name: str
    owner: str
    state: str
    joined_at: datetime
    one_row_per_person: bool
    spent: Amount
    reserved: Amount


@dataclass(frozen=True)
class OtherMembers:
    """The datasets of other curators in a population, together."""

    datasets: int
    spent: Amount
    reserved: Amount


@dataclass(frozen=True)
class PopulationFacts:
    """A population: its balance, and what each of its datasets has used; those of others have no names."""

    name: str
    owner: str
    description: str
    accountant: str
    budget: Account
    #: Other curators who may let their datasets join.
    curators: list[str]
    created_at: datetime
    datasets: list[MemberFacts]
    others: OtherMembers | None = None


@dataclass(frozen=True)
class PeriodFacts:
    """A period of a dataset, what is left of it, and for its owner the report on its rows."""

    label: str
    version: int
    state: str
    size: int
    created_at: datetime
    sealed_at: datetime | None
    #: None: all periods share the dataset's budget.
    budget: Account | None
    cap: Account | None = None
    upload: UploadReport | None = None
    #: For the owner: the draft of the next version.
    correction: CorrectionFacts | None = None


@dataclass(frozen=True)
class PreviewFacts:
    """The first lines of a file, and what they suggest about its dataset."""

    #: "csv", "excel", "parquet" or "arrow".
    format: str
    #: How delimited text is read, with `from_rows`: the facts that rows decided.
    reading: dict[str, Any]
    #: Empty if the first line looks like data.
    names: list[str]
    rows: list[list[str]]
    #: Columns as `table` takes them, each with `from_rows`.
    columns: list[dict[str, Any]]
    #: Why no names were taken from the first line.
    problem: str | None = None
    #: What to mend in the file before it is uploaded, in sentences.
    remarks: list[str] = field(default_factory=list)
    #: Whether a person has several rows, so that `rows_per_person` must be declared.
    repeated_id: bool = False


@dataclass(frozen=True)
class GrantFacts:
    """An analyst's permission to use a dataset, with its cap."""

    analyst: str
    cap: Account
    created_at: datetime
    revoked_at: datetime | None = None
    #: Kinds of jobs that it allows.
    kinds: list[str] = field(default_factory=lambda: ["cluster"])
    #: What the data may be used for, by which permit, and until when; then it is as if withdrawn.
    purpose: str = ""
    permit: str = ""
    ends_at: datetime | None = None
    #: Whether results can be read after the end.
    keeps_results: bool = True


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
    #: The periods whose accounts it changes; None: the dataset as a whole, or every cap of a grant.
    periods: list[str] | None = None
    #: What the grant is for, and by which permit, as it says now.
    purpose: str | None = None
    permit: str | None = None
    #: What the dataset's population is charged: the loss of one person.
    of_person: Amount | None = None


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
class ShownGroup:
    """Facts of a dataset that the catalogue shows together, in words."""

    group: str
    title: str
    lines: list[str]


@dataclass(frozen=True)
class CatalogueEntry:
    """A listed dataset: what its owner shows to people without a grant."""

    name: str
    title: str
    since: datetime
    groups: list[ShownGroup]
    #: Whether it is among `client.datasets()`, too.
    accessible: bool


@dataclass(frozen=True)
class ListingFacts:
    """What the catalogue shows of a dataset (`shows`), and every group of facts that it could show."""

    title: str
    shows: list[str]
    #: None: it is not listed.
    since: datetime | None
    groups: list[ShownGroup]
