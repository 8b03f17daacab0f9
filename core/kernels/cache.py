"""Derived rows that one process keeps in memory, so that later measurements need not derive them again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any

#: Bytes of derived rows that one process keeps.
CACHE_BYTES = 144 << 20


class _Cache:
    """Derived chunks, bounded in bytes; makes room by dropping whole views that are out of use.

    A pass over more chunks than fit must not evict what it needs next time, so a view is dropped only for
    another one, and never while the chunk at hand was derived from it. Where all are in use, those that take
    fewer bytes for a record are kept: they save as much time at a tenth of the size.
    """

    def __init__(self) -> None:
        self.most_bytes = CACHE_BYTES
        self._lock = threading.Lock()
        self._views: OrderedDict[str, dict[Hashable, tuple[Any, int]]] = OrderedDict()
        self._last: dict[str, Hashable] = {}
        self._bytes = 0

    def get(self, digest: str, key: Hashable, make: Callable[[], Any]) -> Any:
        with self._lock:
            self._last[digest] = key
            if digest in self._views:
                self._views.move_to_end(digest)
                if key in self._views[digest]:
                    return self._views[digest][key][0]
        value = make()
        with self._lock:
            self._insert(digest, key, value, value.nbytes)
        return value

    def _insert(self, digest: str, key: Hashable, value: Any, size: int) -> None:
        for other in list(self._views):
            if self._bytes + size <= self.most_bytes:
                break
            if other != digest and self._last.get(other) != key:
                self._bytes -= sum(n for _, n in self._views.pop(other).values())
                self._last.pop(other, None)
        self._drop_larger(key, size)
        if self._bytes + size <= self.most_bytes:
            chunks = self._views.setdefault(digest, {})
            if key not in chunks:
                chunks[key] = (value, size)
                self._bytes += size

    def _drop_larger(self, key: Hashable, size: int) -> None:
        """Make room for a value derived from this chunk by dropping larger ones."""
        if size > self.most_bytes:
            return
        for chunks in self._views.values():
            # Chunks of a view differ in size only at the end of a dataset, so the first one stands for all.
            first = next(iter(chunks.values()), None)
            while first is not None and first[1] > size and chunks and self._bytes + size > self.most_bytes:
                self._bytes -= chunks.popitem()[1][1]

    def clear(self) -> None:
        with self._lock:
            self._views.clear()
            self._last.clear()
            self._bytes = 0


CACHE = _Cache()
#: Forgets every derived chunk of this process.
clear_cache = CACHE.clear


def limit_cache(most_bytes: int) -> None:
    """Let this process keep so many bytes of derived rows."""
    CACHE.most_bytes = most_bytes
