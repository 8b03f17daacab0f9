"""Routes of what jobs have released: results, made-up rows, receipts and transcripts.

No request converts in this process more than a little: a long conversion is made by the helper process. What
is long waits on disk for callers who read slowly.
"""

import tempfile
from collections.abc import AsyncIterator
from functools import partial
from typing import IO, Annotated, Any

from anyio import to_thread
from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.requests import ClientDisconnect

from core.plan import CLUSTER
from service.errors import InvalidRequest, JobFailed, NotFound
from service.http.context import Context, Services
from service.http.documentation import BINARY
from service.http.json_limits import StrictRoute
from service.http.problems import answers
from service.http.route_limits import RouteLimits, use_allowance
from service.jobs import release
from service.jobs.results import stored, transcripts
from service.jobs.results.axes import axes
from service.jobs.results.conversions import (
    Conversion,
    DifferencesFile,
    Format,
    ResultFile,
    SampleFile,
    convert,
)
from service.jobs.results.wire import (
    AxesFacts,
    DifferencesFacts,
    FindingsFacts,
    Receipt,
    ResultFacts,
    SampleFacts,
)
from service.jobs.routes import JobId
from service.operations.helper import CallerGone
from service.operations.states import JobState
from service.operations.tables import Job
from service.people.access_events import recorded
from service.people.authentication import Caller, Reader, User

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
#: Bytes of a file that are in memory at once when it is sent; a shorter one is not written to disk.
_PIECE = 256 << 10
#: Stored bytes that are converted in this process: it takes a few milliseconds.
_SHORT = 64 << 10


@router.get(
    "/jobs/{job_id}/result",
    responses={
        **answers("job-failed"),
        200: {
            "content": {
                "text/csv": {
                    "schema": {"type": "string"},
                    "example": "cluster,petal_length,petal_width,size,size_noise\n",
                },
                Format.NPY: BINARY,
            }
        },
    },
    response_model=ResultFacts | FindingsFacts,
    openapi_extra=recorded("read-result", "k"),
)
async def get_result(
    job_id: JobId,
    caller: User,
    context: Services,
    request: Request,
    k: Annotated[
        int | None,
        Query(
            ge=1,
            le=10_000,
            description="of a job that left k open, default: the suggested k; of a job of a single k, a "
            "smaller one, for which clusters are merged",
        ),
    ] = None,
    accept: Annotated[
        str, Header(description="`application/json`, `text/csv` or `application/x-npy`", max_length=500)
    ] = "application/json",
) -> Any:
    """Get the centres in the data's units with noisy sizes, or the findings of a question.

    A job that left k open answers for the suggested k, or for the `k` of the query. Of other jobs of k-means
    a smaller `k` merges clusters, by their released centres and sizes.
    """
    job = await to_thread.run_sync(_released, job_id, caller, context)
    file = ResultFile(job.id, Format.accepted(accept), k)
    if job.kind == CLUSTER and k is None and file.format is Format.JSON:
        return await _sent(await _as_stored(job.id, context), file.format, context)
    return await _converted(file, request, caller, context)


async def _as_stored(job_id: str, context: Context) -> bytes:
    """Return a result as it was stored, to the letter; of several long ones, one after the other.

    PostgreSQL reads all of a long text to return a part of it, so it is read once.
    """

    def read() -> bytes:
        with context.database.read() as session:
            return stored.text(session, job_id).encode()

    return await to_thread.run_sync(read, limiter=context.downloads)


async def _converted(file: Conversion, request: Request, caller: Caller, context: Context) -> Response:
    """Send a file that is made now: by the helper, if it is made of much, whose length is paid for first."""
    content = await to_thread.run_sync(_if_short, file, context)
    if isinstance(content, int):
        use_allowance(request, content / RouteLimits.sent_per_request)
        work = partial(convert, context.settings.database_address(), file)
        try:
            await request.body()  # else its end would be taken for a sign of life
            content = await context.helper.run(caller.id, request.is_disconnected, work)
        except CallerGone:
            raise ClientDisconnect from None
    return await _sent(content, file.format, context)


def _if_short(file: Conversion, context: Context) -> bytes | int:
    """Return a file that is made of little, or the bytes that it is made of."""
    with context.database.read() as session:
        size = file.stored_bytes(session)
        return file.content(session) if size <= _SHORT else size


async def _sent(content: bytes, media_type: str, context: Context) -> Response:
    """Send a file, a long one from the disk, so that slow readers keep no memory."""
    if len(content) <= _PIECE:
        return Response(content, media_type=media_type)
    length = {"Content-Length": str(len(content))}
    kept = await to_thread.run_sync(_on_disk, content, context)
    return StreamingResponse(_in_pieces(kept), media_type=media_type, headers=length)


def _on_disk(content: bytes, context: Context) -> IO[bytes]:
    """Write a file without a name, which is gone when it is closed."""
    kept: IO[bytes] = tempfile.TemporaryFile(dir=context.settings.spool_directory)  # noqa: SIM115 by _in_pieces
    kept.write(content)
    kept.seek(0)
    return kept


async def _in_pieces(file: IO[bytes]) -> AsyncIterator[bytes]:
    """Yield a file piece by piece, and close it."""
    with file:
        while piece := await to_thread.run_sync(file.read, _PIECE):
            yield piece


@router.get(
    "/jobs/{job_id}/sample",
    responses={
        **answers("job-failed"),
        200: {
            "content": {"text/csv": {"schema": {"type": "string"}, "example": "a,b\n"}, Format.NPY: BINARY}
        },
    },
    response_model=SampleFacts,
    openapi_extra=recorded("read-sample", "n"),
)
async def get_sample(
    job_id: JobId,
    caller: User,
    context: Services,
    request: Request,
    n: Annotated[
        int, Query(ge=1, le=10_000, description="number of rows: the first ones of those made")
    ] = 1000,
    coordinates: Annotated[
        bool, Query(description="of a table: the numbers of centres instead of values")
    ] = False,
    accept: Annotated[
        str, Header(description="`application/json`, `text/csv` or `application/x-npy`", max_length=500)
    ] = "application/json",
) -> Any:
    """Get made-up rows that agree with the release of a job that left k open; the same ones each time.

    Of a table they have values of the chosen columns' kinds; as NPY, a field for each column.
    """
    job = await to_thread.run_sync(_released, job_id, caller, context)
    return await _converted(
        SampleFile(job.id, Format.accepted(accept), n, coordinates), request, caller, context
    )


@router.get("/jobs/{job_id}/axes", responses=answers("job-failed"), response_model=AxesFacts)
def get_axes(job_id: JobId, caller: User, context: Services) -> Any:
    """Get the units, ends and scales of the coordinates of a result's centres, for plots."""
    job = _released(job_id, caller, context)
    with context.database.read() as session:
        return axes(session, job)


@router.get(
    "/jobs/{job_id}/differences",
    responses=answers("job-failed"),
    response_model=DifferencesFacts,
    openapi_extra=recorded("read-differences"),
)
async def get_differences(
    job_id: JobId,
    caller: User,
    context: Services,
    request: Request,
    second: Annotated[
        str | None, Query(description="the job of the second answer; required", max_length=36)
    ] = None,
) -> Any:
    """Get two profiles by the same clusters side by side, with the differences of shares and their intervals.

    Both were released, so this is free. Clusters may be those of another dataset: last year's.
    """
    first = await to_thread.run_sync(_released, job_id, caller, context)
    if second is None:  # said only to callers who may see the first
        raise InvalidRequest("name the job of the second answer: ?second=...")
    later = await to_thread.run_sync(_released, second, caller, context)
    return await _converted(DifferencesFile(first.id, later.id), request, caller, context)


@router.get(
    "/jobs/{job_id}/receipt",
    responses=answers("job-failed"),
    response_model=Receipt,
    openapi_extra=recorded("read-receipt"),
)
def get_receipt(job_id: JobId, caller: Reader, context: Services) -> Any:
    """Get the receipt: what was planned and charged, step by step, with the receipt's own digest."""
    # As it was stored, so that its digest can be checked. It is about as long as the plan, which has a limit.
    job = _released(job_id, caller, context, receipt=True)
    with context.database.read() as session:
        return JSONResponse(stored.receipt(session, job.id))


@router.get(
    "/jobs/{job_id}/transcript",
    responses={
        **answers("job-failed"),
        200: {"content": {transcripts.MEDIA_TYPE: {**BINARY, "example": "cairn transcript 1\n"}}},
    },
    response_class=StreamingResponse,
    openapi_extra=recorded("read-transcript"),
)
def get_transcript(job_id: JobId, caller: User, context: Services) -> Any:
    """Get the transcript: every released value in order, from which the result can be computed again."""
    job = _released(job_id, caller, context)
    with context.database.read() as session:
        size = transcripts.length(session, job.id)
    if not size:
        raise NotFound("this job has no transcript: it ran under an earlier version, or released too much")
    return StreamingResponse(
        transcripts.stored_parts(context.database, job.id),
        media_type=transcripts.MEDIA_TYPE,
        headers={"Content-Length": str(size)},
    )


def _released(job_id: str, caller: Caller, context: Context, *, receipt: bool = False) -> Job:
    """Return a job whose result, or receipt, the caller may see now."""
    now = context.clock.now()
    with context.database.read() as session:
        found = release.find(session, job_id, caller)
        if not receipt:
            release.require_readable(session, found, now)
        visible = found.at(now)
        if visible.state == JobState.FAILED:
            raise JobFailed(visible.message or "the job ended without a result")
        if visible.state == JobState.CANCELLED:
            raise NotFound(
                "the job was cancelled, so there is no result",
                next_step="Submit another job.",
                state=visible.state,
            )
        if visible.state != JobState.SUCCEEDED:
            raise NotFound(
                "there is no result yet",
                next_step="Wait until the job has ended.",
                headers={"Retry-After": str(visible.retry_after or 1)},
                state=visible.state,
            )
        return found.job
