"""Routes of working bounds, and the bounds that finished questions propose."""

from datetime import datetime

from fastapi import APIRouter
from sqlalchemy.orm import Session

from core.data import bounded_columns
from core.plan import CLUSTER
from core.questions import registry as questions
from service.datasets import access, view, working_bounds
from service.datasets.access import Right
from service.datasets.bounds_wire import WorkingBoundsBody, WorkingColumnBody
from service.datasets.routes import DatasetName
from service.datasets.wire import DatasetFacts
from service.datasets.working_bounds import NewBounds
from service.errors import InvalidRequest
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.problems import answers
from service.jobs import release
from service.jobs.results import stored
from service.operations.states import JobState
from service.operations.tables import Job
from service.people.authentication import Curator

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=StrictRoute)


@router.put("/working-bounds", responses=answers("not-sealed", "retired"))
def put_working_bounds(
    name: DatasetName, body: WorkingBoundsBody, caller: Curator, context: Services
) -> DatasetFacts:
    """Give columns of a sealed dataset narrower bounds, typed or released by a finished job.

    Every job that is planned from now on clips rows to them as it reads; earlier ones keep theirs. The ledger
    goes on. Columns that are left out have their declared bounds.
    """
    now = context.clock.now()
    with context.database.write() as session:
        right = access.find(session, name, caller)
        columns = [_bounds(session, right, each, now) for each in body.columns]
        working_bounds.put(session, right.dataset, columns, actor=caller.name, at=now)
        return DatasetFacts.model_validate(view.facts(session, right))


@router.delete("/working-bounds", status_code=204, responses=answers("not-sealed", "retired"))
def delete_working_bounds(name: DatasetName, caller: Curator, context: Services) -> None:
    """Go back to the declared bounds for jobs that are planned from now on."""
    with context.database.write() as session:
        dataset = access.find(session, name, caller).dataset
        working_bounds.remove(session, dataset, actor=caller.name, at=context.clock.now())


def _bounds(session: Session, right: Right, asked: WorkingColumnBody, now: datetime) -> NewBounds:
    if asked.job is None:
        return NewBounds(asked.column, asked.low, asked.high)
    job = _released(session, right, asked.job, now)
    columns = {each.name: each for each in bounded_columns(access.domain_of(right.dataset))}
    findings = stored.body(session, job.id)["findings"]
    column = columns.get(asked.column)
    pair = None if column is None else questions.get(job.kind).bounds(findings, column)
    if pair is None:
        raise InvalidRequest(
            f"job {job.id} released no bounds of {asked.column}: ask for quantiles of it at two levels at "
            "least, or type them"
        )
    return NewBounds(asked.column, *pair, job.id)


def _released(session: Session, right: Right, job_id: str, now: datetime) -> Job:
    """Return a job that has released its result; used any earlier, it would show when the run ended."""
    job = release.find(session, job_id, right.caller).job
    if job.dataset_id != right.dataset.id:
        raise InvalidRequest(f"job {job_id} is about another dataset than {right.dataset.name}")
    if job.kind == CLUSTER:
        raise InvalidRequest(f"job {job_id} is a clustering: only quantiles and summaries propose bounds")
    if job.rehearsal:
        raise InvalidRequest(f"job {job_id} is a rehearsal on made-up rows: it says nothing about bounds")
    if release.state_at(job, now, held=True).state != JobState.SUCCEEDED:
        raise InvalidRequest(f"job {job_id} has released nothing, or not yet: use a job that has finished")
    return job
