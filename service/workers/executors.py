"""Executors of chunk tasks: the worker itself, or a Dask cluster.

On a cluster, statistics are evaluated by its workers and come back as exact integers; noise is drawn where
the probe is, in the job's own process. A task that is lost with its worker runs again elsewhere: it is a pure
function of a chunk and of released parameters. A cluster that loses a task for good, or lets one wait for too
long, is given up: the job's process does that task and the rest of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, wait
from contextlib import contextmanager
from importlib import import_module
from itertools import cycle
from typing import Any, ParamSpec, TypeVar

import structlog

from service.operations.settings import Settings

log = structlog.get_logger()

P = ParamSpec("P")
T = TypeVar("T")

#: Tasks of a batch at most: on full chunks about a second of work.
_BATCH = 8
#: How long a cluster may take to answer before a job does without it.
_CONNECT_SECONDS = 10


def load(settings: Settings) -> None:
    """Import what a cluster takes now: a worker's first job must take no longer than the next."""
    if settings.cluster:
        import_module("distributed")


@contextmanager
def make_executor(settings: Settings, planned: float = 0.0) -> Iterator[Executor | None]:
    """None for inline execution, with BLAS threads doing the parallel work; else a cluster's executor.

    `planned`: seconds for which the whole job is planned; it waits at least as long for any part of it. A
    cluster that does not answer, or has no workers, costs time and not the job, which is charged already.
    """
    client, workers = _connect(settings.cluster) if settings.cluster else (None, [])
    if client is None:
        yield None
        return
    try:
        yield ClusterExecutor(client, workers, max(settings.cluster_seconds, planned))
    finally:
        try:
            client.close(timeout=_CONNECT_SECONDS)
        except Exception as error:  # no reason to fail a job that has its result
            log.warning("the connection to the cluster could not be closed", error=type(error).__name__)


def _connect(address: str) -> tuple[Any, list[str]]:
    """A client of the cluster and the addresses of its workers; no client if the job must run without one."""
    distributed = import_module("distributed")  # an extra: only needed where a cluster is
    try:
        # Asked first: a client waits without a limit for a scheduler that takes connections and is silent.
        workers = asyncio.run(asyncio.wait_for(_workers(distributed, address), _CONNECT_SECONDS))
        if workers:
            return distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False), workers
        log.warning("the cluster has no workers; the job runs in this process")
    except OSError as error:
        log.warning("the cluster does not answer; the job runs in this process", error=type(error).__name__)
    return None, []


async def _workers(distributed: Any, address: str) -> list[str]:
    security = distributed.Security()
    scheduler = distributed.rpc(address, connection_args=security.get_connection_args("client"))
    try:
        return sorted(await scheduler.ncores(workers=None))
    finally:
        await scheduler.close_rpc()


class ClusterExecutor(Executor):
    """Sends tasks in batches, those on a chunk to the same worker while that lives: it has caches of it."""

    def __init__(self, client: Any, workers: Sequence[str], seconds: float):
        """`seconds`: how long the job waits for a batch before the cluster is given up."""
        self._seconds = seconds
        # Every call is a separate task, and any worker may take it when its own is gone.
        homes = [
            client.get_executor(pure=False, workers=[address], allow_other_workers=True)
            for address in workers
        ]
        self._next = cycle(homes)
        self._homes: dict[Hashable, Executor] = {}
        #: Batches that may get further tasks, by the executor of their worker.
        self._open: dict[Executor, _Batch] = {}
        self._given_up = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """One task; the last argument is the chunk's loader. By position: Dask has a use for keywords."""
        key = getattr(args[-1], "key", None) if args else None
        if key not in self._homes:
            self._homes[key] = next(self._next)
        home = self._homes[key]
        batch = self._open.setdefault(home, _Batch())
        batch.calls.append((fn, args))
        if len(batch.calls) >= _BATCH:
            self._send(home)
        return _Insured(self, batch, len(batch.calls) - 1)

    def _send(self, home: Executor) -> None:
        batch = self._open.pop(home)
        if not self._given_up:
            try:
                batch.sent = home.submit(_call_all, batch.calls)
            except Exception as error:  # of the client: no task has begun
                self._give_up(type(error).__name__)

    def outcomes(self, batch: _Batch) -> list[Any] | None:
        """The outcomes of a batch from the cluster; None if that is given up without them."""
        if batch.sent is None or not batch.sent.done():
            for home in list(self._open):  # nobody should be idle while the job waits
                self._send(home)
        if batch.sent is None:
            return None
        # Once the cluster is given up, only what has arrived already is taken from it.
        wait([batch.sent], 0 if self._given_up else self._seconds)
        try:
            if batch.sent.done():
                found: list[Any] = batch.sent.result()
                return found
            self._give_up("a task waits for too long")
        except (import_module("distributed").KilledWorker, CancelledError) as error:
            self._give_up(type(error).__name__)
        return None

    def _give_up(self, reason: str) -> None:
        if not self._given_up:
            log.warning("the cluster is given up; this process does the rest", reason=reason)
        self._given_up = True


class _Batch:
    """Tasks on chunks of one worker, which travel as one: a message costs as much as a small task."""

    def __init__(self) -> None:
        self.calls: list[tuple[Callable[..., Any], tuple[Any, ...]]] = []
        self.sent: Future[list[Any]] | None = None


def _call_all(calls: Sequence[tuple[Callable[..., Any], tuple[Any, ...]]]) -> list[Any]:
    """Carry out a batch, on a worker of the cluster."""
    return [fn(*args) for fn, args in calls]


class _Insured(Future[T]):
    """The outcome of a task on a cluster; computed here if the cluster lost it for good."""

    def __init__(self, executor: ClusterExecutor, batch: _Batch, number: int):
        super().__init__()
        self._executor, self._batch, self._number = executor, batch, number

    def result(self, timeout: float | None = None) -> T:
        outcomes = self._executor.outcomes(self._batch)
        if outcomes is None:
            fn, args = self._batch.calls[self._number]
            outcome: T = fn(*args)
            return outcome
        found: T = outcomes[self._number]
        return found
