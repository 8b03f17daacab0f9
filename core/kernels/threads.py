"""Share blocks of rows among as many threads as BLAS may use, each with single-threaded BLAS.

Threads inside BLAS speed up products alone and wait for each other at every block; threads over blocks
speed up everything. Their number is BLAS's own limit, so that one setting governs both.
"""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

from core.arrays import Integers

Result = TypeVar("Result")

#: Held while BLAS is limited. A caller that finds it taken runs in one of several threads already.
_lent = threading.Lock()


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


@contextmanager
def _borrowed_threads() -> Iterator[int]:
    """Number of threads to use, while BLAS is limited to one thread in each of them."""
    if not _lent.acquire(blocking=False):
        yield 1
        return
    try:
        most = max((library.num_threads for library in _blas().lib_controllers), default=1)
        if most == 1:  # limiting it to what it is takes longer than a small block
            yield most
            return
        with _blas().limit(limits=1):
            yield most
    finally:
        _lent.release()


class _Shared(Iterator[slice]):
    """An iterator that several threads may draw from."""

    def __init__(self, blocks: Sequence[slice]) -> None:
        self._blocks = iter(blocks)
        self._lock = threading.Lock()

    def __next__(self) -> slice:
        with self._lock:
            return next(self._blocks)


def share_blocks(work: Callable[[Iterator[slice]], Result], blocks: Sequence[slice]) -> list[Result]:
    """Call `work` once per thread with an iterator over blocks; each block goes to one of them.

    Results come in any order and divide blocks in any way: sum them exactly, or write to separate places.
    """
    if len(blocks) <= 1:
        return [work(iter(blocks))]
    with _borrowed_threads() as most:
        threads = min(most, len(blocks))
        if threads == 1:
            return [work(iter(blocks))]
        shared = _Shared(blocks)
        with ThreadPoolExecutor(threads) as pool:
            return [future.result() for future in [pool.submit(work, shared) for _ in range(threads)]]


def sum_blocks(work: Callable[[Iterator[slice]], Integers], blocks: Sequence[slice]) -> Integers:
    """The sum of what `work` returns in each thread: exact integers, so their order does not matter."""
    first, *others = share_blocks(work, blocks)
    for other in others:
        first += other
    return first
