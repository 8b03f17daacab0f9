"""Prometheus metrics, read from the database, so that every API process reports the same.

Nothing here walks through a table that grows: events are counted in `counters`, ledger entries in their
account, by the transaction that makes them. Some of it depends on rows (how long jobs take, how many chunks
are read), so it is for operators and, for each dataset, its owner.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import gettempdir
from threading import Lock

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from sqlalchemy import func, select, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.operations import workforce
from service.operations.states import JobState
from service.operations.tables import Account, Counter, Dataset, Job

_REFUSALS = "refusals"
_CLAIMS = "claims"
_WAITED = "claims_microseconds"
#: Upper ends of the buckets of waiting times, in seconds; the rest goes into one without an end.
_BUCKETS = ("0.1", "0.3", "1", "3", "10", "30", "100", "300", "1000", "3000")
_ENDLESS = "+Inf"
_CHUNKS = {
    "chunks": ("cairn_chunks_read", "Chunks that workers read, by where they found them."),
    "chunk_bytes": ("cairn_chunk_bytes_read", "Bytes of the chunks that workers read."),
    "chunk_microseconds": ("cairn_chunk_read_seconds", "Time that workers spent reading chunks."),
}
_OVERRUNS = "overruns"
_LOSSES = "worker_losses"
_LIMITS = "job_limits"
_REQUESTS = "requests"
_ANSWERS = "answers"
_REQUEST_TIME = "request_microseconds"
#: Upper ends of the buckets of response times, in seconds.
_ANSWER_BUCKETS = ("0.01", "0.03", "0.1", "0.3", "1", "3", "10", "30")
#: Least status of the errors that are not the caller's.
_SERVER_ERROR = 500
#: Areas of the API whose requests take as long as their body, so that the histogram leaves them out.
_LONG_AREAS = ("uploads",)
_JOBS = "jobs"
_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
#: Reasons for which a worker process ends without having been told to.
LOSSES = ("memory", "killed", "crashed")
#: Limits that end a job.
LIMITS = ("time", "memory")
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
    count(session, {(_REFUSALS, problem): 1})


def claimed(session: Session, waited: timedelta) -> None:
    """Count a job that was claimed for the first time, by its waiting time."""
    seconds = max(0.0, waited.total_seconds())
    count(session, {(_CLAIMS, _bucket(seconds, _BUCKETS)): 1, (_WAITED, ""): round(seconds * 1e6)})


def _bucket(seconds: float, ends: Sequence[str]) -> str:
    return next((end for end in ends if seconds <= float(end)), _ENDLESS)


def ended(
    session: Session,
    dataset_id: int,
    state: JobState,
    *,
    before: JobState = JobState.QUEUED,
    times: int = 1,
) -> None:
    """Count jobs that ended; `before` is another state in which they were counted as ended, if they were."""
    amounts = {(_JOBS, f"{state} {dataset_id}"): times}
    if before not in (*_UNFINISHED, state):
        amounts[_JOBS, f"{before} {dataset_id}"] = -times
    count(session, {} if before == state else amounts)


def overran(session: Session, dataset_id: int) -> None:
    """Count a job that took longer than planned, or that a limit on time or memory ended."""
    count(session, {(_OVERRUNS, str(dataset_id)): 1})


def overruns(session: Session, dataset_id: int) -> int:
    """Return how many jobs on a dataset took longer than planned, or were ended by a limit."""
    found = session.get(Counter, (_OVERRUNS, str(dataset_id)))
    return found.value if found else 0


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
    count(session, {(_LOSSES, reason): 1})


def ended_by_limit(session: Session, limit: str) -> None:
    """Count a job that a limit on time or memory ended."""
    count(session, {(_LIMITS, limit): 1})


def request_served(area: str, status: int, seconds: float) -> None:
    """Note a request in this process; `take_requests` returns the sums."""
    with _lock:
        _requests[_REQUESTS, f"{area[:28]} {status}"] += 1
        _requests[_REQUEST_TIME, area[:28]] += round(seconds * 1e6)
        if area not in _LONG_AREAS:
            _requests[_ANSWERS, _bucket(seconds, _ANSWER_BUCKETS)] += 1
            _requests[_ANSWERS, "microseconds"] += round(seconds * 1e6)


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


def measure(session: Session, now: datetime, owner_id: int | None, spool: Path | None = None) -> bytes:
    """Return the metrics in Prometheus' text format.

    With an owner, those of their datasets; without, for operators, those of all datasets and of the
    machines. `spool` is the folder of this API process's uploads.
    """
    registry = CollectorRegistry()
    registry.register(_Snapshot(session, now, owner_id))
    if owner_id is None:
        registry.register(_Machines(session, now, spool or Path(gettempdir())))
    return generate_latest(registry)


class _Snapshot:
    """A collector that reads the metrics in one database session."""

    def __init__(self, session: Session, now: datetime, owner_id: int | None):
        self._session, self._now = session, now
        query = select(Dataset.id, Dataset.name)
        mine = query if owner_id is None else query.where(Dataset.owner_id == owner_id)
        self._datasets = {number: name for number, name in session.execute(mine)}  # noqa: C416 as below

    def collect(self) -> Iterator[Metric]:
        counters = {(row.name, row.label): row.value for row in self._session.scalars(select(Counter))}
        yield from self._jobs(counters)
        yield self._ledger()
        yield _labelled("cairn_refusals", "Submissions refused, by problem.", "problem", _REFUSALS, counters)
        waited = counters.get((_WAITED, ""), 0)
        yield _histogram(
            "cairn_claim_latency_seconds",
            "Time from a submission to its claim by a worker.",
            (_CLAIMS, _BUCKETS, waited),
            counters,
        )
        for name, (exposed, meaning) in _CHUNKS.items():
            scale = 1e-6 if name == "chunk_microseconds" else 1.0
            yield self._by_dataset(exposed, meaning, name, counters, scale)
        # Zeros too: a counter that appears with its first event has not increased, as Prometheus sees it.
        zeros = {(_OVERRUNS, str(dataset_id)): 0 for dataset_id in self._datasets}
        meaning = "Jobs that took longer than planned."
        yield self._by_dataset("cairn_overruns", meaning, _OVERRUNS, zeros | counters, 1.0)
        yield self._budgets()

    def _budgets(self) -> Metric:
        family = GaugeMetricFamily(
            "cairn_budget_spent_ratio",
            "Share of a dataset's epsilon or rho that is spent or reserved.",
            labels=["dataset"],
        )
        for account in self._session.scalars(select(Account).where(Account.grant_id.is_(None))):
            if name := self._datasets.get(account.dataset_id):
                used = account.loss_spent + account.loss_reserved
                family.add_metric([name], used / max(1, account.loss_total))
        return family

    def _by_dataset(
        self,
        name: str,
        meaning: str,
        counter: str,
        counters: Mapping[tuple[str, str], int],
        scale: float,
    ) -> Metric:
        """Return a counter of the datasets; it may tell of rows."""
        family = CounterMetricFamily(name, meaning, labels=["dataset", "source"])
        for source, dataset_id, amount in _by_label(counters, counter):
            if dataset_id in self._datasets:
                family.add_metric([self._datasets[dataset_id], source], amount * scale)
        return family

    def _jobs(self, counters: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
        found = collections.Counter(dict.fromkeys(JobState, 0))
        oldest = self._now
        for state, dataset_id, times, since in self._session.execute(
            select(Job.state, Job.dataset_id, func.count(), func.min(Job.queued_at))
            .where(Job.state.in_(_UNFINISHED))
            .group_by(Job.state, Job.dataset_id)
        ):
            found[state] += times if dataset_id in self._datasets else 0
            oldest = min(oldest, since) if state == JobState.QUEUED else oldest
        for label, dataset_id, times in _by_label(counters, _JOBS):
            found[JobState(label)] += times if dataset_id in self._datasets else 0
        family = GaugeMetricFamily("cairn_jobs", "Jobs by state.", labels=["state"])
        for state, times in found.items():
            family.add_metric([state], times)
        yield family
        age = (self._now - oldest).total_seconds()
        yield GaugeMetricFamily("cairn_queue_age_seconds", "Age of the oldest queued job.", value=age)

    def _ledger(self) -> Metric:
        found: collections.Counter[str] = collections.Counter()
        query = select(Account.dataset_id, Account.entries_by_kind).where(Account.grant_id.is_(None))
        for dataset_id, kinds in self._session.execute(query):
            found.update(kinds or {} if dataset_id in self._datasets else {})
        family = CounterMetricFamily(
            "cairn_ledger_entries", "Ledger entries by kind: charges among them.", labels=["kind"]
        )
        for kind, times in sorted(found.items()):
            family.add_metric([kind], times)
        return family


def _by_label(counters: Mapping[tuple[str, str], int], name: str) -> Iterator[tuple[str, int, int]]:
    """Yield the counts labelled `source dataset`, or by dataset alone."""
    for (kind, label), amount in sorted(counters.items()):
        source, _, dataset = label.rpartition(" ")
        if kind == name and dataset.isdecimal():
            yield source, int(dataset), amount


def _labelled(
    name: str, meaning: str, label: str, counter: str, counters: Mapping[tuple[str, str], int]
) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for (kind, value), amount in sorted(counters.items()):
        if kind == counter:
            family.add_metric([value], amount)
    return family


def _histogram(
    name: str,
    meaning: str,
    stored: tuple[str, Sequence[str], int],
    counters: Mapping[tuple[str, str], int],
) -> Metric:
    """Return a histogram of times; `stored` is its counter, its buckets and its sum in microseconds."""
    counter, ends, microseconds = stored
    running, buckets = 0, []
    for end in (*ends, _ENDLESS):
        running += counters.get((counter, end), 0)
        buckets.append((end, float(running)))
    return HistogramMetricFamily(name, meaning, buckets=buckets, sum_value=microseconds / 1e6)


class _Machines:
    """A collector of what concerns operators alone: workers, requests, disks, the database."""

    def __init__(self, session: Session, now: datetime, spool: Path):
        self._session, self._now, self._spool = session, now, spool

    def collect(self) -> Iterator[Metric]:
        counters = {(row.name, row.label): row.value for row in self._session.scalars(select(Counter))}
        lost = {(_LOSSES, reason): 0 for reason in LOSSES} | counters
        yield _labelled(
            "cairn_worker_processes_lost",
            "Worker processes that ended without having been told to, by reason.",
            "reason",
            _LOSSES,
            lost,
        )
        limits = {(_LIMITS, limit): 0 for limit in LIMITS} | counters
        yield _labelled(
            "cairn_jobs_ended_by_limit", "Jobs that a limit ended, by limit.", "limit", _LIMITS, limits
        )
        yield from self._requests(counters)
        yield from self._disks()
        yield GaugeMetricFamily(
            "cairn_database_bytes", "Size of the database.", value=database_bytes(self._session)
        )

    def _requests(self, counters: Mapping[tuple[str, str], int]) -> Iterator[Metric]:
        family = CounterMetricFamily(
            "cairn_http_requests", "Requests by area of the API and status.", labels=["area", "status"]
        )
        errors = 0
        for area, status, amount in _by_label(counters, _REQUESTS):
            family.add_metric([area, str(status)], amount)
            errors += amount if status >= _SERVER_ERROR else 0
        yield family
        yield CounterMetricFamily(
            "cairn_http_errors", "Requests that ended with a status of 500 or more.", value=errors
        )
        times = CounterMetricFamily(
            "cairn_http_seconds", "Time spent on requests, by area of the API.", labels=["area"]
        )
        for (name, area), microseconds in sorted(counters.items()):
            if name == _REQUEST_TIME:
                times.add_metric([area], microseconds / 1e6)
        yield times
        spent = counters.get((_ANSWERS, "microseconds"), 0)
        yield _histogram(
            "cairn_http_request_seconds",
            "Response times, uploads left out.",
            (_ANSWERS, _ANSWER_BUCKETS, spent),
            counters,
        )

    def _disks(self) -> Iterator[Metric]:
        workers = workforce.at_work(self._session, self._now)
        yield GaugeMetricFamily("cairn_workers", "Worker processes at work.", value=len(workers))
        cache = GaugeMetricFamily("cairn_cache_bytes", "Size of the chunk cache.", labels=["machine"])
        free = GaugeMetricFamily(
            "cairn_disk_free_ratio", "Free share of the disk of a folder.", labels=["machine", "folder"]
        )
        for record in {record.machine: record for record in workers}.values():
            cache.add_metric([record.machine], record.cache_bytes)
            free.add_metric([record.machine, "cache"], record.disk_free_bytes / max(1, record.disk_bytes))
        spool = workforce.disk_usage(self._spool)
        free.add_metric([workforce.machine_name(), "spool"], spool.free / spool.total)
        yield cache
        yield free


def database_bytes(session: Session) -> int:
    """Return the size of the whole database."""
    if session.get_bind().dialect.name == "postgresql":
        return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0)
    pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    return int(session.scalar(text(pages)) or 0)
