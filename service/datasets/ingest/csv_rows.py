"""Rows of CSV files: a fast reader for files without fault, and a careful one that finds bad lines.

The fast reader (pyarrow) goes through the file in blocks. At the first thing it cannot take it gives
up and the careful reader goes through the whole file from the start, so that both agree on every row.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from service.datasets.ingest.ahead import ahead
from service.datasets.ingest.batch import BadRowList, Batch, Wanted
from service.datasets.ingest.columns import Matched, match_columns
from service.errors import BadFormat

__all__ = ["Quoted", "Unclean", "read_csv_carefully", "read_csv_fast", "read_header"]

_BLOCK = 1 << 20
_BLOCKS_AHEAD = 4
_SLAB = 4 << 20
_BOM = b"\xef\xbb\xbf"
_HEADER_BLOCK = 1 << 16
_LONGEST_RECORD = 1 << 20
_ROWS_PER_BATCH = 8192
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")

csv.field_size_limit(_LONGEST_RECORD)


class Quoted(Exception):
    """A file that was read as if it held no quotes holds one."""


class Unclean(Exception):
    """The fast reader met something that only the careful one can judge."""


@dataclass(frozen=True)
class Header:
    """The first record of a CSV file."""

    names: tuple[str, ...]
    lines: int
    matched: Matched


def read_header(file: IO[bytes], wanted: Wanted) -> Header:
    """Read and match the header; a file of numbers alone has none and is taken in the dataset's order."""
    file.seek(0)
    reader = csv.reader(_Lines(file, _HEADER_BLOCK))
    try:
        first = next(reader, None)
    except csv.Error as error:
        raise BadFormat(f"the header cannot be read as CSV: {error}") from error
    if first is None or not any(first):
        raise BadFormat("the first line is empty; put the names of the columns there, separated by commas")
    names = tuple(name.strip() for name in first)
    if wanted.positional and wanted.id_column is None and all(_NUMBER.fullmatch(name) for name in names):
        generic = (
            tuple(wanted.columns)
            if len(names) == len(wanted.columns)
            else tuple(f"column {i}" for i in names)
        )
        return Header(generic, 0, match_columns(generic, wanted))
    return Header(names, reader.line_num, match_columns(names, wanted))


def read_csv_fast(file: IO[bytes], header: Header, *, quoted: bool) -> Iterator[Batch]:
    """Batches of a file in which every row is good; Unclean at the first doubt.

    Unless it is `quoted`, every line end of the file ends a row, so that many rows can be parsed at once; and
    Quoted is raised where it holds a quote after all. The file must be this reader's alone: given up, it may
    still read ahead for a while.
    """
    file.seek(0)
    keys = [str(place) for place in range(len(header.names))]
    matched = header.matched
    values = [keys[place] for place in matched.positions]
    person = [] if matched.person is None else [keys[matched.person]]
    types: dict[str, pa.DataType] = dict.fromkeys(values, pa.float64()) | dict.fromkeys(person, pa.string())
    convert = arrow_csv.ConvertOptions(column_types=types, include_columns=values + person)
    read = _read_quoted if quoted else _read_plain
    try:
        # Parsed by one thread while another makes rows of what was parsed before.
        with closing(ahead(read(file, keys, header.lines, convert), _BLOCKS_AHEAD)) as blocks:
            for block in blocks:
                yield _clean(block, len(values), bool(person))
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise Unclean from error


def _read_quoted(file: IO[bytes], keys: list[str], skip: int, convert: Any) -> Iterator[Any]:
    yield from arrow_csv.open_csv(
        pa.PythonFile(file, mode="r"),
        read_options=arrow_csv.ReadOptions(block_size=_BLOCK, column_names=keys, skip_rows=skip),
        parse_options=arrow_csv.ParseOptions(newlines_in_values=True),
        convert_options=convert,
    )


def _read_plain(file: IO[bytes], keys: list[str], skip: int, convert: Any) -> Iterator[Any]:
    """Blocks of whole lines, each parsed with all cores."""
    rest = b""
    parse = arrow_csv.ParseOptions(quote_char=False)
    while True:
        piece = file.read(_SLAB)
        if piece.find(b'"', _end_of_lines(piece, skip)) >= 0:
            raise Quoted
        cut = piece.rfind(b"\n") + 1 if piece else 0
        if piece and not cut and len(rest) + len(piece) > 2 * _SLAB:
            raise Unclean  # lines without end; the careful reader says where
        whole = rest + piece[:cut] if cut or not piece else b""
        rest = piece[cut:] if cut else rest + piece
        if whole.strip(b"\r\n"):
            if not skip and whole.startswith(_BOM):
                raise Unclean  # in the middle of a file it is a fault, which the parser would pass over
            options = arrow_csv.ReadOptions(block_size=_BLOCK, column_names=keys, skip_rows=skip)
            table = arrow_csv.read_csv(
                pa.BufferReader(whole), read_options=options, parse_options=parse, convert_options=convert
            )
            yield from table.to_batches()
            skip = 0
        if not piece:
            return


def _end_of_lines(piece: bytes, lines: int) -> int:
    """Where so many lines end that were read already, and may hold quotes; 0 where it is not clear."""
    end = 0
    for _ in range(lines):
        end = piece.find(b"\n", end) + 1
        if end == 0:
            return 0
    passed = piece[:end]
    return end if passed.count(b"\r") == passed.count(b"\r\n") else 0


def _clean(block: Any, width: int, has_person: bool) -> Batch:
    dense = np.empty((block.num_rows, width), dtype=np.float64)
    for place in range(width):
        column = block.column(place)
        if column.null_count:
            raise Unclean
        dense[:, place] = column.to_numpy(zero_copy_only=False)
    # A sum is finite only if every value is; where it overflows, the careful reader decides.
    with np.errstate(over="ignore", invalid="ignore"):
        if not np.isfinite(dense.sum()):
            raise Unclean
    if not has_person:
        return Batch(dense)
    people = [name.strip() for name in block.column(width).to_pylist()]
    if not all(people):
        raise Unclean
    return Batch(dense, people)


def read_csv_carefully(file: IO[bytes], header: Header, bad: BadRowList) -> Iterator[Batch]:
    """Batches of the good rows, the bad ones noted with the line they begin on."""
    file.seek(0)
    lines = _Lines(file)
    reader = csv.reader(lines)
    rows: list[list[float]] = []
    people: list[str] | None = None if header.matched.person is None else []
    started = 1
    try:
        for record in reader:
            line, started = started, reader.line_num + 1
            lines.begin_record()
            if not record or line <= header.lines:
                continue
            reason = _take(record, header, rows, people)
            if reason:
                bad.add(line, reason)
            if len(rows) >= _ROWS_PER_BATCH:
                yield _batch(rows, header, people)
                rows, people = [], None if people is None else []
    except csv.Error as error:
        raise BadFormat(f"line {started} cannot be read as CSV: {error}") from error
    yield _batch(rows, header, people)


def _batch(rows: list[list[float]], header: Header, people: list[str] | None) -> Batch:
    return Batch(np.array(rows, dtype=np.float64).reshape(len(rows), len(header.matched.positions)), people)


def _take(record: list[str], header: Header, rows: list[list[float]], people: list[str] | None) -> str | None:
    """Append a good record; else say what is wrong with it."""
    if len(record) != len(header.names):
        return f"{len(record)} fields instead of {len(header.names)}"
    person = None
    if people is not None and header.matched.person is not None:
        person = record[header.matched.person].strip()
        if not person:
            return f"{header.names[header.matched.person]} is missing"
    values = []
    for place in header.matched.positions:
        text = record[place].strip()
        if not text:
            return f"{header.names[place]} is missing"
        if not _NUMBER.fullmatch(text):
            return f"{header.names[place]} is not a finite number"
        value = float(text)
        if not np.isfinite(value):
            return f"{header.names[place]} is not a finite number"
        values.append(value)
    rows.append(values)
    if people is not None and person is not None:
        people.append(person)
    return None


class _Lines:
    """Lines of a file as text; a line or a record without end is refused before it fills the memory."""

    def __init__(self, file: IO[bytes], block: int = _BLOCK):
        self._file, self._block = file, block
        self._number = 0
        self._whole: list[bytes] = []
        self._pending: bytes | None = b""
        self._record = 0

    def begin_record(self) -> None:
        """The lines so far have become whole records."""
        self._record = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if not self._whole:
            self._fill()
        line = self._whole.pop()
        self._number += 1
        self._record += len(line) + 1
        if self._record > _LONGEST_RECORD:
            raise BadFormat(
                f"the record that ends on line {self._number} or later is longer than {_LONGEST_RECORD} "
                "bytes; is a quote left open?"
            )
        return line.decode("utf-8-sig" if self._number == 1 else "utf-8", "surrogateescape") + "\n"

    def _fill(self) -> None:
        """Read on until there is a whole line, or the last one."""
        while not self._whole:
            if self._pending is None:
                raise StopIteration
            piece = self._file.read(self._block)
            if b"\0" in piece:
                raise BadFormat("the file holds zero bytes, so it is not CSV in UTF-8; save it as UTF-8 text")
            if not piece:
                self._whole = [self._pending] if self._pending else []
                self._pending = None
                continue
            *whole, self._pending = (self._pending + piece).split(b"\n")
            self._whole = whole[::-1]
            if len(self._pending) > _LONGEST_RECORD:
                line = self._number + len(whole) + 1
                raise BadFormat(f"line {line} is longer than {_LONGEST_RECORD} bytes; is this CSV?")
