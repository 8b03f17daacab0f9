"""Encoded rows collected into chunks in a nameless file, with the digest of each; and the way back.

Dense rows are int16, row by row; site numbers are int32; a sparse chunk is three int64 numbers (rows,
columns, entries) followed by the row pointer (int64), the columns (int32) and the values (int16). All
little-endian.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from threading import Condition
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data import Domain

__all__ = ["BegunAgain", "ChunkFile", "StoredChunk", "decode_payload"]

#: The first chunk has at most so many bytes and each twice as many as the one before, up to the size that was
#: asked for: the database has something to store long before all rows are encoded.
_FIRST_BYTES = 4 << 20
_INT64, _INT32, _INT16 = np.dtype("<i8"), np.dtype("<i4"), np.dtype("<i2")


@dataclass(frozen=True)
class StoredChunk:
    """One chunk, ready for the database."""

    ordinal: int
    first_record: int
    rows: int
    digest: str
    payload: bytes


class BegunAgain(Exception):
    """The chunks that were handed out are void: the rows are read once more from the start."""


class ChunkFile:
    """Takes encoded rows in any pieces from one thread, and hands them to another as chunks."""

    def __init__(self, domain: Domain, chunk_bytes: int, directory: Path | None):
        self._domain = domain
        width = {"dense": 2 * domain.dimension, "ids": 4, "sparse": 384}[domain.kind]
        self._most_rows = max(1, chunk_bytes // width)
        self._first_rows = min(self._most_rows, max(1, _FIRST_BYTES // width))
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 closed by close()
        self._news = Condition()
        self._ended = False
        self._fault: BaseException | None = None
        self._beginnings = 0
        self._begin()

    def _begin(self) -> None:
        self._index: list[tuple[int, int, int, int]] = []  # place in the file, first record, rows, bytes
        self._pending: list[sp.csr_array] = []
        self._chunk_rows = self._first_rows
        self._pending_bytes = self._place = 0
        self.pending_rows = self.rows = self.bytes = 0

    def begin_again(self) -> None:
        """Forget everything; whoever is taking chunks gets BegunAgain."""
        with self._news:
            self._file.seek(0)
            self._file.truncate()
            self._beginnings += 1
            self._begin()
            self._news.notify_all()

    def add(self, encoded: Any) -> None:
        """Take some more encoded rows."""
        start = 0
        while start < encoded.shape[0]:
            take = min(encoded.shape[0] - start, self._chunk_rows - self.pending_rows)
            self._put(encoded[start : start + take])
            start += take
            if self.pending_rows == self._chunk_rows:
                self._seal()

    def _put(self, rows: Any) -> None:
        self.pending_rows += rows.shape[0]
        if self._domain.kind == "sparse":
            self._pending.append(rows)
            return
        data = np.ascontiguousarray(rows, dtype=_INT32 if self._domain.kind == "ids" else _INT16)
        self._file.write(data.data)
        self._pending_bytes += data.nbytes
        self.bytes += data.nbytes

    def _seal(self) -> None:
        if self._domain.kind == "sparse":
            matrix = sp.vstack(self._pending, format="csr") if self._pending else None
            payload = _sparse_payload(matrix, self._domain.dimension)
            self._file.write(payload)
            self._pending, self._pending_bytes = [], len(payload)
            self.bytes += len(payload)
        self._file.flush()
        with self._news:
            self._index.append((self._place, self.rows, self.pending_rows, self._pending_bytes))
            self._news.notify_all()
        self._place += self._pending_bytes
        self.rows += self.pending_rows
        self.pending_rows = self._pending_bytes = 0
        self._chunk_rows = min(2 * self._chunk_rows, self._most_rows)

    def end(self) -> None:
        """Say that there are no more rows; an upload without rows has one empty chunk."""
        if self.pending_rows or not self._index:
            self._seal()
        with self._news:
            self._ended = True
            self._news.notify_all()

    def fail(self, fault: BaseException) -> None:
        """Say that there will be no upload; whoever is taking chunks gets the fault."""
        with self._news:
            self._fault = fault
            self._news.notify_all()

    def chunks(self) -> Iterator[StoredChunk]:
        """Every chunk in order, one at a time in memory, waiting for those that are not ready yet."""
        with self._news:
            beginning = self._beginnings
        ordinal = 0
        while True:
            with self._news:
                self._news.wait_for(
                    lambda: (
                        self._fault is not None
                        or self._beginnings != beginning
                        or self._ended
                        or ordinal < len(self._index)  # noqa: B023 called at once
                    )
                )
                if self._fault is not None:
                    raise self._fault
                if self._beginnings != beginning:
                    raise BegunAgain
                if ordinal == len(self._index):
                    return
                place, first, rows, size = self._index[ordinal]
            payload = os.pread(self._file.fileno(), size, place)
            yield StoredChunk(ordinal, first, rows, hashlib.sha256(payload).hexdigest(), payload)
            ordinal += 1

    def close(self) -> None:
        """Let the file go."""
        self._file.close()


def _sparse_payload(matrix: Any, dimension: int) -> bytes:
    if matrix is None:
        matrix = sp.csr_array((0, dimension), dtype=np.int16)
    head = np.array([matrix.shape[0], dimension, matrix.nnz], dtype=_INT64)
    return b"".join(
        (
            head.tobytes(),
            matrix.indptr.astype(_INT64).tobytes(),
            matrix.indices.astype(_INT32).tobytes(),
            matrix.data.astype(_INT16).tobytes(),
        )
    )


def decode_payload(kind: str, payload: bytes | memoryview, dimension: int) -> npt.NDArray[Any] | sp.csr_array:
    """The encoded rows of a chunk's payload, without a copy where that is possible."""
    if kind == "ids":
        return np.frombuffer(payload, dtype=_INT32)
    if kind == "dense":
        return np.frombuffer(payload, dtype=_INT16).reshape(-1, dimension)
    rows, columns, entries = (int(n) for n in np.frombuffer(payload, dtype=_INT64, count=3))
    place = 3 * _INT64.itemsize
    pointer = np.frombuffer(payload, dtype=_INT64, count=rows + 1, offset=place)
    place += pointer.nbytes
    indices = np.frombuffer(payload, dtype=_INT32, count=entries, offset=place)
    place += indices.nbytes
    data = np.frombuffer(payload, dtype=_INT16, count=entries, offset=place)
    return sp.csr_array((data, indices, pointer), shape=(rows, columns))
