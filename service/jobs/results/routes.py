"""Routes of what jobs have released: results, made-up rows, receipts and transcripts."""

import io
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
from anyio import to_thread
from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic_core import from_json, to_json

from core.data import Stored
from core.plan import CLUSTER
from service.datasets.access import domain_of
from service.errors import InvalidRequest, JobFailed, NotFound
from service.http.context import Context, Services
from service.http.documentation import BINARY
from service.http.json_limits import StrictRoute
from service.http.problems import answers
from service.jobs import release
from service.jobs.results import answers as stored_answers
from service.jobs.results import csv_files, findings, stored, transcripts
from service.jobs.results.wire import FindingsFacts, Receipt, ResultFacts, SampleFacts
from service.jobs.routes import JobId
from service.operations.states import JobState
from service.people.authentication import Anyone, Caller

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
_NPY = "application/x-npy"
#: Bytes of a response that are sent at once.
_PIECE = 256 << 10
#: Values of made-up rows that are sent as text.
_MOST_TEXT_VALUES = 200_000


@dataclass(frozen=True)
class Released:
    """A job that has released its result, with its receipt; the result itself may be long."""

    job_id: str
    kind: str
    receipt: dict[str, Any]
    #: The declared domain of the dataset.
    declared: Stored


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
                _NPY: BINARY,
            }
        },
    },
    response_model=ResultFacts | FindingsFacts,
)
async def get_result(
    job_id: JobId,
    caller: Anyone,
    context: Services,
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
    work = partial(_result_file, job_id, caller, context, k, accept)
    content, media_type = await to_thread.run_sync(work, limiter=context.downloads)
    length = {"Content-Length": str(len(content))}
    return StreamingResponse(_in_pieces(content), media_type=media_type, headers=length)


def _result_file(
    job_id: str, caller: Caller, context: Context, k: int | None, accept: str
) -> tuple[bytes, str]:
    """Return a result in the format that was asked for, and its media type."""
    released = _released(job_id, caller, context)
    with context.database.read() as session:
        text = stored.text(session, released.job_id)
    wants_json = _NPY not in accept and "text/csv" not in accept
    if released.kind != CLUSTER:
        return _findings_file(from_json(text), released, k, accept)
    if k is None and wants_json:
        return text.encode(), "application/json"  # as it was stored, to the letter
    body = from_json(text)
    if k is not None:
        body = _at(body, k, released, context)
    if _NPY in accept:
        return _npy(np.array(body["centres"], dtype=np.float64)), _NPY
    if "text/csv" in accept:
        return csv_files.result_csv(body).encode(), "text/csv"
    return to_json(body), "application/json"


async def _in_pieces(content: bytes) -> AsyncIterator[bytes]:
    """Yield a response part by part, so that a caller who stops reading is noticed."""
    for start in range(0, len(content), _PIECE):
        yield content[start : start + _PIECE]


@router.get(
    "/jobs/{job_id}/sample",
    responses={
        **answers("job-failed"),
        200: {"content": {"text/csv": {"schema": {"type": "string"}, "example": "a,b\n"}, _NPY: BINARY}},
    },
    response_model=SampleFacts,
)
def get_sample(
    job_id: JobId,
    caller: Anyone,
    context: Services,
    n: Annotated[
        int, Query(ge=1, le=10_000, description="number of rows: the first ones of those made")
    ] = 1000,
    accept: Annotated[
        str, Header(description="`application/json`, `text/csv` or `application/x-npy`", max_length=500)
    ] = "application/json",
) -> Any:
    """Get made-up rows that agree with the release of a job that left k open; the same ones each time.

    Of a table they have values of the chosen columns' kinds; as NPY, a field for each column.
    """
    released = _released(job_id, caller, context)
    with context.database.read() as session:
        made_up = stored_answers.made_up_rows(session, released.job_id, released.receipt)
    if made_up is None:
        raise InvalidRequest("this job has no made-up rows: only jobs that leave k open have some")
    rows = made_up.decoded()[:n]
    if _NPY in accept:
        return Response(_npy(rows), media_type=_NPY)
    columns = list(rows.dtype.names or released.receipt["domain"]["columns"])
    if len(rows) * len(columns) > _MOST_TEXT_VALUES:
        raise InvalidRequest(
            f"as text at most {_MOST_TEXT_VALUES} values are sent: ask for fewer rows, or for {_NPY}"
        )
    listed = csv_files.plain_rows(rows)
    if "text/csv" in accept:
        return Response(csv_files.rows_csv(columns, listed), media_type="text/csv")
    return JSONResponse({"columns": columns, "rows": listed, "made_up": True})


def _findings_file(body: dict[str, Any], released: Released, k: int | None, accept: str) -> tuple[bytes, str]:
    if k is not None or _NPY in accept:
        raise InvalidRequest(f"the result of a {released.kind} has no centres: ask for it as JSON or CSV")
    if "text/csv" in accept:
        return findings.as_csv(body).encode(), "text/csv"
    return to_json(findings.shown(body, released.declared)), "application/json"


def _at(body: dict[str, Any], k: int, released: Released, context: Context) -> dict[str, Any]:
    """Return a result with the centres, sizes and intervals of another k."""
    if "range" not in body and k == len(body["centres"]):
        return body
    with context.database.read() as session:
        found = stored_answers.of_other_k(session, released.job_id, k, body, released.receipt)
    return {**body, **found}


def _npy(array: Any) -> bytes:
    file = io.BytesIO()
    version = (3, 0) if array.dtype.names else None  # only that one has names in any alphabet
    np.lib.format.write_array(file, array, version=version, allow_pickle=False)
    return file.getvalue()


@router.get("/jobs/{job_id}/receipt", responses=answers("job-failed"), response_model=Receipt)
def get_receipt(job_id: JobId, caller: Anyone, context: Services) -> Any:
    """Get the receipt: what was planned and charged, step by step, with the receipt's own digest."""
    # As it was stored, to the letter, so that its digest can be checked.
    return JSONResponse(_released(job_id, caller, context).receipt)


@router.get(
    "/jobs/{job_id}/transcript",
    responses={
        **answers("job-failed"),
        200: {"content": {transcripts.MEDIA_TYPE: {**BINARY, "example": "cairn transcript 1\n"}}},
    },
    response_class=StreamingResponse,
)
def get_transcript(job_id: JobId, caller: Anyone, context: Services) -> Any:
    """Get the transcript: every released value in order, from which the result can be computed again."""
    released = _released(job_id, caller, context)
    named = released.receipt.get("transcript")
    if named is None:
        raise NotFound("this job has no transcript: it ran under an earlier version, or released too much")
    return StreamingResponse(
        transcripts.stored_parts(context.database, released.job_id),
        media_type=transcripts.MEDIA_TYPE,
        headers={"Content-Length": str(named["bytes"])},
    )


def _released(job_id: str, caller: Caller, context: Context) -> Released:
    """Return a job whose result the caller may see now."""
    with context.database.read() as session:
        found = release.find(session, job_id, caller)
        visible = found.at(context.clock.now())
        if visible.state == JobState.FAILED:
            raise JobFailed(visible.message or "the job ended without a result")
        if visible.state == JobState.CANCELLED:
            raise NotFound("the job was cancelled, so there is no result", state=visible.state)
        if visible.state != JobState.SUCCEEDED:
            raise NotFound(
                "there is no result yet; ask again later",
                headers={"Retry-After": str(visible.retry_after or 1)},
                state=visible.state,
            )
        job = found.job
        return Released(job.id, job.kind, stored.receipt(session, job.id), domain_of(found.dataset))
