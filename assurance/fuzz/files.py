"""Files that are made to do damage: broken headers, false lengths, and little files that unpack to a lot."""

from __future__ import annotations

import gzip
import io
import random
import struct
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from tests.support.spreadsheets import spreadsheet

CSV, NPY, NPZ = "text/csv", "application/x-npy", "application/x-npz"
PARQUET, ARROW = "application/vnd.apache.parquet", "application/vnd.apache.arrow.stream"
GZIP, EXCEL = "application/gzip", "application/octet-stream"
SPARSE: dict[str, Any] = {"columns": None, "dimension": 4, "bounds": {"sparse": {"radius": 2}}}
NAMED: dict[str, Any] = {"id_column": "id", "rows_per_person": 2}
#: A table with a column of each kind.
COLUMNS: list[dict[str, Any]] = [
    {"name": "who", "kind": "text", "role": "id", "missing": "drop"},
    {"name": "a", "kind": "number", "low": 0, "high": 10, "log": True, "offset": 1.0, "missing": "drop"},
    {"name": "b", "kind": "category", "levels": ["x", "y", "z"], "other": "z", "missing": "level"},
    {"name": "c", "kind": "boolean", "missing": "fill", "fill": True, "weight": 2.0},
    {"name": "d", "kind": "date", "low": "2024-01-01", "high": "2024-12-31", "order": "dmy"},
    {"name": "e", "kind": "datetime", "low": "2024-01-01", "high": "2025-01-01", "role": "keep"},
    {"name": "f", "kind": "text"},
]
TABLE: dict[str, Any] = {"columns": None, "bounds": None, "table": COLUMNS}
_MIXED: dict[str, list[Any]] = {
    "who": ["ann", "ben", None],
    "a": [1.5, 2.0, None],
    "b": ["x", None, "q"],
    "c": [True, None, False],
    "d": [date(2024, 5, 1), date(2024, 1, 2), date(2023, 1, 1)],
    "e": [datetime(2024, 5, 1, tzinfo=UTC), None, None],
}
MIB = 1 << 20


def as_parquet(columns: dict[str, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    parquet.write_table(pa.table(columns), file, **options)
    return file.getvalue()


def as_arrow(columns: dict[str, Any], *, file_form: bool = False, compression: str | None = None) -> bytes:
    file, table = io.BytesIO(), pa.table(columns)
    options = ipc.IpcWriteOptions(compression=compression)
    with (ipc.new_file if file_form else ipc.new_stream)(file, table.schema, options=options) as writer:
        writer.write_table(table)
    return file.getvalue()


def as_npz(**parts: Any) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **parts)
    return file.getvalue()


def npz_of_zeros(entries: int, rows: int) -> bytes:
    """A sparse matrix of four columns with so many entries in its arrays, none of them in a row."""
    return as_npz(
        data=np.zeros(entries),
        indices=np.zeros(entries, np.int32),
        indptr=np.zeros(rows + 1, int),
        shape=np.array([rows, 4]),
    )


def csr(rows: int = 4) -> bytes:
    """A good sparse matrix of four columns."""
    count = min(rows, 4)
    pointer = np.minimum(np.arange(rows + 1), count)
    return as_npz(data=np.ones(count), indices=np.arange(count), indptr=pointer, shape=np.array([rows, 4]))


def npy(header: str, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """An NPY file with any header."""
    text = header.encode("latin-1")
    length = struct.pack("<H" if version == (1, 0) else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + data


def not_text() -> pa.Array:
    """A column that says it is text and is not."""
    raw = pa.array([b"\xff\xfe", b"x"], pa.binary())
    return pa.Array.from_buffers(pa.string(), 2, raw.buffers())


def _two(**more: Any) -> dict[str, Any]:
    return {"a": [1.0, 2.0], "b": [1.0, 2.0], **more}


def longer_than_it_is() -> bytes:
    """An Arrow stream of three rows that says it has two hundred thousand."""
    content = bytearray(as_arrow({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]}))
    for place in range(len(content) - 8):
        if struct.unpack_from("<q", content, place)[0] == 3:
            struct.pack_into("<q", content, place, 200_000)
    return bytes(content)


_SHAPE = "{'descr':'<f8','fortran_order':False,'shape':%s}\n"
#: Name: type, content, changes to the dataset's facts. All of them must be refused as bad-format or bad-rows.
HOSTILE: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "npy for a table": (NPY, npy(_SHAPE % "(1,2)", b"\0" * 16), TABLE),
    "parquet of lists for a table": (PARQUET, as_parquet({**_MIXED, "b": [[1], [2], [3]]}), TABLE),
    "arrow of times for numbers": (ARROW, as_arrow({**_MIXED, "a": _MIXED["d"]}), TABLE),
    "csv of a table with dates of other numbers": (
        CSV,
        "who,a,b,c,d,e\nann,1,x,1,٣١.١٢.٢٠٢٤,99999-99-99\n".encode(),
        TABLE,
    ),
    "npy with an open bracket": (NPY, npy("{'descr': '<f8', 'shape': (3, 2"), {}),
    "npy with an open string": (NPY, npy("{'descr': '<f8', 'shape': (3L, 2'''"), {}),
    "npy of brackets": (NPY, npy("(" * 5000), {}),
    "npy of negative size": (NPY, npy(_SHAPE % "(-1,-2)", b"\0" * 16), {}),
    "npy of endless width": (NPY, npy(_SHAPE % "(0,1000000000000)"), {}),
    "npy of too large a number": (NPY, npy(_SHAPE % "(100000000000000000000,0)"), {}),
    "npy of an unknown version": (NPY, npy(_SHAPE % "(1,2)", b"\0" * 16, (9, 0)), {}),
    "npy of a truth for a length": (NPY, npy(_SHAPE % "(True,2)", b"\0" * 16), {}),
    "npz whose entries add up to infinity": (
        NPZ,
        as_npz(
            data=np.full(4, 1e308), indices=np.zeros(4, int), indptr=np.array([0, 4]), shape=np.array([1, 4])
        ),
        SPARSE,
    ),
    "npz that points beyond everything": (
        NPZ,
        as_npz(data=np.ones(1), indices=[0], indptr=np.full(5, 2**64 - 1, np.uint64), shape=np.array([4, 4])),
        SPARSE,
    ),
    "csv with one endless record": (CSV, b"a,b\n" + b'"\n",' * (MIB // 3), {}),
    "csv with one endless line": (CSV, b"a,b\n" + b"1," * MIB, {}),
    "csv of a hundred thousand and one columns": (CSV, b"a,b" + b"," * 100_000 + b"\n", {}),
    "csv beyond the largest number": (CSV, b"a,b\n1e309,1\n", {}),
    "csv of quotes": (CSV, b'"' * 100_000, {}),
    "csv of zero bytes": (CSV, b"a,b\n" + b"\0" * 1000, {}),
    "parquet with an id that is no text": (PARQUET, as_parquet(_two(id=not_text())), NAMED),
    "parquet with endless ids": (
        PARQUET,
        as_parquet(
            {"a": np.zeros(2000), "b": np.zeros(2000), "id": ["x" * 100_000] * 2000}, compression="zstd"
        ),
        NAMED,
    ),
    "parquet with lists for ids": (PARQUET, as_parquet(_two(id=[[1], [2]])), NAMED),
    "arrow with an id that is no text": (ARROW, as_arrow(_two(id=not_text())), NAMED),
    "arrow with a time beyond time": (
        ARROW,
        as_arrow(_two(id=pa.array([2**62, 2], pa.timestamp("s")))),
        NAMED,
    ),
    "arrow with endless lists of nothing": (
        ARROW,
        as_arrow(_two(id=pa.array([None, None], pa.list_(pa.null(), 1_000_000)))),
        NAMED,
    ),
    "gzip of gzip": (GZIP, gzip.compress(gzip.compress(b"a,b\n1,1\n")), {}),
    "gzip that breaks off": (GZIP, gzip.compress(b"a,b\n1,1\n" * 1000)[:-20], {}),
    "gzip of nothing": (GZIP, gzip.compress(b""), {}),
    "half of utf-16": (CSV, "a,b\n1,1\n".encode("utf-16")[:-1], {}),
    "excel of billions of cells": (EXCEL, spreadsheet([["a", "b"], [1, 1]], far="XFD1048576"), {}),
    "excel without a sheet": (EXCEL, spreadsheet([]), {}),
    "arrow that is longer than it is": (ARROW, longer_than_it_is(), {}),
}

#: Little files that unpack to more than 8 MiB, of every format that can.
BOMBS: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "parquet": (PARQUET, as_parquet({"a": np.zeros(4_000_000), "b": np.zeros(4_000_000)}), {}),
    "arrow, lz4": (
        ARROW,
        as_arrow({"a": np.zeros(4_000_000), "b": np.zeros(4_000_000)}, compression="lz4"),
        {},
    ),
    "arrow, zstd": (
        ARROW,
        as_arrow({"a": np.zeros(4_000_000), "b": np.zeros(4_000_000)}, compression="zstd"),
        {},
    ),
    "gzip": (GZIP, gzip.compress(b"a,b\n" + b"1,1\n" * 4_000_000), {}),
    "npz, entries": (NPZ, npz_of_zeros(entries=2_000_000, rows=4), SPARSE),
    "npz, empty rows": (NPZ, npz_of_zeros(entries=0, rows=1_500_000), SPARSE),
}

#: A typed file with texts that are longer than any level.
LONG_TEXTS = (PARQUET, as_parquet({**_MIXED, "b": ["x" * 5000] * 3}), TABLE)
#: Good files to damage.
GOOD: dict[str, tuple[str, bytes, dict[str, Any]]] = {
    "csv": (CSV, b'a,b,c\n1,1,x\n2,2,\xc3\xa9\n"3",3,\n', {}),
    "semicolons": (
        CSV,
        "a;b;c\n1,5;1;x\n2,5;2;é\n".encode("utf-16"),
        {"reading": {"encoding": "utf-16", "separator": ";", "decimal": ","}},
    ),
    "gzip": (GZIP, gzip.compress(b"a,b\n1,1\n2,2\n"), {}),
    "excel": (EXCEL, spreadsheet([["a", "b"], [1, 1], [2.5, 2]]), {}),
    "npy": (NPY, npy(_SHAPE % "(2,2)", b"\0" * 32), {}),
    "npz": (NPZ, csr(), SPARSE),
    "parquet": (PARQUET, as_parquet(_two(id=["p", "q"], c=["x", "y"]), compression="zstd"), NAMED),
    "arrow file": (ARROW, as_arrow(_two(id=["p", "q"]), file_form=True), NAMED),
    "arrow stream": (ARROW, as_arrow(_two(id=["p", "q"]), compression="lz4"), NAMED),
    "csv of a table": (
        CSV,
        b"who,a,b,c,d,e\nann,1.5,x,yes,31.12.2024,\nben,,q,,1.1.2024,2024-05-01 10:30\n,1,y,0,2.2.2024,NA\n",
        TABLE,
    ),
    "excel of a table": (EXCEL, spreadsheet([list(_MIXED), ["ann", 1, "x", True, "2024-05-01", ""]]), TABLE),
    "parquet of a table": (PARQUET, as_parquet(_MIXED), TABLE),
    "arrow of a table": (ARROW, as_arrow(_MIXED), TABLE),
}


def damaged(content: bytes, chance: random.Random) -> bytes:
    """The content with some bits, bytes or lengths changed, cut out, doubled or cut off."""
    made = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(made)) if made else 0
        match chance.randrange(6):
            case 0 if made:
                made[place] ^= 1 << chance.randrange(8)
            case 1 if made:
                made[place] = chance.choice((0, 1, 0x7F, 0x80, 0xFF))
            case 2 if len(made) > 12:
                place = chance.randrange(len(made) - 8)
                struct.pack_into("<q", made, place, chance.choice((-1, 0, 2**31, 2**40, 2**63 - 1)))
            case 3:
                del made[place : place + chance.randrange(16)]
            case 4:
                made[place:place] = made[place : place + chance.randrange(64)]
            case _:
                del made[chance.randrange(len(made) + 1) :]
    return bytes(made)
