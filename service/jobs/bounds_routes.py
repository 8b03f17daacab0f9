"""Routes of working bounds, and the bounds that finished questions propose."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from sqlalchemy.orm import Session

from core.columns.line import Ranged
from core.data import bounded_columns
from service.datasets import access, working_bounds
from service.datasets.bounds_wire import WorkingBoundsBody, WorkingColumnBody
from service.datasets.routes import DatasetName
from service.datasets.wire import DatasetFacts
from service.datasets.working_bounds import NewBounds
from service.errors import InvalidRequest
from service.http.context import Services
from service.http.json_limits import StrictRoute
from service.http.problems import answers
from service.jobs import release
from service.operations.states import JobState
from service.operations.tables import Dataset, Job, Result
from service.people.authentication import Caller, Curator

router = APIRouter(prefix="/v1/datasets/{name}", tags=["datasets"], route_class=StrictRoute)
#: A summary proposes bounds this many spreads from the mean.
_SPREADS = 3.0


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
        dataset, _ = access.find(session, name, caller)
        columns = [_bounds(session, caller, dataset, each, now) for each in body.columns]
        working_bounds.put(session, dataset, columns, actor=caller.name, at=now)
        return DatasetFacts.model_validate(access.facts(session, dataset, None))


@router.delete("/working-bounds", status_code=204, responses=answers("not-sealed", "retired"))
def delete_working_bounds(name: DatasetName, caller: Curator, context: Services) -> None:
    """Go back to the declared bounds for jobs that are planned from now on."""
    with context.database.write() as session:
        dataset, _ = access.find(session, name, caller)
        working_bounds.remove(session, dataset, actor=caller.name, at=context.clock.now())


def _bounds(
    session: Session, caller: Caller, dataset: Dataset, asked: WorkingColumnBody, now: datetime
) -> NewBounds:
    if asked.job is None:
        return NewBounds(asked.column, asked.low, asked.high)
    job = _released(session, caller, dataset, asked.job, now)
    columns = {each.name: each for each in bounded_columns(access.domain_of(dataset))}
    findings = session.get_one(Result, job.id).body["findings"]
    pair = None
    if asked.column in columns:
        propose = _of_quantiles if job.kind == "quantiles" else _of_summary
        pair = propose(findings, columns[asked.column])
    if pair is None:
        raise InvalidRequest(
            f"job {job.id} released no bounds of {asked.column}: ask for quantiles of it at two levels at "
            "least, or type them"
        )
    return NewBounds(asked.column, *pair, job.id)


def _released(session: Session, caller: Caller, dataset: Dataset, job_id: str, now: datetime) -> Job:
    """Return a job that has released its result; used any earlier, it would show when the run ended."""
    job, _, _ = release.find(session, job_id, caller)
    if job.dataset_id != dataset.id:
        raise InvalidRequest(f"job {job_id} is about another dataset than {dataset.name}")
    if job.kind not in ("quantiles", "summary"):
        raise InvalidRequest(f"job {job_id} is a {job.kind}: only quantiles and a summary propose bounds")
    if job.rehearsal:
        raise InvalidRequest(f"job {job_id} is a rehearsal on made-up rows: it says nothing about bounds")
    if release.state_at(job, now, held=True).state != JobState.SUCCEEDED:
        raise InvalidRequest(f"job {job_id} has released nothing, or not yet: use a job that has finished")
    return job


def _of_quantiles(findings: dict[str, Any], column: Ranged) -> tuple[Any, Any] | None:
    """The lowest and the highest quantile of a column."""
    found = next((each for each in findings["columns"] if each["column"] == column.name), None)
    if found is None:
        return None
    places = [column.place(value) for value in found["values"]]
    return column.bounds_around(min(places), max(places))


def _of_summary(findings: dict[str, Any], column: Ranged) -> tuple[Any, Any] | None:
    """Some spreads around the mean of a column, on its line."""
    found = next((each for each in findings["columns"] if each["column"] == column.name), None)
    if found is None or column.name not in findings["coordinates"]:
        return None
    spread = _SPREADS * float(findings["spreads"][findings["coordinates"].index(column.name)])
    place = column.place(found["value"])
    return column.bounds_around(place - spread, place + spread)
