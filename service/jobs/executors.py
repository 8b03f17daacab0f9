"""Where chunk tasks run: in the worker itself, or on a Dask cluster.

On a cluster, statistics are evaluated by its workers and come back as exact integers; noise is drawn where
the probe is, in the job's own process. A task that is lost with its worker runs again elsewhere: it is a pure
function of a chunk and of released parameters. What a cluster cannot do any more, the job's process does.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from importlib import import_module
from itertools import cycle
from typing import Any, ParamSpec, TypeVar

import structlog

from service.operations.settings import Settings

__all__ = ["ClusterExecutor", "make_executor"]

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
    client = _connect(settings.cluster) if settings.cluster else None
    if client is None:
        yield None
        return
    with client:
        yield ClusterExecutor(client)


def _connect(address: str) -> Any:
    distributed = import_module("distributed")  # an extra: only needed where a cluster is
    try:
        client = distributed.Client(address, timeout=_CONNECT_SECONDS, set_as_default=False)
    except OSError as error:
        log.warning("the cluster does not answer; the job runs in this process", error=type(error).__name__)
        return None
    if not client.nthreads():
        log.warning("the cluster has no workers; the job runs in this process")
        client.close()
        return None
    return client


class ClusterExecutor(Executor):
    """Sends every task on a chunk to the same worker while that lives, where what was derived is cached."""

    def __init__(self, client: Any):
        self._client = client
        # Every call is a task of its own, and any worker may take it when its own is busy or gone.
        self._executors: list[Executor] = [
            client.get_executor(pure=False, workers=[address], allow_other_workers=True)
            for address in sorted(client.nthreads())
        ]
        self._next = cycle(self._executors)
        self._homes: dict[Hashable, Executor] = {}

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """One task; the last argument is the chunk's loader. By position: Dask has a use for keywords."""
        key = getattr(args[-1], "key", None) if args else None
        if key not in self._homes:
            self._homes[key] = next(self._next)
        return _Insured(self._homes[key].submit(fn, *args, **kwargs), fn, args)


class _Insured(Future[T]):
    """The outcome of a task on a cluster; computed here if the cluster lost it for good."""

    def __init__(self, future: Future[T], fn: Callable[..., T], args: tuple[Any, ...]):
        super().__init__()
        self._future, self._fn, self._args = future, fn, args

    def result(self, timeout: float | None = None) -> T:
        killed: type[Exception] = import_module("distributed").KilledWorker
        try:
            return self._future.result(timeout)
        except (killed, CancelledError) as error:
            log.warning("the cluster lost a task; this process repeats it", error=type(error).__name__)
            return self._fn(*self._args)
