"""Where rows come from: a domain and picklable loaders of chunks that know their records' ordinals."""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.domain import MAX_RECORDS, Dense, Domain, Ids, Sparse
from core.errors import InvalidData

__all__ = ["ArraySource", "Chunk", "ChunkLoader", "DataSource", "SparseSource", "chunk_rows_for"]

#: Bytes of encoded rows in one chunk: a task of about a tenth of a second.
CHUNK_BYTES = 1 << 25
#: Encoded arrays above this size are kept in a temporary file, mapped into memory.
_IN_MEMORY_BYTES = 1 << 28


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive encoded records; `first` is the ordinal of the first one in the whole dataset."""

    rows: npt.NDArray[np.int16] | npt.NDArray[np.int32] | sp.csr_array
    first: int
    key: Hashable

    def __len__(self) -> int:
        return int(self.rows.shape[0])


@runtime_checkable
class ChunkLoader(Protocol):
    """Loads one chunk, in this process or in another; pickles by value or by reference."""

    @property
    def key(self) -> Hashable:
        """Names the chunk's content, for caches of what was derived from it."""

    def __call__(self) -> Chunk: ...


@runtime_checkable
class DataSource(Protocol):
    """A domain and the chunks of a dataset inside it."""

    @property
    def domain(self) -> Domain: ...

    def loaders(self) -> Sequence[ChunkLoader]: ...


def chunk_rows_for(domain: Domain) -> int:
    """How many records make a chunk: a function of public facts."""
    width = 64 if isinstance(domain, Sparse) else domain.dimension
    return max(1024, min(1 << 20, CHUNK_BYTES // (2 * width)))


@dataclass(frozen=True, eq=False)
class _Slice:
    """Loads some rows of an array that is already encoded."""

    rows: Any
    first: int
    source: str

    @property
    def key(self) -> Hashable:
        return (self.source, self.first, self.rows.shape[0])

    def __call__(self) -> Chunk:
        return Chunk(self.rows, self.first, self.key)


class _EncodedSource:
    """Rows that were encoded once, cut into chunks."""

    def __init__(self, domain: Domain, encoded: Any, chunk_rows: int | None) -> None:
        if encoded.shape[0] > MAX_RECORDS:
            raise InvalidData(f"a dataset holds at most {MAX_RECORDS} records")
        self._domain = domain
        self._encoded = encoded
        self._chunk_rows = chunk_rows or chunk_rows_for(domain)
        self._name = uuid.uuid4().hex

    @property
    def domain(self) -> Domain:
        return self._domain

    def loaders(self) -> Sequence[ChunkLoader]:
        return self._loaders

    @cached_property
    def _loaders(self) -> list[ChunkLoader]:
        step = self._chunk_rows
        return [
            _Slice(self._encoded[start : start + step], start, self._name)
            for start in range(0, self._encoded.shape[0], step)
        ]


class ArraySource(_EncodedSource):
    """Rows of a numpy array or a memory map, encoded once; large ones into a temporary file."""

    def __init__(self, domain: Dense | Ids, rows: npt.ArrayLike, *, chunk_rows: int | None = None) -> None:
        array = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
        if isinstance(domain, Ids):
            super().__init__(domain, domain.encode(array), chunk_rows)
            return
        if array.ndim != 2 or array.shape[1] != domain.dimension:
            raise InvalidData(f"rows must be a two-dimensional array with {domain.dimension} columns")
        if array.size * 2 <= _IN_MEMORY_BYTES:
            super().__init__(domain, domain.encode(array), chunk_rows)
            return
        self._folder = tempfile.TemporaryDirectory(prefix="cairn-")
        path = Path(self._folder.name) / "encoded.npy"
        mapped = np.lib.format.open_memmap(path, mode="w+", dtype=np.int16, shape=array.shape)
        step = chunk_rows_for(domain)
        for start in range(0, len(array), step):
            mapped[start : start + step] = domain.encode(array[start : start + step])
        mapped.flush()
        super().__init__(domain, np.load(path, mmap_mode="r"), chunk_rows)


class SparseSource(_EncodedSource):
    """Rows of a scipy.sparse matrix, encoded once."""

    def __init__(self, domain: Sparse, rows: Any, *, chunk_rows: int | None = None) -> None:
        super().__init__(domain, domain.encode(rows), chunk_rows)
