"""Where chunk tasks run: in the worker itself, or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module

from service.settings import Settings

__all__ = ["make_executor"]


@contextmanager
def make_executor(settings: Settings) -> Iterator[Executor | None]:
    """None for inline execution, with BLAS threads doing the parallel work; else a cluster's executor."""
    if not settings.cluster:
        yield None
        return
    distributed = import_module("distributed")  # an extra: only needed where a cluster is
    with distributed.Client(settings.cluster) as client:
        yield client.get_executor()
