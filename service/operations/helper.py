"""A process that computes for the API, whose interpreter long computations would keep from other requests."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from multiprocessing import get_context
from typing import TypeVar

import structlog

from service.errors import Unavailable

log = structlog.get_logger()
Found = TypeVar("Found")

#: Priority of the process below that of requests and jobs.
_NICENESS = 5
#: Seconds between two looks at whether the API is still there.
_LOOK_SECONDS = 1.0


class CallerGone(Exception):
    """Whoever asked has gone, so that nothing was computed."""


class Helper:
    """One process, started when it is first needed; it does one thing at a time, and one for each caller."""

    def __init__(self) -> None:
        self._pool: ProcessPoolExecutor | None = None
        self._turns: dict[int, asyncio.Lock] = {}

    async def run(self, caller: int, gone: Callable[[], Awaitable[bool]], work: Callable[[], Found]) -> Found:
        """Return what `work` returns, when it is the caller's turn; CallerGone if `gone()` is true by then.

        A caller has one piece of work in the queue, whatever they ask for at once.
        """
        async with self._turns.setdefault(caller, asyncio.Lock()):
            if await gone():
                raise CallerGone
            self._pool = self._pool or _start()
            try:
                return await asyncio.get_running_loop().run_in_executor(self._pool, work)
            except BrokenProcessPool:
                log.error("the process that helps the API was lost; another is started when it is needed")
                self._pool = None
                raise Unavailable(
                    "the service could not finish this; try again", headers={"Retry-After": "2"}
                ) from None

    def close(self) -> None:
        """Stop the process; what waits for it is dropped."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None


def _start() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=partial(_serve, os.getpid()))


def _serve(parent: int) -> None:
    """Prepare the process: it gives way to others, and ends with the API."""
    os.nice(_NICENESS)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_SECONDS)
        os._exit(0)

    threading.Thread(target=watch, daemon=True, name="watch").start()
