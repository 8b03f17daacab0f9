"""Executors of chunk tasks: the worker itself, or a Dask cluster.

On a cluster, statistics are evaluated by its workers and come back as exact integers; noise is drawn where
the probe is, in the job's own process. A task that is lost with its worker runs again elsewhere: it is a pure
function of a chunk and of released parameters. A cluster that loses a task for good, or lets one wait for too
long, is given up: the job's process does that task and the rest of them.
"""

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

#: How long a cluster may take to answer before a job does without it.
_CONNECT_SECONDS = 10


@contextmanager
def make_executor(settings: Settings) -> Iterator[Executor | None]:
    """None for inline execution, with BLAS threads doing the parallel work; else a cluster's executor.

    A cluster that does not answer, or has no workers, costs time and not the job, which is charged already.
    """
    client, workers = _connect(settings.cluster) if settings.cluster else (None, [])
    if client is None:
        yield None
        return
    try:
        yield ClusterExecutor(client, workers, settings.cluster_seconds)
    finally:
        try:
            client.close(timeout=_CONNECT_SECONDS)
        except Exception as error:  # no reason to fail a job that has its result
            log.warning("the connection to the cluster could not be closed", error=type(error).__name__)


def _connect(address: str) -> tuple[Any, list[str]]:
    """A client of the cluster and the addresses of its workers; no client if the job must do without."""
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
    """Sends every task on a chunk to the same worker while that lives, where what was derived is cached."""

    def __init__(self, client: Any, workers: Sequence[str], seconds: float):
        """`seconds`: how long the job waits for a task before the cluster is given up."""
        self._seconds = seconds
        # Every call is a task of its own, and any worker may take it when its own is busy or gone.
        self._executors: list[Executor] = [
            client.get_executor(pure=False, workers=[address], allow_other_workers=True)
            for address in workers
        ]
        self._next = cycle(self._executors)
        self._homes: dict[Hashable, Executor] = {}
        self._given_up = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """One task; the last argument is the chunk's loader. By position: Dask has a use for keywords."""
        key = getattr(args[-1], "key", None) if args else None
        if key not in self._homes:
            self._homes[key] = next(self._next)
        sent: Future[T] | None = None
        if not self._given_up:
            try:
                sent = self._homes[key].submit(fn, *args, **kwargs)
            except Exception as error:  # of the client: the task itself has not begun
                self._give_up(type(error).__name__)
        return _Insured(self, sent, fn, args)

    def outcome(self, sent: Future[T] | None, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
        """The outcome of a task as the cluster or, if that is given up, as this process computes it."""
        if sent is not None:
            # Once the cluster is given up, only what has arrived already is taken from it.
            wait([sent], 0 if self._given_up else self._seconds)
            try:
                if sent.done():
                    return sent.result()
                self._give_up("a task waits for too long")
            except (import_module("distributed").KilledWorker, CancelledError) as error:
                self._give_up(type(error).__name__)
        return fn(*args)

    def _give_up(self, reason: str) -> None:
        if not self._given_up:
            log.warning("the cluster is given up; this process does the rest", reason=reason)
        self._given_up = True


class _Insured(Future[T]):
    """The outcome of a task on a cluster; computed here if the cluster lost it for good."""

    def __init__(
        self, executor: ClusterExecutor, sent: Future[T] | None, fn: Callable[..., T], args: tuple[Any, ...]
    ):
        super().__init__()
        self._executor, self._sent, self._fn, self._args = executor, sent, fn, args

    def result(self, timeout: float | None = None) -> T:
        return self._executor.outcome(self._sent, self._fn, self._args)
