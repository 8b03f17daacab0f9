"""Routes of site sets."""

import io
from operator import attrgetter
from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Path, Query, Request
from starlette.concurrency import run_in_threadpool

from service.datasets import access
from service.datasets.ingest.readers.batch import reading
from service.datasets.routes import DatasetName
from service.datasets.sites import site_sets
from service.datasets.sites.wire import SiteKind, SiteSetFacts, SiteSetList
from service.errors import BadFormat
from service.http.context import Context, Services
from service.http.documentation import file_body
from service.http.json_limits import StrictRoute
from service.http.problems import answers
from service.http.route_limits import RouteLimits, limited
from service.http.wire import NAME_PATTERN
from service.people.authentication import Caller, Curator, Reader

router = APIRouter(prefix="/v1/datasets/{name}/sites", tags=["sites"], route_class=StrictRoute)
_EXAMPLES = {
    "coordinates": {
        "summary": "kind=coordinates: a value for each column of the dataset",
        "value": "0.5,0.5\n3.5,1.5\n",
    },
    "great-circle": {
        "summary": "kind=great-circle: latitude and longitude in degrees",
        "value": "52.52,13.405\n48.137,11.575\n",
    },
    "distances": {
        "summary": "kind=distances: a square matrix, for rows that name sites",
        "value": "0,2,5\n2,0,4\n5,4,0\n",
    },
}
_FILE = file_body({"examples": _EXAMPLES}, "application/x-npy")


@router.put("/{sites_name}", responses=answers("bad-format", "retired"), openapi_extra=_FILE)
@limited(RouteLimits(longest_body=attrgetter("max_sites_bytes")))
async def put_sites(
    request: Request,
    name: DatasetName,
    sites_name: Annotated[str, Path(pattern=NAME_PATTERN, description="name of the site set")],
    caller: Curator,
    context: Services,
    kind: Annotated[
        SiteKind,
        Query(
            description="what the numbers are: `coordinates` in the dataset's columns, measured as its rows "
            "are; `great-circle`, latitudes and longitudes in degrees; `distances`, a matrix"
        ),
    ] = "coordinates",
) -> SiteSetFacts:
    """Store public sites, one per line (CSV without header, or NPY)."""
    body = await request.body()
    return await run_in_threadpool(_put, context, caller, name, sites_name, kind, body)


@router.get("", responses=answers())
def list_sites(name: DatasetName, caller: Reader, context: Services) -> SiteSetList:
    """List the site sets of a dataset."""
    with context.database.read() as session:
        dataset = access.find(session, name, caller).dataset
        items = site_sets.sets_of(session, dataset)
    return SiteSetList.model_validate({"items": items}, from_attributes=True)


def _put(
    context: Context, caller: Caller, name: str, sites_name: str, kind: SiteKind, body: bytes
) -> SiteSetFacts:
    values = _parse(body)
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        made = site_sets.put(
            session, dataset, sites_name, kind, values, actor=caller.name, at=context.clock.now()
        )
        return SiteSetFacts.model_validate(made, from_attributes=True)


def _parse(body: bytes) -> Any:
    with reading("sites must be lines of numbers separated by commas, or an NPY array"):
        if body.startswith(b"\x93NUMPY"):
            values = np.load(io.BytesIO(body), allow_pickle=False)
        else:
            values = _lines(body.decode("utf-8-sig"))
        array = np.asarray(values, dtype=np.float64)
    if array.ndim != 2 or not array.size:
        raise BadFormat("sites must be a table: one site per line, the same number of values on each")
    return array


def _lines(text: str) -> list[list[float]]:
    rows: list[list[float]] = []
    for number, line in enumerate(text.strip().splitlines(), 1):
        try:
            rows.append([float(cell) for cell in line.split(",")])
        except ValueError as error:
            raise BadFormat(
                f"line {number} of the sites holds something other than numbers; write one site per line, "
                "numbers separated by commas, and no header"
            ) from error
        if len(rows[-1]) != len(rows[0]):
            raise BadFormat(
                f"line {number} of the sites has {len(rows[-1])} values and the first line {len(rows[0])}; "
                "give each site the same number of values"
            )
    return rows
