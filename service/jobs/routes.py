"""Routes of algorithms, plans and jobs."""

from typing import Annotated

import structlog
from anyio import to_thread
from fastapi import APIRouter, Depends, Header, Path, Query, Response

from core.algorithms import registry
from core.options import options_schema
from service.datasets import access
from service.datasets.periods import selection
from service.errors import NotCancellable
from service.http.context import Services
from service.http.documentation import links
from service.http.json_limits import StrictRoute
from service.http.paging import Paging
from service.http.problems import answers
from service.http.route_limits import RouteLimits, limited
from service.http.wire import JOB_PATTERN, NAME_PATTERN
from service.jobs import plans, queue, release, view
from service.jobs.filters import JobFilter
from service.jobs.limits import Limits
from service.jobs.planned import price
from service.jobs.results.earlier import earlier_release
from service.jobs.submit import Submission, submit
from service.jobs.wire import (
    AccountantList,
    AlgorithmList,
    JobBody,
    JobFacts,
    JobPage,
    KindList,
    NoteBody,
    PlanBody,
    Quote,
)
from service.ledger import accountants
from service.operations.settings import KIB
from service.people.authentication import Anyone, Curator, Reader, User

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
#: Longest body of a plan or a job: sites that are sent with one take at most 256 KiB.
_PLAN_BYTES = 320 * KIB
#: Limits of a request that is planned.
PLANNED = RouteLimits(
    longest_body=lambda settings: min(_PLAN_BYTES, settings.max_body_bytes),
    price=20.0,
    received_per_request=8 * KIB,
)


@router.get("/algorithms", responses=answers())
def list_algorithms(_caller: Anyone) -> AlgorithmList:
    """List every algorithm with its guarantee and its options as JSON Schema; `auto` chooses among them."""
    found = [registry.get(name) for name in registry.names()]
    items = [
        {
            "name": each.name,
            "summary": each.summary,
            "origin": each.origin,
            "objectives": list(each.objectives),
            "guarantee": each.guarantee,
            "domains": list(each.domains),
            "leaves_k_open": each.leaves_k_open,
            "options": options_schema(each.options),
        }
        for each in found
    ]
    return AlgorithmList.model_validate({"items": items})


@router.get("/accountants", responses=answers())
def list_accountants(_caller: Anyone) -> AccountantList:
    """List the accountants that a new dataset may name: how the losses of its jobs add up."""
    items = [
        {"name": each.name, "title": each.title, "advice": each.advice} for each in accountants.all_kinds()
    ]
    return AccountantList.model_validate({"items": items})


@router.get("/kinds", responses=answers())
def list_kinds(
    caller: Anyone,
    context: Services,
    dataset: Annotated[
        str | None,
        Query(pattern=NAME_PATTERN, description="only what you may ask about this dataset, with its columns"),
    ] = None,
) -> KindList:
    """List the kinds of questions that a job may ask, with options as JSON Schema."""
    if dataset is None:
        return KindList.model_validate({"items": view.kinds_of(None)})
    with context.database.read() as session:
        right = access.find(session, dataset, caller)
    return KindList.model_validate({"items": view.kinds_of(right)})


@router.post("/plans", responses=answers(*_PLANNING))
@limited(PLANNED)
def make_plan(body: PlanBody, caller: User, context: Services) -> Quote:
    """Plan a job: what it would measure and cost, what would remain, and a forecast of its accuracy; free."""
    with context.database.read() as session:
        right = access.find(session, body.dataset, caller)
        periods = selection.choose(session, right.dataset, body.periods)
        delta_left = plans.delta_left(session, right, periods)
        inputs = plans.inputs_of(session, right, body, periods, context.clock.now())
    limits = Limits.of(context.settings, context.plan_bytes())
    plan = plans.make_plan(right, body, inputs, limits.work, delta_left=delta_left)
    with context.database.read() as session:
        planned = price(session, right, body, plan, limits, inputs.periods)
        earlier = earlier_release(session, right, body, context.clock.now())
        return Quote.model_validate(view.quote(session, planned, earlier))


@router.post(
    "/jobs",
    status_code=202,
    response_model=JobFacts,
    responses={
        **answers(
            *_PLANNING,
            "budget-exhausted",
            "cap-exhausted",
            "population-exhausted",
            "idempotency-mismatch",
            "quote-mismatch",
            "too-many-queued",
        ),
        **links(202, "job"),
    },
)
@limited(PLANNED)
async def submit_job(
    body: JobBody,
    caller: User,
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
    now = context.clock.now()

    def submit_within_limits() -> Submission:
        limits = Limits.of(context.settings, context.plan_bytes())
        return submit(context.database, caller, body, key=idempotency_key, limits=limits, now=now)

    submission = await to_thread.run_sync(submit_within_limits, limiter=context.submissions)
    job = submission.job
    log.info("job accepted", job=job.id, replayed=submission.replayed)
    response.headers.update({"Location": f"/v1/jobs/{job.id}", "Retry-After": "1"})
    if submission.replayed:
        response.headers["Idempotency-Replayed"] = "true"
    found = release.VisibleJob(job, submission.dataset, caller.name, caller)
    return view.facts(found, context.clock.now())


@router.get("/jobs", responses=answers())
def list_jobs(
    caller: Reader,
    context: Services,
    paging: Paging,
    wanted: Annotated[JobFilter, Depends()],
) -> JobPage:
    """List your jobs, or the jobs on datasets that you own, newest first; auditors see all jobs."""
    now, before = context.clock.now(), paging.after(str)
    with context.database.read() as session:
        found = release.page(session, caller, wanted, before=before, limit=paging.fetch, now=now)
    shown, following = paging.cut(found, lambda each: each.job.id)
    return JobPage(items=[view.facts(each, now) for each in shown], next=following)


@router.get("/jobs/{job_id}", responses=answers())
def get_job(job_id: JobId, caller: Reader, context: Services, response: Response) -> JobFacts:
    """Get the state of a job; `Retry-After` says when it may have changed."""
    now = context.clock.now()
    with context.database.read() as session:
        found = release.find(session, job_id, caller)
    retry = found.at(now).retry_after
    if retry is not None:
        response.headers["Retry-After"] = str(retry)
    return view.facts(found, now)


@router.delete("/jobs/{job_id}", responses=answers("not-cancellable"))
def cancel_job(job_id: JobId, caller: User, context: Services) -> JobFacts:
    """Cancel a queued job of yours; its reservation is given back."""
    now = context.clock.now()
    with context.database.write() as session:
        found = release.find_own(session, job_id, caller)
        if not queue.cancel(session, found.job, actor=caller.name, now=now):
            raise NotCancellable("only a queued job can be cancelled; this one was claimed, or has ended")
    return view.facts(found, now)


@router.put("/jobs/{job_id}/note", responses=answers())
def describe_job(job_id: JobId, body: NoteBody, caller: User, context: Services) -> JobFacts:
    """Name a job of yours or write a note about it; the dataset's owner can read both."""
    now = context.clock.now()
    with context.database.write() as session:
        found = release.find_own(session, job_id, caller)
        job = found.job
        job.name = job.name if body.name is None else body.name.strip()
        job.note = job.note if body.note is None else body.note.strip()
    return view.facts(found, now)


@router.post("/jobs/{job_id}/end", responses=answers("not-cancellable"))
def end_job(job_id: JobId, caller: Curator, context: Services) -> JobFacts:
    """End a job on a dataset that you own; the charge of a running job stays, and it never gets a result."""
    now = context.clock.now()
    with context.database.write() as session:
        found = release.find(session, job_id, caller)
        if not queue.end(session, found.job, found.dataset, actor=caller.name, now=now):
            raise NotCancellable("the job has ended")
    return view.facts(found, now)
