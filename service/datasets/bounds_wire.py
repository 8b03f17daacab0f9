"""Wire types of working bounds: narrower than the declared ones, typed or released by a job."""

from typing import Annotated, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from service.http.wire import Answer, Body, ColumnName, Moment, example

_ID = "6f1cbb0e-8a1c-4f0e-9d0a-5f0f6f0b1c2d"
_Bound = float | Annotated[str, Field(max_length=40, description="in the notation of ISO 8601")]
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
