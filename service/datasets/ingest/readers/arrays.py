"""NPY (dense rows, memory-mapped) and NPZ (a CSR matrix as scipy.sparse.save_npz writes it)."""

import math
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from service.datasets.ingest.findings import Findings
from service.datasets.ingest.readers.batch import Batch, Expected, readable, reading, split_bad
from service.errors import BadFormat, TooLarge
from service.operations.settings import Settings

_VALUES_PER_BATCH = 1 << 20
_MEMBERS = ("data.npy", "indices.npy", "indptr.npy", "shape.npy")


def read_npy(file: IO[bytes], expected: Expected, findings: Findings) -> Iterator[Batch]:
    """Return batches of a two-dimensional array of numbers."""
    if expected.id_column:
        raise BadFormat("an NPY file has no id column; upload CSV, Parquet or Arrow for this dataset")
    array = _map(file)
    width = len(expected.columns)
    if array.ndim == 1 and width == 1:
        array = array.reshape(-1, 1)
    if array.ndim != 2 or array.shape[1] != width:
        raise BadFormat(f"the array must have two dimensions and {width} columns")
    return _slices(array, expected, findings)


def _slices(array: Any, expected: Expected, findings: Findings) -> Iterator[Batch]:
    names = expected.columns
    step = max(1, _VALUES_PER_BATCH // len(names))
    for start in range(0, len(array), step):
        block = np.array(array[start : start + step], dtype=np.float64)
        yield split_bad(Batch(readable(block, expected)), names, start + 1, findings)


def read_npz(file: IO[bytes], expected: Expected, findings: Findings, settings: Settings) -> Iterator[Batch]:
    """Return batches of a CSR matrix; its members are unpacked to disk, not to memory."""
    if expected.domain.kind != "sparse":
        raise BadFormat("an NPZ file holds a sparse matrix, but the dataset is not sparse; upload NPY or CSV")
    if expected.id_column:
        raise BadFormat("an NPZ file has no id column; create the dataset without one")
    with tempfile.TemporaryDirectory(dir=settings.spool_directory, prefix="cairn-npz-") as folder:
        paths = _unpack(file, Path(folder), settings.max_upload_bytes)
        parts = {name: _map_path(path) for name, path in paths.items()}
        yield from _csr_slices(parts, expected, findings)


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


def _csr_slices(parts: dict[str, Any], expected: Expected, findings: Findings) -> Iterator[Batch]:
    shape, indptr = np.array(parts["shape.npy"]), parts["indptr.npy"]
    indices, data = parts["indices.npy"], parts["data.npy"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or int(shape[1]) != len(expected.columns):
        raise BadFormat(f"the matrix must have {len(expected.columns)} columns")
    rows = int(shape[0])
    whole = all(part.ndim == 1 for part in (indptr, indices, data)) and indptr.dtype.kind in "iu"
    if not whole or len(indptr) != rows + 1 or len(indices) != len(data) or indices.dtype.kind not in "iu":
        raise BadFormat("the parts of the matrix do not fit together; write it with scipy.sparse.save_npz")
    start = 0
    while start < rows:
        stop = _stop(indptr, start, rows)
        low, high = int(indptr[start]), int(indptr[stop])
        lengths = np.diff(np.array(indptr[start : stop + 1], dtype=np.int64))
        columns = np.array(indices[low:high], dtype=np.int64)
        fits = (lengths >= 0).all() and 0 <= low <= high <= len(data) and len(columns) == lengths.sum()
        if not fits or (columns < 0).any() or (columns >= int(shape[1])).any():
            raise BadFormat("the matrix names columns or entries that it does not have")
        values = np.array(data[low:high], dtype=np.float64)
        pointer = np.concatenate(([0], np.cumsum(lengths)))
        block = sp.csr_array((values, columns, pointer), shape=(stop - start, int(shape[1])))
        yield _drop_bad(block, start + 1, findings)
        start = stop


def _stop(indptr: Any, start: int, rows: int) -> int:
    """Return where a batch ends: it has a limited number of rows and of entries."""
    stop = min(rows, start + 8192)
    while stop > start + 1 and int(indptr[stop]) - int(indptr[start]) > _VALUES_PER_BATCH:
        stop = start + (stop - start) // 2
    return stop


def _drop_bad(block: sp.csr_array, first: int, findings: Findings) -> Batch:
    owner = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    wrong = np.zeros(block.shape[0], dtype=bool)
    wrong[owner[~np.isfinite(block.data)]] = True
    findings.add_all(np.flatnonzero(wrong), first, lambda _row: "an entry is missing or not a finite number")
    return Batch(block).only(~wrong)


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
