"""Sources of rows: a domain, and picklable loaders of chunks that know their records' ordinals."""

import shutil
import tempfile
import uuid
import weakref
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.columns.reading import Fault
from core.data.base import MAX_RECORDS
from core.data.dense import Dense
from core.data.domain import Ids, Sparse, Stored
from core.data.tables.table import Table
from core.errors import InvalidData

#: Bytes of encoded rows in one chunk: a task of about a tenth of a second.
CHUNK_BYTES = 1 << 25
#: Encoded arrays above this size are kept in a temporary file.
_IN_MEMORY_BYTES = 100 << 20


@dataclass(frozen=True, eq=False)
class Chunk:
    """Consecutive encoded records; `first` is the ordinal of the first one in the whole dataset."""

    rows: npt.NDArray[np.int16] | npt.NDArray[np.int32] | npt.NDArray[np.uint16] | sp.csr_array
    first: int
    key: Hashable

    def __len__(self) -> int:
        return int(self.rows.shape[0])


@runtime_checkable
class ChunkLoader(Protocol):
    """Loads one chunk, in this process or in another; pickles by value or by reference."""

    @property
    def key(self) -> Hashable:
        """Identifies the chunk's content, for caches of derived values."""

    def __call__(self) -> Chunk: ...


@runtime_checkable
class DataSource(Protocol):
    """A domain and the chunks of a dataset inside it."""

    @property
    def domain(self) -> Stored: ...

    def loaders(self) -> Sequence[ChunkLoader]: ...


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


@dataclass(frozen=True)
class _FileSlice:
    """Maps some rows of a file of encoded rows into memory, for as long as the chunk lives."""

    path: str
    first: int
    count: int
    width: int
    source: str

    @property
    def key(self) -> Hashable:
        return (self.source, self.first, self.count)

    def __call__(self) -> Chunk:
        start = 2 * self.first * self.width
        rows = np.memmap(self.path, np.int16, "r", offset=start, shape=(self.count, self.width))
        return Chunk(np.asarray(rows), self.first, self.key)


class _ChunkedSource:
    """Encoded records, cut into chunks."""

    def __init__(self, domain: Stored, loaders: Sequence[ChunkLoader]) -> None:
        self.domain = domain
        self._loaders = loaders

    def loaders(self) -> Sequence[ChunkLoader]:
        return self._loaders


def _starts(domain: Stored, count: int, chunk_rows: int | None) -> range:
    """The ordinals at which chunks start; how many records one holds is a function of public facts."""
    if count > MAX_RECORDS:
        raise InvalidData(f"a dataset holds at most {MAX_RECORDS} records")
    width = 64 if isinstance(domain, Sparse) else domain.dimension
    return range(0, count, chunk_rows or max(1024, min(1 << 20, CHUNK_BYTES // (2 * width))))


def _slices(domain: Stored, encoded: Any, chunk_rows: int | None) -> list[ChunkLoader]:
    name, starts = uuid.uuid4().hex, _starts(domain, encoded.shape[0], chunk_rows)
    return [_Slice(encoded[start : start + starts.step], start, name) for start in starts]


class ArraySource(_ChunkedSource):
    """Rows of a numpy array or a memory map, encoded once; large ones into a temporary file."""

    def __init__(self, domain: Dense | Ids, rows: npt.ArrayLike, *, chunk_rows: int | None = None) -> None:
        array = rows if isinstance(rows, np.ndarray) else np.asarray(rows)
        if isinstance(domain, Ids):
            super().__init__(domain, _slices(domain, domain.encode(array), chunk_rows))
            return
        if array.ndim != 2 or array.shape[1] != domain.dimension:
            raise InvalidData(f"rows must be a two-dimensional array with {domain.dimension} columns")
        if array.size * 2 <= _IN_MEMORY_BYTES:
            super().__init__(domain, _slices(domain, domain.encode(array), chunk_rows))
            return
        folder = Path(tempfile.mkdtemp(prefix="cairn-"))
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        super().__init__(domain, _file_slices(domain, array, folder / "encoded", chunk_rows))


def _file_slices(
    domain: Dense, array: npt.NDArray[Any], path: Path, chunk_rows: int | None
) -> list[ChunkLoader]:
    name, starts = uuid.uuid4().hex, _starts(domain, len(array), chunk_rows)
    loaders: list[ChunkLoader] = []
    with path.open("wb") as file:
        for start in starts:
            encoded = domain.encode(array[start : start + starts.step])
            encoded.tofile(file)
            loaders.append(_FileSlice(str(path), start, len(encoded), domain.dimension, name))
    return loaders


class SparseSource(_ChunkedSource):
    """Rows of a scipy.sparse matrix, encoded once."""

    def __init__(self, domain: Sparse, rows: Any, *, chunk_rows: int | None = None) -> None:
        super().__init__(domain, _slices(domain, domain.encode(rows), chunk_rows))


class TableSource(_ChunkedSource):
    """Columns of a table (arrays, lists or a DataFrame), encoded once.

    Rows with a gap in a column whose gaps are to be dropped are left out; a value that cannot be stored is
    refused.
    """

    def __init__(self, table: Table, columns: Mapping[str, Any], *, chunk_rows: int | None = None) -> None:
        absent = [name for name in table.columns if name not in columns]
        if absent:
            raise InvalidData(f"the columns {', '.join(absent)} are missing")
        readings = {column.name: column.read(columns[column.name]) for column in table.stored}
        if len({len(reading.codes) for reading in readings.values()}) != 1:
            raise InvalidData("the columns differ in length")
        rows, usable = table.rows(readings)
        for column in table.stored:
            left_out = column.missing == "drop"
            bad = ~readings[column.name].usable
            if np.any(bad & (readings[column.name].faults != Fault.MISSING if left_out else bad)):
                raise InvalidData(
                    f"column {column.name} has values that its declaration does not cover: remove or fill "
                    "missing ones, and declare every level"
                )
        super().__init__(table, _slices(table, rows[usable], chunk_rows))

    @classmethod
    def of_codes(cls, table: Table, codes: npt.NDArray[Any]) -> Self:
        """Rows that are codes already."""
        source = cls.__new__(cls)
        _ChunkedSource.__init__(source, table, _slices(table, codes.astype(np.uint16), None))
        return source
