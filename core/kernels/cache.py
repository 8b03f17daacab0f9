"""Derived rows that one process keeps in memory, so that later measurements need not derive them again."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

#: Bytes of derived rows that a process keeps at least, unless it is told otherwise.
CACHE_BYTES = 384 << 20
#: The cache keeps at most the machine's memory divided by this number.
_MEMORY_SHARE = 8
#: Where Linux states the memory of a container.
_CONTAINER = Path("/sys/fs/cgroup/memory.max")
#: Requests for other views after which a view is no longer in use, even if the current chunk was its last:
#: in a dataset of a single chunk, the current chunk is every view's last.
_OUT_OF_USE = 64


def default_cache_bytes() -> int:
    """What CAIRN_VIEW_CACHE_BYTES says, or else an eighth of the memory of this machine or container."""
    if told := os.environ.get("CAIRN_VIEW_CACHE_BYTES"):
        return int(told)
    return max(CACHE_BYTES, _memory() // _MEMORY_SHARE)


def _memory() -> int:
    """Bytes of memory; zero where the system does not say."""
    try:
        physical = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 0
    limit = _CONTAINER.read_text().strip() if _CONTAINER.is_file() else "max"
    return min(physical, int(limit)) if limit.isdigit() else physical


class _Cache:
    """Derived chunks, bounded in bytes; makes room by dropping whole views that are no longer in use.

    A pass over more chunks than fit must not evict what it needs next time, so a view is dropped only for
    another one, and never while the current chunk was derived from it. Where all are in use, those that take
    fewer bytes for a record are kept: they save as much time at a tenth of the size.
    """

    def __init__(self) -> None:
        self.most_bytes = default_cache_bytes()
        self._lock = threading.Lock()
        self._views: OrderedDict[str, dict[Hashable, tuple[Any, int]]] = OrderedDict()
        self._last: dict[str, Hashable] = {}
        #: When each view was asked for last, in requests.
        self._asked: dict[str, int] = {}
        self._requests = 0
        self._bytes = 0

    def get(self, digest: str, key: Hashable, make: Callable[[], Any]) -> Any:
        with self._lock:
            self._last[digest] = key
            self._requests += 1
            self._asked[digest] = self._requests
            if digest in self._views:
                self._views.move_to_end(digest)
                if key in self._views[digest]:
                    return self._views[digest][key][0]
        value = make()
        with self._lock:
            self._insert(digest, key, value, value.nbytes)
        return value

    def _insert(self, digest: str, key: Hashable, value: Any, size: int) -> None:
        if not self._fits(size):
            self._drop_unused(digest, key, size)
            self._drop_larger(size)
        if self._fits(size):
            chunks = self._views.setdefault(digest, {})
            if key not in chunks:
                chunks[key] = (value, size)
                self._bytes += size

    def _fits(self, size: int) -> bool:
        return self._bytes + size <= self.most_bytes

    def _drop_unused(self, digest: str, key: Hashable, size: int) -> None:
        """Make room by dropping other views, those used longest ago first, that this chunk does not need."""
        for other in list(self._views):
            if self._fits(size):
                break
            if other != digest and (self._last.get(other) != key or self._is_out_of_use(other)):
                self._bytes -= sum(n for _, n in self._views.pop(other).values())
                self._last.pop(other, None)
                self._asked.pop(other, None)

    def _is_out_of_use(self, digest: str) -> bool:
        return self._requests - self._asked.get(digest, 0) > _OUT_OF_USE

    def _drop_larger(self, size: int) -> None:
        """Make room by dropping chunks that are larger."""
        if size > self.most_bytes:
            return
        for chunks in self._views.values():
            # Chunks of a view differ in size only at the end of a dataset, so the first tells the size.
            first = next(iter(chunks.values()), None)
            while first is not None and first[1] > size and chunks and not self._fits(size):
                self._bytes -= chunks.popitem()[1][1]

    def clear(self) -> None:
        with self._lock:
            self._views.clear()
            self._last.clear()
            self._asked.clear()
            self._bytes = 0


CACHE = _Cache()
#: Forgets every derived chunk of this process.
clear_cache = CACHE.clear


def limit_cache(most_bytes: int) -> None:
    """Let this process keep derived rows up to this size."""
    CACHE.most_bytes = most_bytes
