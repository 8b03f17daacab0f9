"""Prometheus metrics, read from the database, so that every API process reports the same.

Nothing here walks through a table that grows: events are counted in `counters`, ledger entries in their
account, by the transaction that makes them. Some of it depends on rows (how long jobs take, how many chunks
are read), so it is for operators and, for each dataset, its owner.
"""

import collections
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from threading import Lock

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from sqlalchemy import func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

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
_JOBS = "jobs"
_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
_chunks_read: collections.Counter[tuple[str, str]] = collections.Counter()
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
    bucket = next((end for end in _BUCKETS if seconds <= float(end)), _ENDLESS)
    count(session, {(_CLAIMS, bucket): 1, (_WAITED, ""): round(seconds * 1e6)})


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


def measure(session: Session, now: datetime, owner_id: int | None) -> bytes:
    """Return the metrics in Prometheus' text format: of all datasets, or with an owner, of theirs."""
    registry = CollectorRegistry()
    registry.register(_Snapshot(session, now, owner_id))
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
        yield _claims(counters)
        for name, (exposed, meaning) in _CHUNKS.items():
            scale = 1e-6 if name == "chunk_microseconds" else 1.0
            yield self._by_dataset(exposed, meaning, name, counters, scale)
        yield self._by_dataset(
            "cairn_overruns", "Jobs that took longer than planned.", _OVERRUNS, counters, 1.0
        )

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


def _claims(counters: Mapping[tuple[str, str], int]) -> Metric:
    running, buckets = 0, []
    for end in (*_BUCKETS, _ENDLESS):
        running += counters.get((_CLAIMS, end), 0)
        buckets.append((end, float(running)))
    return HistogramMetricFamily(
        "cairn_claim_latency_seconds",
        "Time from a submission to its claim by a worker.",
        buckets=buckets,
        sum_value=counters.get((_WAITED, ""), 0) / 1e6,
    )
