"""Wire types of datasets, uploads, grants, budgets, site sets and the ledger."""

from typing import Annotated, Any, Literal

from pydantic import AliasChoices, AwareDatetime, Field, SerializerFunctionWrapHandler, model_serializer

from service.datasets.bounds_wire import WorkingBounds
from service.datasets.columns import TableColumns
from service.datasets.public_rows.wire import PublicRowSetFacts
from service.datasets.reading import ReadingBody, ReadingFacts
from service.http.wire import (
    NAME_PATTERN,
    VISIBLE_PATTERN,
    Amount,
    Answer,
    Body,
    BudgetBody,
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

#: Clients of earlier versions send the second name.
_PLANNED_RELEASE = AliasChoices("planned_release", "release_ticks")
#: Of long lists the first wrong entry is named: to name them all takes half a second.
_ColumnNames = Annotated[list[ColumnName], Field(min_length=1, max_length=100_000, fail_fast=True), Plain]
_NUMBERS = Annotated[list[float], Field(max_length=1_000_000, fail_fast=True)]
_ZERO = {"epsilon": "0", "delta": "0"}
_TOTAL = {"epsilon": "3", "delta": "0.000001"}
#: An example of a balance.
BALANCE = {"declared": _TOTAL, "total": _TOTAL, "spent": _ZERO, "reserved": _ZERO, "remaining": _TOTAL}
_BOUNDS = {"box": {"low": [0.0, 0.0], "high": [10.0, 4.0]}}
_DATASET = {
    "name": "flowers",
    "description": "petal lengths and widths",
    "state": "sealed",
    "kind": "dense",
    "columns": ["petal_length", "petal_width"],
    "dimension": 2,
    "bounds": _BOUNDS,
    "table": None,
    "table_in_words": None,
    "reading": {"format": 2, "separator": ",", "decimal": ".", "confirmed_from_rows": []},
    "working_bounds": None,
    "public_rows": None,
    "scaling": "unit",
    "size": 10000,
    "rows_per_person": 1,
    "id_column": None,
    "privacy_unit": "row",
    "unit": None,
    "version": 1,
    "corrected_at": None,
    "correction": None,
    "lost_in_all": None,
    "population": None,
    "accountant": "sum",
    "planned_release": True,
    "release_ticks": True,
    "least_epsilon": "0.001",
    "jobs_per_hour": 1000,
    "overruns": None,
    "size_warning": None,
    "owner": "curator",
    "created_at": "2030-01-01T09:00:00.000Z",
    "revised": [],
    "warnings": [],
    "budget": BALANCE,
    "cap": BALANCE,
    "kinds": ["cluster"],
    "grant": None,
    "upload": None,
}


#: The unit of privacy of a dataset with periods.
PrivacyUnit = Literal["record", "person-in-period", "person"]


class Box(Body):
    """Bounds of every column, low and high: one number for all columns, or one per column."""

    low: float | _NUMBERS
    high: float | _NUMBERS


class Ball(Body):
    """Every row within a radius of a centre (default: the origin)."""

    radius: float
    centre: float | _NUMBERS | None = None


class SparseBall(Body):
    """Rows of a sparse matrix within a radius of the origin."""

    radius: float


class IdCount(Body):
    """Rows that name one of `count` public sites."""

    count: int


class Bounds(Body):
    """Exactly one kind of bounds."""

    box: Box | None = None
    ball: Ball | None = None
    sparse: SparseBall | None = None
    ids: IdCount | None = None


_NEW = {
    "name": "flowers",
    "description": "petal lengths and widths",
    "columns": ["petal_length", "petal_width"],
    "bounds": _BOUNDS,
    "size": 10000,
    "budget": _TOTAL,
}


class DatasetBody(Body, json_schema_extra=example(_NEW)):
    """Public facts of a new dataset. Nothing here may be taken from the rows themselves."""

    name: Name
    description: Words = ""
    columns: _ColumnNames | None = None
    dimension: int | None = Field(default=None, ge=1)
    bounds: Bounds | None = Field(default=None, description="of rows of numbers; every dataset but a table")
    table: Annotated[TableColumns, Plain] | None = Field(
        default=None,
        description="columns of different kinds, in place of `columns`, `dimension`, `bounds`, `id_column`",
    )
    scaling: Literal["unit", "none"] = "unit"
    size: int = Field(description="public order of magnitude of the number of records", ge=1)
    rows_per_person: int = Field(default=1, ge=1)
    id_column: Annotated[ColumnName, Plain] | None = None
    reading: ReadingBody | None = Field(
        default=None, description="of delimited text. Default: UTF-8, commas, decimal points, a header line"
    )
    budget: BudgetBody
    accountant: AccountantName = "sum"
    planned_release: bool = Field(
        default=True,
        validation_alias=_PLANNED_RELEASE,
        description="whether results appear at planned times, which hide how long a job took",
    )
    least_epsilon: Amount = Field(default="0.001", description="least epsilon of a job; 0: any")
    jobs_per_hour: int = Field(
        default=1000, ge=1, le=1_000_000_000, description="most jobs of one analyst in an hour"
    )
    unit: PrivacyUnit | None = Field(
        default=None,
        description="of a dataset with periods: whom a budget protects. With `record` and `person-in-period` "
        "each period has the budget; with `person` all periods share it. null: a dataset without periods",
    )


class AmountFacts(Answer):
    """An amount in the dataset's currency."""

    epsilon: str = Field(description="under `zcdp`: what rho is equivalent to")
    delta: str
    rho: str | None = Field(default=None, description="under `zcdp` only")

    @model_serializer(mode="wrap")
    def _without_empty_rho(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialise(self).items() if value is not None}


class BudgetFacts(Answer, json_schema_extra=example(BALANCE)):
    """Balance of an account. Under `zcdp` amounts are rho and the delta kept for approximate parts."""

    declared: AmountFacts
    total: AmountFacts
    spent: AmountFacts
    reserved: AmountFacts
    remaining: AmountFacts


class DraftChanges(Body, json_schema_extra=example({"size": 20000})):
    """Public facts of a draft to be changed; what is left out stays as it is."""

    description: Words | None = None
    columns: _ColumnNames | None = None
    dimension: int | None = Field(default=None, ge=1)
    bounds: Bounds | None = None
    table: Annotated[TableColumns, Plain] | None = Field(
        default=None, description="all columns of the table, changed or not"
    )
    scaling: Literal["unit", "none"] | None = None
    size: int | None = Field(default=None, ge=1)
    rows_per_person: int | None = Field(default=None, ge=1)
    id_column: Annotated[ColumnName, Plain] | None = Field(
        default=None, description="null: one row per person"
    )
    reading: ReadingBody | None = Field(default=None, description="all of it, changed or not")
    planned_release: bool | None = Field(default=None, validation_alias=_PLANNED_RELEASE)


Doubt = Literal["left-out", "clipped", "size"]


class SealBody(Body, json_schema_extra=example({"confirm": ["size"]})):
    """Confirmation that a draft's rows are those that were meant."""

    confirm: list[Doubt] = Field(
        default=[], max_length=10, description="the doubts of the report that you have looked into"
    )
    sha256: str | None = Field(
        default=None,
        pattern="^[0-9a-f]{64}$",
        description="of the file whose report you read: refused if the draft holds other rows",
    )


_UPLOAD = {
    "format": "csv",
    "read_as": "separated by commas, UTF-8, decimal points",
    "rows": 9981,
    "clipped_rows": 12,
    "bad_rows": 1,
    "gap_rows": 0,
    "bad_row_lines": [{"line": 17, "reason": "petal_width is missing"}],
    "columns": [
        {
            "name": "petal_width",
            "missing": 1,
            "unreadable": 0,
            "unknown": 0,
            "below": 0,
            "above": 12,
            "examples": [],
        }
    ],
    "rows_over_limit": 0,
    "ignored_columns": ["species"],
    "bytes": 120044,
    "sha256": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "warnings": [],
    "doubts": [],
}


class ColumnReport(Answer):
    """Values of a column that were missing, unreadable, no declared level, or outside the bounds."""

    name: str
    missing: int
    unreadable: int
    unknown: int = Field(default=0, description="values of a category that are not among its levels")
    below: int
    above: int
    examples: list[str] = Field(
        description="at most three unreadable or unknown values, until the dataset is sealed"
    )


class DoubtReport(Answer):
    """A reason to look again before the rows are sealed, and the word that confirms it."""

    confirm: Doubt
    detail: str


class UploadReport(Answer, json_schema_extra=example(_UPLOAD)):
    """Report on the rows of a dataset; for its owner alone."""

    format: str
    read_as: str = Field(default="", description="separator, encoding and decimal sign, as declared")
    rows: int
    clipped_rows: int
    bad_rows: int = Field(description="rows left out, those with declared gaps among them")
    gap_rows: int = Field(
        default=0, description="rows left out because a column declares this of its missing values"
    )
    bad_row_lines: list[dict[str, Any]]
    columns: list[ColumnReport] = Field(default=[], description="those in which something was found")
    rows_over_limit: int
    ignored_columns: list[str]
    bytes: int
    sha256: str
    warnings: list[str]
    doubts: list[DoubtReport] = Field(default=[], description="what sealing these rows must confirm")


class CorrectionFacts(Answer, json_schema_extra=example({"version": 2, "upload": None})):
    """The draft of a correction, for the owner alone."""

    version: int
    upload: UploadReport | None


_TERMS = {
    "purpose": "frailty after surgery",
    "permit": "2030/17",
    "ends_at": "2030-12-31T23:00:00.000Z",
    "keeps_results": True,
}
_TERM_NAMES = {"kinds", *_TERMS}


class GrantTerms(Answer, json_schema_extra=example(_TERMS)):
    """What a grant is for, and until when."""

    purpose: str
    permit: str
    ends_at: Moment | None = Field(description="from then on it is as if withdrawn")
    keeps_results: bool = Field(description="whether results can be read after the end")


class PopulationOfDataset(Answer):
    """The population that a dataset is in, and what is left of it for all its datasets together."""

    name: str
    accountant: AccountantName
    declared: AmountFacts
    total: AmountFacts
    remaining: AmountFacts
    one_row_per_person: bool = Field(
        description="declared in place of an id column: nobody has two rows, or two in one period"
    )


class DatasetFacts(Answer, json_schema_extra=example(_DATASET)):
    """Public facts of a dataset, its budget, the caller's cap, and (to its owner) the upload's report."""

    name: str
    description: str
    state: Literal["draft", "sealed", "retired"]
    kind: Literal["dense", "sparse", "ids", "table"]
    columns: list[str] | None = Field(description="names; of a table, those of the columns that are stored")
    dimension: int
    bounds: dict[str, Any] = Field(description="empty for a table, whose columns have bounds of their own")
    table: TableColumns | None = Field(default=None, description="of a table: all columns, as declared")
    table_in_words: list[str] | None = Field(description="of a table: what each of its columns holds")
    reading: ReadingFacts = Field(description="how delimited text is read, record by record")
    working_bounds: WorkingBounds | None = Field(
        description="narrower bounds that new jobs use; null: the declared ones"
    )
    public_rows: PublicRowSetFacts | None = Field(
        description="public rows that new jobs may learn from; null: none are attached"
    )
    scaling: str | None
    size: int
    rows_per_person: int
    id_column: str | None
    privacy_unit: Literal["row", "person", "person in a period"]
    unit: PrivacyUnit | None = Field(description="of a dataset with periods; null: it has none")
    version: int | None = Field(
        description="of its rows, one more after each correction; null: its periods have versions"
    )
    corrected_at: Moment | None = Field(description="when its rows were last corrected; null: never")
    correction: CorrectionFacts | None = Field(
        description="to the owner: the draft of the next version, whose rows will replace these"
    )
    lost_in_all: AmountFacts | None = Field(
        description="with the unit `person-in-period`: what somebody with rows in all periods has lost so far"
    )
    population: PopulationOfDataset | None = Field(
        description="the people whose rows these are, if they may be in other datasets too"
    )
    accountant: AccountantName
    planned_release: bool
    release_ticks: bool = Field(description="the older name of `planned_release`", deprecated=True)
    least_epsilon: str
    jobs_per_hour: int
    overruns: int | None = Field(
        description="to the owner: jobs that took longer than planned, so that their run time showed, "
        "or that a limit on time or memory ended"
    )
    size_warning: str | None = Field(description="to the owner: the declared size is too small for the rows")
    owner: str
    created_at: Moment
    revised: list[str] = Field(description="facts that were changed after a look at the rows")
    warnings: list[str]
    budget: BudgetFacts = Field(
        description="where each period has a budget: that of the period with the least left"
    )
    cap: BudgetFacts | None
    kinds: list[JobKind] | None = Field(description="to an analyst: kinds of jobs that the grant allows")
    grant: GrantTerms | None = Field(description="to an analyst: what the grant is for, and until when")
    upload: UploadReport | None


class DatasetPage(Page[DatasetFacts], json_schema_extra=page_example(_DATASET)):
    """A page of datasets, and the cursor of the next."""


_GRANT = {
    "analyst": "ada",
    "cap": BALANCE,
    "kinds": ["cluster", "profile"],
    "created_at": "2030-01-01T09:00:00.000Z",
    "revoked_at": None,
    **_TERMS,
}


class TermsBody(Body):
    """What a grant allows other than its cap, what it is for, and until when."""

    kinds: Annotated[list[JobKind], Field(min_length=1, max_length=20)] | None = Field(
        default=None, description="default: as before; clusterings alone in a new grant"
    )
    purpose: Words | None = Field(default=None, description="what the data may be used for")
    permit: Annotated[str, Plain] | None = Field(
        default=None, max_length=128, pattern=VISIBLE_PATTERN, description="its number"
    )
    ends_at: Annotated[AwareDatetime, Field(strict=False)] | None = Field(
        default=None, description="with a time zone; from then on it is as if withdrawn. null: no end"
    )
    keeps_results: bool | None = Field(
        default=None, description="whether results can be read after its end; default: as before, or true"
    )

    def terms(self) -> dict[str, Any]:
        """Return what is to change, other than the cap; an end can be taken away."""
        named = {name: getattr(self, name) for name in _TERM_NAMES & self.model_fields_set}
        return {name: value for name, value in named.items() if value is not None or name == "ends_at"}


class GrantBody(
    TermsBody, BudgetBody, json_schema_extra=example({**_TOTAL, "kinds": ["cluster", "profile"]})
):
    """A cap, and the kinds of jobs that it may be spent on."""


class WantedBody(TermsBody):
    """Amounts and terms that are asked for; what is left out stays as it is."""

    epsilon: Amount | None = None
    delta: Amount | None = None


class GrantFacts(Answer, json_schema_extra=example(_GRANT)):
    """An analyst's grant."""

    analyst: str
    cap: BudgetFacts
    kinds: list[JobKind]
    created_at: Moment
    revoked_at: Moment | None
    purpose: str
    permit: str
    ends_at: Moment | None
    keeps_results: bool


class GrantPage(Page[GrantFacts], json_schema_extra=page_example(_GRANT)):
    """A page of grants, and the cursor of the next."""


_ROW = {
    "sequence": 3,
    "kind": "reserve",
    "at": "2030-01-01T09:00:00.000Z",
    "analyst": "ada",
    "job": "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d",
    "periods": None,
    "amount": {"epsilon": "0.5", "delta": "0"},
    "of_person": None,
    "actor": "ada",
    "previous": "0" * 64,
    "hash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "purpose": "frailty after surgery",
    "permit": "2030/17",
}


class LedgerRow(Answer, json_schema_extra=example(_ROW)):
    """A ledger entry; an analyst sees their own, without the chain's hashes."""

    sequence: int
    kind: Literal["open", "raise", "cap", "reserve", "charge", "void", "join"]
    at: Moment
    analyst: str | None
    job: str | None
    periods: list[str] | None = Field(
        description="periods whose accounts it changes; null: the whole dataset, or every cap of a grant"
    )
    amount: AmountFacts
    of_person: AmountFacts | None = Field(
        description="what the dataset's population is charged: the loss of one person; null: nothing"
    )
    actor: str | None
    previous: str | None
    hash: str | None
    purpose: str | None = Field(description="what the grant is for, as it says now")
    permit: str | None = Field(description="the number of the grant's permit, as it says now")


class LedgerPage(Page[LedgerRow], json_schema_extra=page_example(_ROW)):
    """A page of entries in order, and the cursor of the next."""


_VERIFIED = {"ok": True, "entries": 42, "since": 40, "head": "5e" * 32, "faults": []}


class VerifyReport(Answer, json_schema_extra=example(_VERIFIED)):
    """Result of a verification of the ledger."""

    ok: bool
    entries: int
    since: int = Field(description="entries up to this one were verified before, and signed")
    head: str
    faults: list[str]


class OwnerBody(Body, json_schema_extra=example({"curator": "carla"})):
    """The curator who becomes the owner of a dataset."""

    curator: str = Field(pattern=NAME_PATTERN, description="name of the curator")


class Retirement(Answer, json_schema_extra=example({"state": "retired", "voided_jobs": 1})):
    """Result of retiring a dataset."""

    state: Literal["retired"]
    voided_jobs: int
