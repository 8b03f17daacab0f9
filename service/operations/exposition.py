"""The metrics page in Prometheus' text format: what was counted, and what the tables say now.

Some of it depends on rows (how long jobs take, how many chunks are read), so it is for operators and, for
each dataset, its owner.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from tempfile import gettempdir

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from service.operations import metrics, workforce
from service.operations.states import JobState
from service.operations.tables import Account, Counter, Dataset, Job

_CHUNKS = {
    "chunks": ("cairn_chunks_read", "Chunks that workers read, by where they found them."),
    "chunk_bytes": ("cairn_chunk_bytes_read", "Bytes of the chunks that workers read."),
    "chunk_microseconds": ("cairn_chunk_read_seconds", "Time that workers spent reading chunks."),
}
_UNFINISHED = (JobState.QUEUED, JobState.RUNNING)
#: Least status of the errors that are not the caller's.
_SERVER_ERROR = 500


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
        yield _labelled(
            "cairn_refusals", "Submissions refused, by problem.", "problem", metrics.REFUSALS, counters
        )
        waited = counters.get((metrics.WAITED, ""), 0)
        yield _histogram(
            "cairn_claim_latency_seconds",
            "Time from a submission to its claim by a worker.",
            (metrics.CLAIMS, metrics.WAITING_BUCKETS, waited),
            counters,
        )
        for name, (exposed, meaning) in _CHUNKS.items():
            scale = 1e-6 if name == "chunk_microseconds" else 1.0
            yield self._by_dataset(exposed, meaning, name, counters, scale)
        # Zeros too: a counter that appears with its first event has not increased, as Prometheus sees it.
        labels = (label for dataset_id in self._datasets for label in metrics.overrun_labels(dataset_id))
        zeros = {(metrics.OVERRUNS, label): 0 for label in labels}
        meaning = "Jobs that took longer than planned, by source: `limit` if a limit ended them."
        yield self._by_dataset("cairn_overruns", meaning, metrics.OVERRUNS, zeros | counters, 1.0)
        yield self._budgets()

    def _budgets(self) -> Metric:
        family = GaugeMetricFamily(
            "cairn_budget_spent_ratio",
            "Share of a dataset's epsilon or rho that is spent or reserved; of its periods, the largest.",
            labels=["dataset"],
        )
        shares: dict[str, float] = {}
        for account in self._session.scalars(select(Account).where(Account.grant_id.is_(None))):
            if name := self._datasets.get(account.dataset_id or 0):
                share = (account.loss_spent + account.loss_reserved) / max(1, account.loss_total)
                shares[name] = max(share, shares.get(name, 0.0))
        for name, share in shares.items():
            family.add_metric([name], share)
        return family

    def _by_dataset(
        self,
        name: str,
        meaning: str,
        counter: str,
        counters: Mapping[tuple[str, str], int],
        scale: float,
    ) -> Metric:
        """Return a counter of the datasets; it may reveal something about rows."""
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
        for label, dataset_id, times in _by_label(counters, metrics.JOBS):
            found[JobState(label)] += times if dataset_id in self._datasets else 0
        family = GaugeMetricFamily("cairn_jobs", "Jobs by state.", labels=["state"])
        for state, times in found.items():
            family.add_metric([state], times)
        yield family
        age = (self._now - oldest).total_seconds()
        yield GaugeMetricFamily("cairn_queue_age_seconds", "Age of the oldest queued job.", value=age)

    def _ledger(self) -> Metric:
        found: collections.Counter[str] = collections.Counter()
        query = select(Account.dataset_id, Account.entries_by_kind).where(Account.entries > 0)
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
    for end in (*ends, metrics.ENDLESS):
        running += counters.get((counter, end), 0)
        buckets.append((end, float(running)))
    return HistogramMetricFamily(name, meaning, buckets=buckets, sum_value=microseconds / 1e6)


class _Machines:
    """A collector of what concerns operators alone: workers, requests, disks, the database."""

    def __init__(self, session: Session, now: datetime, spool: Path):
        self._session, self._now, self._spool = session, now, spool

    def collect(self) -> Iterator[Metric]:
        counters = {(row.name, row.label): row.value for row in self._session.scalars(select(Counter))}
        lost = {(metrics.WORKER_LOSSES, reason): 0 for reason in metrics.LOSSES} | counters
        yield _labelled(
            "cairn_worker_processes_lost",
            "Worker processes that ended without having been told to, by reason.",
            "reason",
            metrics.WORKER_LOSSES,
            lost,
        )
        limits = {(metrics.JOB_LIMITS, limit): 0 for limit in metrics.LIMITS} | counters
        yield _labelled(
            "cairn_jobs_ended_by_limit",
            "Jobs that a limit ended, by limit.",
            "limit",
            metrics.JOB_LIMITS,
            limits,
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
        for area, status, amount in _by_label(counters, metrics.REQUESTS):
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
            if name == metrics.REQUEST_TIME:
                times.add_metric([area], microseconds / 1e6)
        yield times
        spent = counters.get((metrics.RESPONSES, "microseconds"), 0)
        yield _histogram(
            "cairn_http_request_seconds",
            "Response times, uploads left out.",
            (metrics.RESPONSES, metrics.RESPONSE_BUCKETS, spent),
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
        total, left = workforce.disk_space(self._spool)
        free.add_metric([workforce.machine_name(), "spool"], left / max(1, total))
        yield cache
        yield free


def database_bytes(session: Session) -> int:
    """Return the size of the whole database."""
    if session.get_bind().dialect.name == "postgresql":
        return int(session.scalar(text("SELECT pg_database_size(current_database())")) or 0)
    pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    return int(session.scalar(text(pages)) or 0)
