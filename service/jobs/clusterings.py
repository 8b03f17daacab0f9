"""Earlier jobs that a request names: clusterings that a question is about, or made-up rows to rehearse on."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from core.data import Partition, PartitionFacts, Stored
from service.datasets.access import domain_of
from service.errors import InvalidRequest, NotFound
from service.jobs import release
from service.jobs.results import answers
from service.jobs.wire import ClusteringBody
from service.operations.states import JobState
from service.operations.tables import Dataset, Job, Result
from service.people.authentication import Caller


def facts_of(
    session: Session,
    caller: Caller,
    dataset: Dataset,
    named: Sequence[ClusteringBody],
    *,
    rehearsal: bool,
    now: datetime,
) -> tuple[PartitionFacts, ...]:
    """Return what a plan needs to know of clusterings; NotFound for those that the caller cannot see now."""
    return tuple(_facts(session, caller, dataset, each, rehearsal=rehearsal, now=now) for each in named)


def require_made_up_rows(
    session: Session, caller: Caller, dataset: Dataset, job_id: str, now: datetime
) -> None:
    """Refuse to rehearse on the made-up rows of a job unless the caller can see them now."""
    _visible(session, caller, dataset, job_id, now)
    if not answers.has_made_up_rows(session, job_id):
        raise InvalidRequest(
            f"job {job_id} has no made-up rows: name one that left k open, or leave rehearse_on out"
        )


def _visible(session: Session, caller: Caller, dataset: Dataset, job_id: str, now: datetime) -> Job:
    """Return a job on the dataset whose result the caller can see now."""
    job, _, _ = release.find(session, job_id, caller)
    if release.visible_state(job, caller, now).state != JobState.SUCCEEDED:
        raise NotFound(f"job {job_id} has no result that could be used")
    if job.dataset_id != dataset.id:
        raise InvalidRequest(f"job {job_id} is of another dataset than {dataset.name}")
    return job


def _facts(
    session: Session,
    caller: Caller,
    dataset: Dataset,
    named: ClusteringBody,
    *,
    rehearsal: bool,
    now: datetime,
) -> PartitionFacts:
    job = _visible(session, caller, dataset, named.job, now)
    if job.rehearsal and not rehearsal:
        raise InvalidRequest(
            f"job {named.job} is a rehearsal, whose clusters are made up: only a rehearsal can ask about them"
        )
    partition = _partition(session, domain_of(dataset), job.id, named.k)
    if named.digest is not None and named.digest != partition.digest:
        raise InvalidRequest(f"the centres of job {named.job} have another digest: {partition.digest}")
    return partition.facts


def load(session: Session, domain: Stored, facts: Mapping[str, Any]) -> Partition:
    """Load the centres that a plan names, for a run; the plan checks their digest."""
    return _partition(session, domain, facts["job"], facts["k"])


def _partition(session: Session, domain: Stored, job_id: str, k: int | None) -> Partition:
    result = session.get_one(Result, job_id)
    body: dict[str, Any] = result.body
    if "centres" not in body:
        raise InvalidRequest(
            f"job {job_id} is no clustering but a {body.get('kind')}: name a job with centres"
        )
    centres = body["centres"]
    if k is not None and k != len(centres):
        found = answers.at(session, job_id, k, result.receipt)
        if found is None:
            raise InvalidRequest(f"job {job_id} has no result for k = {k}")
        centres = found["centres"]
    clustered = result.receipt.get("inputs", {}).get("clustered")
    ranges = body.get("details", {}).get("ranges")
    return Partition.of(domain, centres, clustered, ranges, job_id)
