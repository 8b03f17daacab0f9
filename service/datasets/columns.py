"""Wire types of the columns of a table: what a curator says about each before a row is read."""

from typing import Annotated, Any, Literal, Self

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer, model_validator
from pydantic_core import PydanticCustomError

from service.http.wire import VISIBLE_PATTERN, Answer, Body, ColumnName, Moment, example

_Level = Annotated[str, Field(min_length=1, max_length=128, pattern=VISIBLE_PATTERN)]
_Moment = Annotated[str, Field(max_length=40, description="in the notation of ISO 8601")]
_AGE = {"name": "age", "kind": "number", "low": 0, "high": 110, "whole": True}
_REGION = {"name": "region", "kind": "category", "levels": ["north", "south", "other"], "other": "other"}
_VISITED = {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31", "order": "dmy"}
_SMOKER = {"name": "smoker", "kind": "boolean", "missing": "drop"}


#: Facts of a column that a look at rows may suggest.
FromRows = Literal[
    "kind", "role", "levels", "low", "high", "whole", "log", "missing", "fill", "order"
]  # fmt: skip


class _Column(Body):
    """Facts that every column has."""

    name: ColumnName
    role: Literal["cluster", "keep", "id", "ignore"] = Field(
        default="cluster",
        description="`cluster`: it counts in distances; `keep`: it is stored for later questions; `id`: it "
        "tells people apart, and is not stored; `ignore`: it is left out",
    )
    weight: float = Field(default=1.0, description="how far apart its ends, or two of its levels, are")
    missing: Literal["refuse", "drop", "fill", "level", "keep"] | None = Field(
        default=None,
        description="what a missing value does: refuse the file, leave the row out, become `fill`, become a "
        'level of its own ("missing", categories only), or stay missing (columns kept for questions). '
        "Default: `keep` for those, `refuse` for the others",
    )

    confirmed_from_rows: list[FromRows] | None = Field(
        default=None,
        max_length=10,
        description="facts of this column that were read off rows, each of which you confirm to be public; "
        "everybody with a grant sees which",
    )

    @model_serializer(mode="wrap")
    def _without_empty(self, serialise: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in serialise(self).items() if value is not None}


class NumberColumn(_Column, json_schema_extra=example(_AGE)):
    """Numbers between bounds; values outside are moved to them."""

    kind: Literal["number"]
    low: float
    high: float
    whole: bool = Field(default=False, description="counts: other numbers are unreadable")
    log: bool = Field(default=False, description="ratios matter, not differences; centres: geometric means")
    offset: float = Field(default=0.0, description="with `log`, where zeros occur: added to each value")
    fill: float | None = None


class BooleanColumn(_Column, json_schema_extra=example(_SMOKER)):
    """Yes or no: true and false, yes and no, 1 and 0."""

    kind: Literal["boolean"]
    fill: bool | None = None


class CategoryColumn(_Column, json_schema_extra=example(_REGION)):
    """One of some public levels."""

    kind: Literal["category"]
    levels: list[_Level] = Field(min_length=1, max_length=256)
    other: _Level | None = Field(default=None, description="the level that all other values become")
    fill: _Level | None = None


class _MomentColumn(_Column):
    low: _Moment
    high: _Moment
    order: Literal["ymd", "dmy", "mdy"] | None = Field(
        default=None, description="order of year, month and day in the file. Default: `ymd`"
    )
    fill: _Moment | None = None


class DateColumn(_MomentColumn, json_schema_extra=example(_VISITED)):
    """Dates between bounds."""

    kind: Literal["date"]


class DateTimeColumn(_MomentColumn):
    """Moments between bounds, to the second; in UTC where no time zone is given."""

    kind: Literal["datetime"]


class TextColumn(_Column):
    """Any text: an id, or a column that is left out."""

    kind: Literal["text"]
    role: Literal["id", "ignore"] = "ignore"


TableColumn = Annotated[
    NumberColumn | BooleanColumn | CategoryColumn | DateColumn | DateTimeColumn | TextColumn,
    Field(discriminator="kind"),
]
TableColumns = Annotated[list[TableColumn], Field(min_length=1, max_length=1000)]
#: Columns of a table, for examples of requests.
EXAMPLE = [{"name": "patient", "kind": "text", "role": "id"}, _AGE, _REGION, _VISITED, _SMOKER]


_ID = "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d"
_Bound = float | _Moment
_BY_JOB = {"column": "cost", "job": _ID}
_TYPED = {"column": "age", "low": 18, "high": 90}


class WorkingColumnBody(Body, json_schema_extra=example(_TYPED)):
    """Working bounds of one column: typed, or those that a finished job released."""

    column: ColumnName
    low: _Bound | None = None
    high: _Bound | None = None
    job: str | None = Field(
        default=None,
        pattern="^[0-9a-f-]{36}$",
        description="a finished `quantiles` of this dataset, whose lowest and highest values become the "
        "bounds, or a `summary`: three spreads around the mean",
    )

    @model_validator(mode="after")
    def _is_typed_or_released(self) -> Self:
        typed = (self.low is not None, self.high is not None)
        if typed not in ((True, True), (False, False)) or any(typed) == (self.job is not None):
            words = f"column {self.column}: give low and high, or the job that released them"
            raise PydanticCustomError("typed_or_released", "{words}", {"words": words})
        return self


class WorkingBoundsBody(Body, json_schema_extra=example({"columns": [_BY_JOB, _TYPED]})):
    """All columns with working bounds; those that are left out have their declared ones."""

    columns: Annotated[list[WorkingColumnBody], Field(min_length=1, max_length=1000)]


class WorkingColumn(Answer):
    """A column with working bounds, and where these come from."""

    column: str
    low: float | str
    high: float | str
    origin: str = Field(description="`released by job ...` or `typed by the curator`")
    job: str | None = Field(description="the job that released them")


class PublicRowSetFacts(
    Answer,
    json_schema_extra=example({"rows": 500, "digest": "5e" * 32, "set_at": "2030-01-01T09:00:00.000Z"}),
):
    """Public rows that jobs may learn from; the guarantee does not cover them."""

    rows: int
    digest: str = Field(description="SHA-256 of the numbers as little-endian doubles, row by row")
    set_at: Moment


class WorkingBounds(
    Answer,
    json_schema_extra=example(
        {
            "columns": [{**_TYPED, "origin": "typed by the curator", "job": None}],
            "digest": "5e" * 32,
            "set_at": "2030-01-01T09:00:00.000Z",
        }
    ),
):
    """Bounds narrower than the declared ones, in which new jobs are planned; rows are clipped to them."""

    columns: list[WorkingColumn]
    digest: str = Field(description="of the domain with these bounds, as plans and receipts name it")
    set_at: Moment
