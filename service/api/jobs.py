"""Routes of algorithms, plans, jobs, results and receipts."""

from __future__ import annotations

import csv
import io
from typing import Annotated, Any

import numpy as np
import structlog
from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import JSONResponse

from core.algorithms import registry
from core.algorithms.base import options_schema
from service import datasets, jobs
from service.api.context import Context
from service.api.deps import Analyst, AnalystKey, Anyone, Limit, Services, cursor_from, cursor_to
from service.api.desk import Wish
from service.api.links import links
from service.api.problems import answers
from service.api.strict import StrictRoute
from service.auth import Caller
from service.errors import JobFailed, NotFound
from service.schemas.common import JOB_PATTERN, NAME_PATTERN
from service.schemas.work import (
    AlgorithmList,
    JobBody,
    JobFacts,
    JobPage,
    PlanBody,
    Quote,
    Receipt,
    ResultFacts,
)
from service.submissions import Submission
from service.tables import Result

__all__ = ["router"]

log = structlog.get_logger()

router = APIRouter(prefix="/v1", tags=["jobs"], route_class=StrictRoute)
JobId = Annotated[str, Path(pattern=JOB_PATTERN, description="id of a job, or `latest` for your newest one")]
_PLANNING = (
    "not-sealed",
    "retired",
    "delta-not-offered",
    "epsilon-too-small",
    "unknown-algorithm",
    "work-limit",
    "rate-limited",
)
_NPY = "application/x-npy"


@router.get("/algorithms", responses=answers())
def list_algorithms(_caller: Anyone) -> AlgorithmList:
    """Every algorithm with its guarantee and its options as JSON Schema; `auto` chooses among them."""
    found = [registry.get(name) for name in registry.names()]
    items = [
        {
            "name": each.name,
            "summary": each.summary,
            "objectives": list(each.objectives),
            "guarantee": each.guarantee,
            "domains": list(each.domains),
            "options": options_schema(each.options),
        }
        for each in found
    ]
    return AlgorithmList.model_validate({"items": items})


@router.post("/plans", responses=answers(*_PLANNING))
def make_plan(body: PlanBody, caller: Analyst, context: Services) -> Quote:
    """What a job would measure and cost, what would remain, and how well it should do; free."""
    context.plans.admit(caller.id, context.clock.now())
    with context.database.read() as session:
        dataset, grant = datasets.find(session, body.dataset, caller)
        assert grant is not None
        plan = jobs.make_plan(session, dataset, grant.delta_units, body, context.limits.work)
        return Quote.model_validate(jobs.quote(session, dataset, grant, plan))


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobFacts,
    responses={
        **answers(*_PLANNING, "budget-exhausted", "cap-exhausted", "idempotency-mismatch", "too-many-queued"),
        **links(202, "job"),
    },
)
async def submit_job(
    body: JobBody,
    caller: AnalystKey,
    idempotency_key: Annotated[
        str | None,
        Header(pattern=r"^[\x21-\x7e]{1,128}$", description="repeating it repeats the answer, not the job"),
    ] = None,
) -> Response:
    """Submit a job: its cost is reserved now, and charged when a worker takes it."""
    context = caller.context
    wish = Wish(caller.token, body, idempotency_key, context.clock.now())
    submission = await context.desk.submissions.ask(wish)
    log.info("job accepted", job=submission.job.id, replayed=submission.replayed)
    return _accepted(submission, context)


@router.get("/jobs", responses=answers())
def list_jobs(
    caller: Anyone,
    context: Services,
    limit: Limit = None,
    cursor: str | None = None,
    dataset: Annotated[
        str | None, Query(pattern=NAME_PATTERN, description="only jobs on this dataset")
    ] = None,
) -> JobPage:
    """Your jobs, or the jobs on datasets you own, newest first."""
    size = limit or context.settings.default_page
    now = context.clock.now()
    with context.database.read() as session:
        found = jobs.page(session, caller, before=cursor_from(cursor, str), limit=size + 1, dataset=dataset)
        items = [jobs.facts(session, job, owned, caller, now) for job, owned in found[:size]]
    following = cursor_to(found[size - 1][0].id) if len(found) > size else None
    return JobPage.model_validate({"items": items, "next": following})


@router.get("/jobs/{job_id}", responses=answers())
def get_job(job_id: JobId, caller: Anyone, context: Services, response: Response) -> JobFacts:
    """Where a job stands; `Retry-After` says when there may be news."""
    now = context.clock.now()
    with context.database.read() as session:
        job, dataset = jobs.find(session, job_id, caller)
        retry = jobs.seen(job, dataset, caller, now).retry_after
        if retry is not None:
            response.headers["Retry-After"] = str(retry)
        return JobFacts.model_validate(jobs.facts(session, job, dataset, caller, now))


@router.delete("/jobs/{job_id}", responses=answers("not-cancellable"))
def cancel_job(job_id: JobId, caller: Analyst, context: Services) -> JobFacts:
    """Cancel a queued job; its reservation is given back."""
    now = context.clock.now()
    with context.database.write() as session:
        job, dataset = jobs.find(session, job_id, caller)
        jobs.cancel(session, job, actor=caller.name, now=now)
        session.flush()
        return JobFacts.model_validate(jobs.facts(session, job, dataset, caller, now))


@router.get(
    "/jobs/{job_id}/result",
    responses={
        **answers("job-failed"),
        200: {
            "content": {
                "text/csv": {"schema": {"type": "string"}, "example": "petal_length,petal_width,size\n"},
                _NPY: {"schema": {"type": "string", "format": "binary"}},
            }
        },
    },
    response_model=ResultFacts,
)
def get_result(
    job_id: JobId,
    caller: Anyone,
    context: Services,
    accept: Annotated[
        str, Header(description="`application/json`, `text/csv` or `application/x-npy`", max_length=500)
    ] = "application/json",
) -> Any:
    """Centres in the data's units, and noisy sizes where they were released."""
    result = _released(job_id, caller, context)
    if _NPY in accept:
        file = io.BytesIO()
        np.save(file, np.array(result.body["centres"], dtype=np.float64))
        return Response(file.getvalue(), media_type=_NPY)
    if "text/csv" in accept:
        return Response(_as_csv(result.body), media_type="text/csv")
    return ResultFacts.model_validate(result.body)


@router.get("/jobs/{job_id}/receipt", responses=answers("job-failed"), response_model=Receipt)
def get_receipt(job_id: JobId, caller: Anyone, context: Services) -> Any:
    """What was planned and charged, step by step, with the receipt's own digest."""
    # As it was stored, to the letter: whoever checks the digest must get what was digested.
    return JSONResponse(_released(job_id, caller, context).receipt)


def _accepted(submission: Submission, context: Context) -> Response:
    job = submission.job
    headers = {"Location": f"/v1/jobs/{job.id}", "Retry-After": "1"}
    if submission.replayed:
        headers["Idempotency-Replayed"] = "true"
    said = jobs.own_facts(job, submission.dataset, submission.caller, context.clock.now())
    body = JobFacts.model_validate(said).model_dump_json()
    return Response(body, status_code=202, headers=headers, media_type="application/json")


def _released(job_id: str, caller: Caller, context: Context) -> Result:
    """The result of a job that the caller may see now."""
    with context.database.read() as session:
        job, dataset = jobs.find(session, job_id, caller)
        view = jobs.seen(job, dataset, caller, context.clock.now())
        if view.state == "failed":
            raise JobFailed(view.message or "the job ended without a result")
        if view.state == "cancelled":
            raise NotFound("the job was cancelled, so there is no result")
        if view.state != "succeeded":
            raise NotFound(
                "there is no result yet; ask again later",
                headers={"Retry-After": str(view.retry_after or 1)},
                state=view.state,
            )
        return session.get_one(Result, job.id)


def _as_csv(body: dict[str, Any]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    width = len(body["centres"][0])
    columns = body["columns"] or [f"x{i}" for i in range(width)]
    sizes = body["sizes"]
    writer.writerow([*columns, *(["size"] if sizes is not None else [])])
    for place, centre in enumerate(body["centres"]):
        writer.writerow([*map(repr, centre), *([repr(sizes[place])] if sizes is not None else [])])
    return text.getvalue()
