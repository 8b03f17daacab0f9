"""The route that shows a curator the first lines of a file before its dataset is described."""

from functools import partial
from typing import Annotated, Any, Literal

from anyio import to_thread
from fastapi import APIRouter, Query, Request
from pydantic import Field

from service.datasets.ingest.preview import MOST_ROWS, preview
from service.datasets.ingest.spool import Spool
from service.datasets.routes import FILE, UPLOAD, receive
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.limits import Pace
from service.http.problems import answers
from service.http.route_limits import limited
from service.http.wire import Answer, example
from service.people.authentication import Curator

router = APIRouter(prefix="/v1/previews", tags=["datasets"], route_class=StrictRoute)
_FROM_ROWS = "what rows decided; it becomes public with the dataset, so confirm it or replace it"
_READING = {
    "encoding": "utf-8",
    "separator": ";",
    "decimal": ",",
    "thousands": "",
    "quoted_lines": False,
    "from_rows": ["decimal"],
}
_AGE: dict[str, Any] = {"name": "age", "kind": "number", "role": "cluster", "low": 0, "high": 120}


class PreviewReading(Answer, json_schema_extra=example(_READING)):
    """How a text file seems to be written, as `reading` of `POST /v1/datasets` takes it."""

    encoding: str
    separator: str = Field(description="by the first line alone")
    decimal: str
    thousands: str
    quoted_lines: bool
    from_rows: list[str] = Field(description=_FROM_ROWS)


class PreviewFacts(
    Answer,
    json_schema_extra=example(
        {
            "format": "csv",
            "reading": _READING,
            "names": ["age"],
            "rows": [["41"], ["67"]],
            "columns": [{**_AGE, "whole": True, "from_rows": ["kind", "role", "whole"]}],
            "problem": None,
            "remarks": [],
            "repeated_id": False,
        }
    ),
):
    """The first lines of a file, and what they suggest about it."""

    format: str = Field(description="`csv`, `excel`, `parquet` or `arrow`")
    reading: PreviewReading
    names: list[str] = Field(description="empty if the first line looks like data: names are public")
    rows: list[list[str]] = Field(description=f"at most {MOST_ROWS}, with long texts cut")
    columns: list[dict[str, Any]] = Field(
        description="columns as `table` of `POST /v1/datasets` takes them, each with `from_rows`: "
        f"{_FROM_ROWS}"
    )
    problem: str | None = Field(description="why no names were taken from the first line")
    remarks: list[str] = Field(description="what to mend in the file before it is uploaded, in sentences")
    repeated_id: bool = Field(description="a person has several rows, so `rows_per_person` must be declared")


@router.post("", responses=answers("bad-format", "too-large"), openapi_extra=FILE)
@limited(UPLOAD)
async def preview_file(
    request: Request,
    caller: Curator,
    context: Services,
    first_line: Annotated[
        Literal["names", "data"], Query(description="what the first line of a text file or a sheet holds")
    ] = "names",
) -> PreviewFacts:
    """Get the first lines of a file and a proposal for its dataset; nothing of it is stored.

    Of a text file the first 256 KiB are enough, and the last line may be cut. Of a spreadsheet the first
    sheet is read.
    """
    settings = context.settings
    with Spool(settings.spool_directory, settings.max_upload_bytes) as spool:
        await receive(request, spool, Pace(settings))
        content_type = request.headers.get("content-type", "")
        read = partial(preview, spool, content_type, settings, named=first_line == "names")
        found = await to_thread.run_sync(read, limiter=context.uploads)
    return PreviewFacts(
        format=found.format,
        reading=PreviewReading(**found.reading.to_json()),
        names=found.names,
        rows=found.rows,
        columns=[each.to_json() for each in found.columns],
        problem=found.problem or None,
        remarks=list(found.remarks),
        repeated_id=found.repeated_id,
    )
