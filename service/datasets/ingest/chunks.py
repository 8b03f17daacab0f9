"""Chunks of encoded rows: how they are collected, and the format of their payloads.

Dense rows are int16, row by row; site numbers are int32; a sparse chunk is three int64 numbers (rows,
columns, entries) followed by the row pointer (int64), the columns (int32) and the values (int16). All
little-endian.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.data import Stored

_INT64 = np.dtype("<i8")
_INT32 = np.dtype("<i4")
_INT16 = np.dtype("<i2")
#: How rows of these kinds are stored; those of a table are codes.
_TYPES: dict[str, np.dtype[Any]] = {"dense": _INT16, "ids": _INT32, "table": np.dtype("<u2")}


@dataclass(frozen=True)
class StoredChunk:
    """One chunk, ready for the database."""

    ordinal: int
    first_record: int
    rows: int
    digest: str
    payload: bytes


class ChunkFile:
    """Collects encoded rows, added in any pieces, into chunks of about one size, on disk."""

    def __init__(self, domain: Stored, chunk_bytes: int, directory: Path | None):
        self._domain = domain
        width = {"ids": 4, "sparse": 384}.get(domain.kind, 2 * domain.dimension)
        self._rows_per_chunk = max(1, chunk_bytes // width)
        self._file = tempfile.TemporaryFile(dir=directory)  # noqa: SIM115 closed by close()
        self._index: list[tuple[int, int, int, int]] = []  # place in the file, first record, rows, bytes
        self._sparse_rows: list[sp.csr_array] = []
        self._place = self._pending_rows = 0
        self.rows = self.bytes = 0

    def add(self, encoded: Any) -> None:
        """Add encoded rows."""
        start = 0
        while start < encoded.shape[0]:
            take = min(encoded.shape[0] - start, self._rows_per_chunk - self._pending_rows)
            self._put(encoded[start : start + take])
            start += take
            if self._pending_rows == self._rows_per_chunk:
                self._end_chunk()

    def _put(self, rows: Any) -> None:
        self._pending_rows += rows.shape[0]
        if self._domain.kind == "sparse":
            self._sparse_rows.append(rows)
            return
        data = np.ascontiguousarray(rows, dtype=_TYPES[self._domain.kind])
        self._file.write(data.data)
        self.bytes += data.nbytes

    def _end_chunk(self) -> None:
        if self._domain.kind == "sparse":
            payload = _sparse_payload(self._sparse_rows, self._domain.dimension)
            self._file.write(payload)
            self._sparse_rows = []
            self.bytes += len(payload)
        self._index.append((self._place, self.rows, self._pending_rows, self.bytes - self._place))
        self._place = self.bytes
        self.rows += self._pending_rows
        self._pending_rows = 0

    def end(self) -> None:
        """End the last chunk; an upload without rows has one empty chunk."""
        if self._pending_rows or not self._index:
            self._end_chunk()
        self._file.flush()

    def chunks(self) -> Iterator[StoredChunk]:
        """Return every chunk in order, one at a time in memory."""
        for ordinal, (place, first, rows, size) in enumerate(self._index):
            payload = os.pread(self._file.fileno(), size, place)
            yield StoredChunk(ordinal, first, rows, hashlib.sha256(payload).hexdigest(), payload)

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _sparse_payload(rows: list[sp.csr_array], dimension: int) -> bytes:
    empty = sp.csr_array((0, dimension), dtype=np.int16)
    matrix = sp.vstack(rows, format="csr") if rows else empty
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
    """Return the encoded rows of a chunk's payload, without a copy where that is possible."""
    if kind == "ids":
        return np.frombuffer(payload, dtype=_INT32)
    if kind in _TYPES:
        return np.frombuffer(payload, dtype=_TYPES[kind]).reshape(-1, dimension)
    rows, columns, entries = (int(n) for n in np.frombuffer(payload, dtype=_INT64, count=3))
    place = 3 * _INT64.itemsize
    pointer = np.frombuffer(payload, dtype=_INT64, count=rows + 1, offset=place)
    place += pointer.nbytes
    indices = np.frombuffer(payload, dtype=_INT32, count=entries, offset=place)
    place += indices.nbytes
    data = np.frombuffer(payload, dtype=_INT16, count=entries, offset=place)
    return sp.csr_array((data, indices, pointer), shape=(rows, columns))
