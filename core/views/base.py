"""Rows derived by pure functions of a chunk and of released parameters.

A view knows the norm its rows cannot exceed (`radius`) and how wide they are, which is all a
statistic needs to declare its sensitivity. Parameters are released or public; a view never looks at
another record than the one it derives, so neighbours stay neighbours.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import fields
from functools import cached_property
from typing import Any, Protocol, TypeVar

import numpy as np

from core.arrays import Rows
from core.data import Chunk

#: Bytes of derived rows that one process keeps.
CACHE_BYTES = 144 << 20


class _Cache:
    """Derived chunks, bounded in bytes; makes room by dropping whole views that are out of use.

    A pass over more chunks than fit must not evict what the same pass will need next time, so a view
    is dropped only for another one, and never while the chunk at hand was derived from it. Where all are in
    use, those that take fewer bytes for a record are kept: an assignment saves as much time as the rows it
    was made from, at a tenth of their size.
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


def limit_cache(most_bytes: int) -> None:
    """Let this process keep so many bytes of derived rows."""
    CACHE.most_bytes = most_bytes


def clear_cache() -> None:
    """Forget every derived chunk of this process."""
    CACHE.clear()


class _Sized(Protocol):
    @property
    def nbytes(self) -> int: ...


Derived = TypeVar("Derived", bound=_Sized)


class View:
    """A derivation; two views with the same digest derive the same."""

    domain: str

    @cached_property
    def digest(self) -> str:
        hasher = hashlib.sha256(type(self).__name__.encode())
        for field in fields(self):  # type: ignore[arg-type]  # every view is a dataclass
            value = getattr(self, field.name)
            if isinstance(value, View):
                hasher.update(value.digest.encode())
            elif isinstance(value, np.ndarray):
                hasher.update(f"{value.dtype}{value.shape}".encode() + value.tobytes())
            else:
                hasher.update(repr(value).encode())
            hasher.update(b";")
        return hasher.hexdigest()

    def cached(self, chunk: Chunk, make: Callable[[], Derived]) -> Derived:
        """The result of `make`, which derives something from the chunk, or that of an earlier call."""
        derived: Derived = CACHE.get(self.digest, chunk.key, make)
        return derived


class DerivedView(View):
    """A view of another view's rows."""

    base: RowView

    @property
    def domain(self) -> str:  # type: ignore[override]  # a field of the views that records are read by
        return self.base.domain


class RowView(View):
    """A view that yields rows of integers, `width` wide, with norms of at most `radius`."""

    width: int
    radius: int

    def rows(self, chunk: Chunk) -> Rows:
        raise NotImplementedError
