"""Routes of public rows: attach, detach."""

from contextlib import closing
from typing import Annotated

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from core.data import Dense, PublicRows, read_public_rows
from core.data.public_rows import MOST_PUBLIC_ROWS
from core.errors import InvalidRequest as Refused
from service.datasets import access, lifecycle, view
from service.datasets.ingest.chunks import decode_payload
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.spool import Spool
from service.datasets.public_rows import attached
from service.datasets.reading import dialect_of
from service.datasets.routes import FILE, DatasetName, receive
from service.datasets.wire import DatasetFacts
from service.errors import BadFormat, InvalidRequest
from service.http.context import Context, Services
from service.http.json_limits import StrictRoute
from service.http.limits import Pace
from service.http.problems import answers
from service.http.route_limits import RouteLimits, limited
from service.operations.settings import Settings
from service.operations.tables import Dataset
from service.people.authentication import Caller, Curator

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=StrictRoute)
#: Bytes of a file; public rows are few.
_MOST_BYTES = 128 << 20


def _longest_file(settings: Settings) -> int:
    return min(settings.max_upload_bytes, _MOST_BYTES)


@router.put(
    "/public-rows",
    responses=answers("not-sealed", "retired", "bad-format", "bad-rows", "too-large"),
    openapi_extra=FILE,
)
@limited(RouteLimits(longest_body=_longest_file, streams_body=True))
async def put_public_rows(
    request: Request,
    name: DatasetName,
    caller: Curator,
    context: Services,
    public: Annotated[
        bool,
        Query(description="confirm that the rows are public, and of none of the people in the dataset"),
    ] = False,
) -> DatasetFacts:
    """Attach public rows of the same kind as the dataset's, for jobs to learn from, in any format of rows.

    The guarantee does not cover these rows. Jobs that are planned from now on use them where that helps,
    after a charged check that records look like them; earlier jobs keep what they were planned with.
    """
    if not public:
        raise InvalidRequest(
            "confirm with public=true that these rows are public, and of none of the people in the dataset: "
            "the guarantee does not cover them"
        )
    dataset = await run_in_threadpool(_find, context, name, caller)
    settings = context.settings
    with Spool(settings.spool_directory, _longest_file(settings)) as spool:
        await receive(request, spool, Pace(settings))
        content_type = request.headers.get("content-type", "")
        expected = Expected(access.domain_of(dataset), dialect=dialect_of(dataset.reading))
        upload = Upload(spool, content_type, expected, settings)
        rows = await to_thread.run_sync(_read, upload, limiter=context.uploads)
    return await run_in_threadpool(_put, context, caller, name, rows)


@router.delete("/public-rows", status_code=204, responses=answers("not-sealed", "retired"))
def delete_public_rows(name: DatasetName, caller: Curator, context: Services) -> None:
    """Detach the public rows: jobs that are planned from now on do without."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        attached.remove(session, dataset, actor=caller.name, at=context.clock.now())


def _find(context: Context, name: str, caller: Caller) -> Dataset:
    with context.database.read() as session:
        dataset = access.find(session, name, caller).dataset
    lifecycle.require_sealed(dataset)
    if not isinstance(access.domain_of(dataset), Dense):
        raise InvalidRequest(f"{dataset.name} has no dense columns of numbers: jobs learn from no others")
    return dataset


def _read(upload: Upload) -> PublicRows:
    """Read a file as any upload, clipped to the declared bounds, and check its rows."""
    domain = upload.expected.domain
    assert isinstance(domain, Dense)
    with closing(encode(upload)) as encoded:
        if encoded.chunk_file.rows > MOST_PUBLIC_ROWS:
            raise BadFormat(f"public rows: at most {MOST_PUBLIC_ROWS} rows are possible")
        pieces = [decode_payload("dense", chunk.payload, domain.dimension) for chunk in encoded.chunks()]
    try:
        return read_public_rows(domain, domain.decode(np.concatenate([np.asarray(each) for each in pieces])))
    except Refused as refusal:
        raise BadFormat(str(refusal)) from refusal


def _put(context: Context, caller: Caller, name: str, rows: PublicRows) -> DatasetFacts:
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        attached.put(session, dataset, rows, actor=caller.name, at=context.clock.now())
        return DatasetFacts.model_validate(view.facts(session, access.Right(caller, dataset)))
