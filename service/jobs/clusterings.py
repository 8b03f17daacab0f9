"""Earlier jobs that a request names: clusterings that a question is about, or made-up rows to rehearse on.

Centres are named by job, k and digest. A question about a clustering is asked in the bounds in which its
centres were found; one about a clustering of another dataset, in the bounds of its own.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.data import Partition, PartitionFacts, Stored, domain_from_json
from core.plan import CLUSTER
from service.datasets import working_bounds
from service.datasets.access import Right
from service.errors import InvalidRequest, NotFound
from service.jobs import release
from service.jobs.results import answers, stored
from service.jobs.wire import ClusteringBody
from service.operations.states import JobState
from service.operations.tables import Dataset, Job


def facts_of(
    session: Session, right: Right, named: Sequence[ClusteringBody], *, rehearsal: bool, now: datetime
) -> tuple[tuple[PartitionFacts, ...], Stored | None]:
    """Return what a plan needs to know of clusterings, and the domain in which their centres were found.

    NotFound for clusterings that the caller cannot see now. None, if there are none.
    """
    found = [_partition_of(session, right, each, rehearsal=rehearsal, now=now) for each in named]
    domains = {domain.fingerprint: domain for _, domain in found if domain is not None}
    if len(domains) > 1:
        raise InvalidRequest(
            "these clusterings were found in different working bounds, in which records are clipped "
            "differently: cluster again in the present bounds, and compare that"
        )
    if not found:
        return (), None
    domain = next(iter(domains.values()), None) or working_bounds.present_domain(right.dataset)
    return tuple(
        (partition if own is not None else partition.onto(domain)).facts for partition, own in found
    ), domain


def require_made_up_rows(session: Session, right: Right, job_id: str, domain: Stored, now: datetime) -> None:
    """Refuse to rehearse in a domain on the made-up rows of a job unless the caller can see them now."""
    job = _visible(session, right, job_id, now)
    if job.dataset_id != right.dataset.id:
        raise InvalidRequest(f"job {job_id} is of another dataset than {right.dataset.name}")
    if not answers.has_made_up_rows(session, job_id):
        raise InvalidRequest(
            f"job {job_id} has no made-up rows: name one that left k open, or leave rehearse_on out"
        )
    if _domain_of(session, right.dataset, job_id).fingerprint != domain.fingerprint:
        raise InvalidRequest(
            f"the made-up rows of job {job_id} lie in other working bounds than this job: name one that ran "
            "in the same bounds"
        )


def _visible(session: Session, right: Right, job_id: str, now: datetime) -> Job:
    """Return a job, on whatever dataset, whose result the caller can see now."""
    found = release.find(session, job_id, right.caller)
    if found.at(now).state != JobState.SUCCEEDED:
        raise NotFound(f"job {job_id} has no result that could be used")
    return found.job


def _domain_of(session: Session, dataset: Dataset, job_id: str) -> Stored:
    """Return the dataset's domain in the bounds in which a job ran: declared or working ones."""
    receipt = stored.receipt(session, job_id)
    digest = receipt.get("inputs", {}).get("domain", {}).get("digest", "")  # missing from early versions
    digest = receipt.get("bounds", digest)  # where it ran on periods
    return domain_from_json(working_bounds.domain_named(session, dataset, digest))


def _partition_of(
    session: Session, right: Right, named: ClusteringBody, *, rehearsal: bool, now: datetime
) -> tuple[Partition, Stored | None]:
    """Return a partition with the domain in which it was found; without, if that is another dataset's."""
    job = _visible(session, right, named.job, now)
    if job.rehearsal and not rehearsal:
        raise InvalidRequest(
            f"job {named.job} is a rehearsal, whose clusters are made up: only a rehearsal can ask about them"
        )
    dataset = session.get_one(Dataset, job.dataset_id)
    domain = _domain_of(session, dataset, job.id)
    partition = _partition(session, domain, job, named.k)
    if named.digest is not None and named.digest != partition.digest:
        raise InvalidRequest(f"the centres of job {named.job} have another digest: {partition.digest}")
    return partition, domain if dataset.id == right.dataset.id else None


def load(session: Session, domain: Stored, facts: Mapping[str, Any]) -> Partition:
    """Load the centres that a plan names, for a run on a domain; the plan checks their digest."""
    job = session.scalars(select(Job).filter_by(id=facts["job"])).one()
    dataset = session.get_one(Dataset, job.dataset_id)
    found_in = _domain_of(session, dataset, facts["job"])
    partition = _partition(session, found_in, job, facts["k"])
    return partition if found_in.fingerprint == domain.fingerprint else partition.onto(domain)


def _partition(session: Session, domain: Stored, job: Job, k: int | None) -> Partition:
    if job.kind != CLUSTER:
        raise InvalidRequest(f"job {job.id} is not a clustering but a {job.kind}: name a job with centres")
    centres = answers.centres(session, job.id, k)
    clustered = stored.receipt(session, job.id).get("inputs", {}).get("clustered")
    scaled = job.request.get("scaling") == "private"
    ranges = (stored.part(session, job.id, "details") or {}).get("ranges") if scaled else None
    return Partition.of(domain, centres, clustered, ranges, job.id)
