"""Routes of algorithms, plans, jobs, results, receipts and transcripts."""

import io
from collections.abc import AsyncIterator
from functools import partial
from typing import Annotated, Any

import numpy as np
import structlog
from anyio import to_thread
from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic_core import from_json, to_json
from sqlalchemy import Text, cast, select
from sqlalchemy.orm import defer

from core.algorithms import registry
from core.options import options_schema
from core.questions import registry as questions
from service import ledger
from service.datasets import access
from service.errors import InvalidRequest, JobFailed, NotCancellable, NotFound
from service.http.context import Context, Services
from service.http.documentation import BINARY, links
from service.http.json_limits import StrictRoute
from service.http.paging import Paging
from service.http.problems import answers
from service.http.wire import JOB_PATTERN, NAME_PATTERN, VISIBLE_PATTERN
from service.jobs import plans, queue, release
from service.jobs.results import answers as stored_answers
from service.jobs.results import csv_files, transcripts
from service.jobs.results.findings_csv import findings_csv
from service.jobs.results.wire import FindingsFacts, ResultFacts, SampleFacts
from service.jobs.submit import Limits, submit
from service.jobs.wire import (
    AlgorithmList,
    JobBody,
    JobFacts,
    JobPage,
    KindList,
    NoteBody,
    PlanBody,
    Quote,
    Receipt,
)
from service.operations.states import JobState
from service.operations.tables import Result
from service.people.authentication import Anyone, Caller, Curator

log = structlog.get_logger()

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
JobId = Annotated[str, Path(pattern=JOB_PATTERN, description="id of a job, or `latest` for your newest one")]
_PLANNING = (
    "kind-not-granted",
    "not-sealed",
    "retired",
    "delta-not-offered",
    "epsilon-too-small",
    "unknown-algorithm",
    "work-limit",
    "rate-limited",
)
_NPY = "application/x-npy"
#: Bytes of a response that are sent at once.
_PIECE = 256 << 10
#: Values of made-up rows that are sent as text.
_MOST_TEXT_VALUES = 200_000


@router.get("/algorithms", responses=answers())
def list_algorithms(_caller: Anyone) -> AlgorithmList:
    """List every algorithm with its guarantee and its options as JSON Schema; `auto` chooses among them."""
    found = [registry.get(name) for name in registry.names()]
    items = [
        {
            "name": each.name,
            "summary": each.summary,
            "objectives": list(each.objectives),
            "guarantee": each.guarantee,
            "domains": list(each.domains),
            "leaves_k_open": each.leaves_k_open,
            "options": options_schema(each.options),
        }
        for each in found
    ]
    return AlgorithmList.model_validate({"items": items})


@router.get("/kinds", responses=answers())
def list_kinds(_caller: Anyone) -> KindList:
    """List the kinds of questions that a job may ask beside clustering, with options as JSON Schema."""
    items = [
        {
            "name": each.name,
            "summary": each.summary,
            "clusterings": each.clusterings,
            "most_columns": each.most_columns,
            "options": options_schema(each.options),
        }
        for each in (questions.get(name) for name in questions.names())
    ]
    return KindList.model_validate({"items": items})


@router.post("/plans", responses=answers(*_PLANNING))
def make_plan(body: PlanBody, caller: Anyone, context: Services) -> Quote:
    """Plan a job: what it would measure and cost, what would remain, and a forecast of its accuracy; free."""
    with context.database.read() as session:
        dataset, grant = access.find(session, body.dataset, caller)
        delta_left = ledger.delta_left(session, dataset.id, grant.id if grant else None)
        inputs = plans.inputs_of(session, caller, dataset, body, context.clock.now())
    limits = Limits.of(context.settings)
    plan = plans.make_plan(dataset, grant, body, inputs, limits.work, delta_left=delta_left)
    with context.database.read() as session:
        planned_ms = limits.planned_ms(session, plan, rehearsal=body.rehearsal)
        return Quote.model_validate(plans.quote(session, dataset, grant, body, plan, planned_ms))


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobFacts,
    responses={
        **answers(
            *_PLANNING,
            "budget-exhausted",
            "cap-exhausted",
            "idempotency-mismatch",
            "quote-mismatch",
            "too-many-queued",
        ),
        **links(202, "job"),
    },
)
async def submit_job(
    body: JobBody,
    caller: Anyone,
    context: Services,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(pattern=r"^[\x21-\x7e]{1,128}$", description="repeating it repeats the answer, not the job"),
    ] = None,
) -> JobFacts:
    """Submit a job: its cost is reserved now, and charged when a worker takes it.

    An analyst needs a grant, and room in its cap; the dataset's owner is limited by its total alone.
    """
    now, limits = context.clock.now(), Limits.of(context.settings)
    work = partial(submit, context.database, caller, body, key=idempotency_key, limits=limits, now=now)
    submission = await to_thread.run_sync(work, limiter=context.submissions)
    job = submission.job
    log.info("job accepted", job=job.id, replayed=submission.replayed)
    response.headers.update({"Location": f"/v1/jobs/{job.id}", "Retry-After": "1"})
    if submission.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    return release.facts(job, submission.dataset, caller.name, caller, context.clock.now())


@router.get("/jobs", responses=answers())
def list_jobs(
    caller: Anyone,
    context: Services,
    paging: Paging,
    dataset: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="only jobs on this dataset")
    ] = None,
    search: Annotated[
        str,
        Query(
            max_length=80, pattern=VISIBLE_PATTERN, description="only jobs with this in their name or note"
        ),
    ] = "",
) -> JobPage:
    """List your jobs, or the jobs on datasets that you own, newest first."""
    now, before = context.clock.now(), paging.after(str)
    with context.database.read() as session:
        found = release.page(
            session, caller, before=before, limit=paging.fetch, dataset=dataset, search=search
        )
    shown, following = paging.cut(found, lambda each: each[0].id)
    return JobPage(items=[release.facts(*each, caller, now) for each in shown], next=following)


@router.get("/jobs/{job_id}", responses=answers())
def get_job(job_id: JobId, caller: Anyone, context: Services, response: Response) -> JobFacts:
    """Get the state of a job; `Retry-After` says when it may have changed."""
    now = context.clock.now()
    with context.database.read() as session:
        job, dataset, analyst = release.find(session, job_id, caller)
    retry = release.visible_state(job, caller, now).retry_after
    if retry is not None:
        response.headers["Retry-After"] = str(retry)
    return release.facts(job, dataset, analyst, caller, now)


@router.delete("/jobs/{job_id}", responses=answers("not-cancellable"))
def cancel_job(job_id: JobId, caller: Anyone, context: Services) -> JobFacts:
    """Cancel a queued job of yours; its reservation is given back."""
    now = context.clock.now()
    with context.database.write() as session:
        job, dataset, analyst = release.find_own(session, job_id, caller)
        if not queue.cancel(session, job, actor=caller.name, now=now):
            raise NotCancellable("only a queued job can be cancelled; this one was claimed, or has ended")
    return release.facts(job, dataset, analyst, caller, now)


@router.put("/jobs/{job_id}/note", responses=answers())
def describe_job(job_id: JobId, body: NoteBody, caller: Anyone, context: Services) -> JobFacts:
    """Name a job of yours or write a note about it; the dataset's owner can read both."""
    now = context.clock.now()
    with context.database.write() as session:
        job, dataset, analyst = release.find_own(session, job_id, caller)
        job.name = job.name if body.name is None else body.name.strip()
        job.note = job.note if body.note is None else body.note.strip()
    return release.facts(job, dataset, analyst, caller, now)


@router.post("/jobs/{job_id}/end", responses=answers("not-cancellable"))
def end_job(job_id: JobId, caller: Curator, context: Services) -> JobFacts:
    """End a job on a dataset that you own; the charge of a running job stays, and it never gets a result."""
    now = context.clock.now()
    with context.database.write() as session:
        job, dataset, analyst = release.find(session, job_id, caller)
        if not queue.end(session, job, dataset, actor=caller.name, now=now):
            raise NotCancellable("the job has ended")
    return release.facts(job, dataset, analyst, caller, now)


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
        int | None, Query(ge=1, le=10_000, description="of a job that left k open; default: the suggested k")
    ] = None,
    accept: Annotated[
        str, Header(description="`application/json`, `text/csv` or `application/x-npy`", max_length=500)
    ] = "application/json",
) -> Any:
    """Get the centres in the data's units with noisy sizes, or the findings of a question.

    A job that left k open answers for the suggested k, or for the `k` of the query.
    """
    work = partial(_result_file, job_id, caller, context, k, accept)
    content, media_type = await to_thread.run_sync(work, limiter=context.downloads)
    length = {"Content-Length": str(len(content))}
    return StreamingResponse(_in_pieces(content), media_type=media_type, headers=length)


def _result_file(
    job_id: str, caller: Caller, context: Context, k: int | None, accept: str
) -> tuple[bytes, str]:
    """Return a result in the format that was asked for, and its media type."""
    result = _released(job_id, caller, context)
    with context.database.read() as session:
        text = session.scalars(select(cast(Result.body, Text)).where(Result.job_id == result.job_id)).one()
    wants_json = _NPY not in accept and "text/csv" not in accept
    if k is None and wants_json:
        return text.encode(), "application/json"  # as it was stored, to the letter
    body = from_json(text)
    if "findings" in body:
        return _findings_file(body, k, accept)
    if k is not None:
        body = _at(body, k, result, context)
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
    result = _released(job_id, caller, context)
    with context.database.read() as session:
        made_up = stored_answers.made_up_rows(session, result.job_id, result.receipt)
    if made_up is None:
        raise InvalidRequest("this job has no made-up rows: only jobs that leave k open have some")
    rows = made_up.decoded()[:n]
    if _NPY in accept:
        return Response(_npy(rows), media_type=_NPY)
    columns = list(rows.dtype.names or result.receipt["domain"]["columns"])
    if len(rows) * len(columns) > _MOST_TEXT_VALUES:
        raise InvalidRequest(
            f"as text at most {_MOST_TEXT_VALUES} values are sent: ask for fewer rows, or for {_NPY}"
        )
    listed = csv_files.plain_rows(rows)
    if "text/csv" in accept:
        return Response(csv_files.rows_csv(columns, listed), media_type="text/csv")
    return JSONResponse({"columns": columns, "rows": listed, "made_up": True})


def _findings_file(body: dict[str, Any], k: int | None, accept: str) -> tuple[bytes, str]:
    if k is not None or _NPY in accept:
        raise InvalidRequest(f"the result of a {body['kind']} has no centres: ask for it as JSON or CSV")
    return findings_csv(body).encode(), "text/csv"


def _at(body: dict[str, Any], k: int, result: Result, context: Context) -> dict[str, Any]:
    """Return a result with the centres, sizes and intervals of another k."""
    with context.database.read() as session:
        found = stored_answers.at(session, result.job_id, k, result.receipt)
    if found is None:
        known = body.get("range")
        asked = f"from {known['from']} to {known['to']}" if known else f"= {len(body['centres'])}"
        if not known and k == len(body["centres"]):
            return body
        raise InvalidRequest(f"this job has results for k {asked} only")
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
    result = _released(job_id, caller, context)
    named = result.receipt.get("transcript")
    if named is None:
        raise NotFound("this job has no transcript: it ran under an earlier version, or released too much")
    return StreamingResponse(
        transcripts.stored_parts(context.database, result.job_id),
        media_type=transcripts.MEDIA_TYPE,
        headers={"Content-Length": str(named["bytes"])},
    )


def _released(job_id: str, caller: Caller, context: Context) -> Result:
    """Return the result of a job that the caller may see now, without its body, which may be long."""
    with context.database.read() as session:
        job, _, _ = release.find(session, job_id, caller)
        visible = release.visible_state(job, caller, context.clock.now())
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
        return session.get_one(Result, job.id, options=[defer(Result.body, raiseload=True)])
