"""Counts of events for operators: refusals, waiting times, overruns, lost workers, chunks read, requests.

They are kept in `counters`, by the transaction in which the event happens, so that every API process
reports the same and no table that grows is walked through. `exposition` reports them.
"""

import collections
from collections.abc import Mapping, Sequence
from datetime import timedelta
from threading import Lock

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.operations.states import JobState
from service.operations.tables import Counter

#: Names of counters, by what their label says: the problem of a refused submission.
REFUSALS = "refusals"
#: The bucket of a job's time from its submission to its claim.
CLAIMS = "claims"
#: Without a label: the sum of these times, in microseconds.
WAITED = "claims_microseconds"
#: State and dataset of a job that has ended.
JOBS = "jobs"
#: The dataset of a job that overran its plan, after `ENDED` if a limit ended it.
OVERRUNS = "overruns"
#: Marks overruns that a limit ended, for which there is an alert of its own.
ENDED = "limit"
#: Why a worker process was lost.
WORKER_LOSSES = "worker_losses"
#: Which limit ended a job.
JOB_LIMITS = "job_limits"
#: Area and status of a request.
REQUESTS = "requests"
#: The area of requests, whose times are added up in microseconds.
REQUEST_TIME = "request_microseconds"
#: The bucket of a response time, or `microseconds` for their sum.
RESPONSES = "answers"
#: Upper ends of the buckets of waiting times, in seconds; the rest goes into one without an end.
WAITING_BUCKETS = ("0.1", "0.3", "1", "3", "10", "30", "100", "300", "1000", "3000")
#: Upper ends of the buckets of response times, in seconds.
RESPONSE_BUCKETS = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30")
#: The bucket without an end.
ENDLESS = "+Inf"
#: Reasons for which a worker process is lost.
LOSSES = ("memory", "killed", "crashed")
#: Limits that end a job.
LIMITS = ("time", "memory")
#: Areas of the API whose requests take as long as their body, so that the histogram leaves them out.
_LONG_AREAS = ("uploads",)
_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
_chunks_read: collections.Counter[tuple[str, str]] = collections.Counter()
_requests: collections.Counter[tuple[str, str]] = collections.Counter()
_lock = Lock()


def count(session: Session, amounts: Mapping[tuple[str, str], int]) -> None:
    """Add to counters, by name and label; in one order and last in a transaction, to avoid deadlocks."""
    dialect = session.get_bind().dialect.name
    insert = postgresql.insert if dialect == "postgresql" else sqlite.insert
    for (name, label), amount in sorted(amounts.items()):
        if amount:
            new = insert(Counter).values(name=name, label=label, value=amount)
            added = {"value": Counter.value + new.excluded.value}
            session.execute(new.on_conflict_do_update(index_elements=["name", "label"], set_=added))


def refused(session: Session, problem: str) -> None:
    """Count a refused submission by its problem."""
    count(session, {(REFUSALS, problem): 1})


def claimed(session: Session, waited: timedelta) -> None:
    """Count a job that was claimed for the first time, by its waiting time."""
    seconds = max(0.0, waited.total_seconds())
    count(session, {(CLAIMS, _bucket(seconds, WAITING_BUCKETS)): 1, (WAITED, ""): round(seconds * 1e6)})


def _bucket(seconds: float, ends: Sequence[str]) -> str:
    return next((end for end in ends if seconds <= float(end)), ENDLESS)


def ended(
    session: Session,
    dataset_id: int,
    state: JobState,
    *,
    before: JobState = JobState.QUEUED,
    times: int = 1,
) -> None:
    """Count jobs that ended; `before` is another state in which they were counted as ended, if they were."""
    amounts = {(JOBS, f"{state} {dataset_id}"): times}
    if before not in (*_UNFINISHED, state):
        amounts[JOBS, f"{before} {dataset_id}"] = -times
    count(session, {} if before == state else amounts)


def overrun_labels(dataset_id: int) -> tuple[str, str]:
    """Return the labels of overruns of a dataset: of jobs that were late, and of those that a limit ended."""
    return str(dataset_id), f"{ENDED} {dataset_id}"


def overran(session: Session, dataset_id: int, *, by_limit: bool) -> None:
    """Count a job that took longer than planned, or that a limit on time or memory ended."""
    count(session, {(OVERRUNS, overrun_labels(dataset_id)[by_limit]): 1})


def overruns(session: Session, dataset_id: int) -> int:
    """Return how many jobs on a dataset took longer than planned, or were ended by a limit."""
    found = (session.get(Counter, (OVERRUNS, label)) for label in overrun_labels(dataset_id))
    return sum(counter.value for counter in found if counter)


def chunk_read(source: str, dataset_id: int, size: int, microseconds: int) -> None:
    """Note in this process that a worker read a chunk; `take_chunks_read` returns the sums."""
    label = f"{source} {dataset_id}"
    with _lock:
        _chunks_read["chunks", label] += 1
        _chunks_read["chunk_bytes", label] += size
        _chunks_read["chunk_microseconds", label] += microseconds


def take_chunks_read() -> dict[tuple[str, str], int]:
    """Return the counts of chunks read in this process since the last call, for `count`."""
    with _lock:
        taken = dict(_chunks_read)
        _chunks_read.clear()
    return taken


def worker_lost(session: Session, reason: str) -> None:
    """Count a worker process that ended without having been told to."""
    count(session, {(WORKER_LOSSES, reason): 1})


def ended_by_limit(session: Session, limit: str) -> None:
    """Count a job that a limit on time or memory ended."""
    count(session, {(JOB_LIMITS, limit): 1})


def request_served(area: str, status: int, seconds: float) -> None:
    """Note a request in this process; `take_requests` returns the sums."""
    with _lock:
        _requests[REQUESTS, f"{area[:28]} {status}"] += 1
        _requests[REQUEST_TIME, area[:28]] += round(seconds * 1e6)
        if area not in _LONG_AREAS:
            _requests[RESPONSES, _bucket(seconds, RESPONSE_BUCKETS)] += 1
            _requests[RESPONSES, "microseconds"] += round(seconds * 1e6)


def take_requests() -> dict[tuple[str, str], int]:
    """Return the counts of requests served by this process since the last call, for `count`."""
    with _lock:
        taken = dict(_requests)
        _requests.clear()
    return taken


def put_back_requests(taken: Mapping[tuple[str, str], int]) -> None:
    """Note requests again that could not be stored."""
    with _lock:
        _requests.update(taken)
