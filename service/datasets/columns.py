"""Wire types of the columns of a table: what a curator says about each before a row is read."""

from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from service.http.wire import VISIBLE_PATTERN, Body, ColumnName, example

_Level = Annotated[str, Field(min_length=1, max_length=128, pattern=VISIBLE_PATTERN)]
_Moment = Annotated[str, Field(max_length=40, description="in the notation of ISO 8601")]
_AGE = {"name": "age", "kind": "number", "low": 0, "high": 110, "whole": True}
_REGION = {"name": "region", "kind": "category", "levels": ["north", "south", "other"], "other": "other"}
_VISITED = {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31", "order": "dmy"}
_SMOKER = {"name": "smoker", "kind": "boolean", "missing": "drop"}


#: Facts of a column that a look at rows may suggest.
FromRows = Literal["levels", "low", "high", "missing", "fill"]


class _Column(Body):
    """What every column has."""

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
        default=None, description="order of year, month and day in the file. Default: as its first lines show"
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
