"""NPY (dense rows, memory-mapped) and NPZ (a CSR matrix as scipy.sparse.save_npz writes it)."""

import math
import tempfile
import zipfile
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.columns.notation import Notation
from service.datasets.ingest.readers.batch import Batch, Expected, Records, reading
from service.datasets.ingest.readers.columns import match_columns
from service.datasets.ingest.readers.number_rows import NumberReader
from service.datasets.ingest.reports import RowReport
from service.errors import BadFormat, TooLarge
from service.operations.settings import Settings

#: Most values of a batch.
_VALUES_PER_BATCH = 1 << 20
#: Most rows of a batch of a sparse matrix.
_ROWS_PER_BATCH = 1 << 13
_MEMBERS = ("data.npy", "indices.npy", "indptr.npy", "shape.npy")


def read_npy(file: IO[bytes], expected: Expected) -> Generator[Batch, None, None]:
    """Return batches of a two-dimensional array of numbers."""
    if expected.id_column:
        raise BadFormat("an NPY file has no id column; upload CSV, Parquet or Arrow for this dataset")
    array = _map(file)
    width = len(expected.columns)
    if array.ndim == 1 and width == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] != width:
        raise BadFormat(f"the array must have two dimensions and {width} columns")
    return _slices(array, expected)


def _slices(array: Any, expected: Expected) -> Generator[Batch, None, None]:
    reader = NumberReader.of(expected, match_columns(expected.columns, expected), Notation())
    step = max(1, _VALUES_PER_BATCH // len(expected.columns))
    for start in range(0, len(array), step):
        values = np.array(array[start : start + step], dtype=np.float64)
        lines = np.arange(start + 1, start + 1 + len(values))
        yield reader.checked(values, Records(list(values.T), lines))


def read_npz(file: IO[bytes], expected: Expected, settings: Settings) -> Generator[Batch, None, None]:
    """Return batches of a CSR matrix; its members are unpacked to disk, not to memory."""
    if expected.domain.kind != "sparse":
        raise BadFormat("an NPZ file holds a sparse matrix, but the dataset is not sparse; upload NPY or CSV")
    if expected.id_column:
        raise BadFormat("an NPZ file has no id column; create the dataset without one")
    with tempfile.TemporaryDirectory(dir=settings.spool_directory, prefix="cairn-npz-") as folder:
        paths = _unpack(file, Path(folder), settings.max_upload_bytes)
        parts = {name: _map_path(path) for name, path in paths.items()}
        yield from _csr_slices(parts, len(expected.columns))


def _unpack(file: IO[bytes], folder: Path, most_bytes: int) -> dict[str, Path]:
    file.seek(0)
    left = most_bytes
    paths = {}
    damaged = "the file cannot be read as NPZ; write it with scipy.sparse.save_npz"
    with reading(damaged), zipfile.ZipFile(file) as archive:
        present = archive.namelist()
        missing = [name for name in _MEMBERS if name not in present]
        if missing:
            raise BadFormat(f"the archive lacks {missing[0]}; write it with scipy.sparse.save_npz")
        for name in _MEMBERS:
            paths[name] = folder / name
            with archive.open(name) as packed, paths[name].open("wb") as unpacked:
                while piece := packed.read(1 << 20):
                    left -= len(piece)
                    if left < 0:
                        raise TooLarge(
                            f"the matrix unpacks to more than {most_bytes} bytes", limit=most_bytes
                        )
                    unpacked.write(piece)
    return paths


def _csr_slices(parts: dict[str, Any], width: int) -> Iterator[Batch]:
    """Return the rows of a matrix, some at a time."""
    indptr, indices, data = _checked_parts(parts, width)
    rows, start = len(indptr) - 1, 0
    while start < rows:
        stop = _stop(indptr, start, rows)
        low, high = int(indptr[start]), int(indptr[stop])
        lengths = np.diff(np.array(indptr[start : stop + 1], dtype=np.int64))
        columns = np.array(indices[low:high], dtype=np.int64)
        if not (_follow_each_other(lengths, low, high, len(data)) and _inside(columns, width)):
            raise BadFormat("the matrix names columns or entries that it does not have")
        values = np.array(data[low:high], dtype=np.float64)
        pointer = np.concatenate(([0], np.cumsum(lengths)))
        block = sp.csr_array((values, columns, pointer), shape=(stop - start, width))
        yield _finite(block, start + 1)
        start = stop


def _checked_parts(parts: dict[str, Any], width: int) -> tuple[Any, Any, Any]:
    """Return the row pointer, the columns and the values of a matrix, whose sizes fit together."""
    shape, indptr = np.array(parts["shape.npy"]), parts["indptr.npy"]
    indices, data = parts["indices.npy"], parts["data.npy"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or int(shape[1]) != width:
        raise BadFormat(f"the matrix must have {width} columns")
    flat = all(part.ndim == 1 for part in (indptr, indices, data))
    whole = indptr.dtype.kind in "iu" and indices.dtype.kind in "iu"
    if not flat or not whole or len(indptr) != int(shape[0]) + 1 or len(indices) != len(data):
        raise BadFormat("the parts of the matrix do not fit together; write it with scipy.sparse.save_npz")
    return indptr, indices, data


def _follow_each_other(lengths: npt.NDArray[Any], low: int, high: int, entries: int) -> bool:
    """Return True for rows of these lengths that fill the entries from `low` to `high`."""
    return bool((lengths >= 0).all() and 0 <= low <= high <= entries and high - low == lengths.sum())


def _inside(columns: npt.NDArray[np.int64], width: int) -> bool:
    return bool((columns >= 0).all() and (columns < width).all())


def _stop(indptr: Any, start: int, rows: int) -> int:
    """Return where a batch ends: it has a limited number of rows and of entries."""
    stop = min(rows, start + _ROWS_PER_BATCH)
    while stop > start + 1 and int(indptr[stop]) - int(indptr[start]) > _VALUES_PER_BATCH:
        stop = start + (stop - start) // 2
    return stop


def _finite(block: sp.csr_array, first: int) -> Batch:
    """Return the rows whose entries are all finite numbers."""
    owner = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    wrong = np.zeros(block.shape[0], dtype=bool)
    wrong[owner[~np.isfinite(block.data)]] = True
    bad = np.flatnonzero(wrong)
    lines = ((first + row, "an entry is missing or not a finite number") for row in bad.tolist())
    return Batch(block, report=RowReport(len(bad), bad_lines=lines)).only(~wrong)


def _map(file: IO[bytes]) -> Any:
    """Map the array of an open file into memory; its header must match the file's size."""
    file.seek(0)
    with reading("the file cannot be read as NPY; write it with numpy.save"):
        version = np.lib.format.read_magic(file)
        if version not in ((1, 0), (2, 0), (3, 0)):
            raise BadFormat(
                "the file is of a version of NPY that is not known here; write it with numpy.save"
            )
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, kind = read(file)
        if kind.kind not in "fiu" or kind.hasobject:
            raise BadFormat(f"the array holds {kind}, not numbers; convert it to floats first")
        offset = file.tell()
        size = file.seek(0, 2)
        count = math.prod(shape)
        if count * kind.itemsize != size - offset:
            raise BadFormat("the array's header and the file differ in the number of values; write it again")
        if count == 0:
            return np.zeros(shape, dtype=kind)
        order = "F" if fortran else "C"
        return np.memmap(file, dtype=kind, mode="r", offset=offset, shape=shape, order=order)  # type: ignore[call-overload]  # order is one of the two literals


def _map_path(path: Path) -> Any:
    with path.open("rb") as file:
        return _map(file)
