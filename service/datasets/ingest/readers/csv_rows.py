"""Rows of CSV files: a fast reader for files without fault, and a careful one that finds bad lines.

The fast reader (pyarrow) goes through the file in blocks. It gives up at the first thing it cannot read, and
the careful reader goes through the whole file from the start, so that both agree on every row.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import csv as arrow_csv

from service.datasets.ingest.findings import Findings, quoted
from service.datasets.ingest.readers.batch import Batch, Expected, is_missing_id
from service.datasets.ingest.readers.columns import Matched, match_columns
from service.datasets.ingest.readers.text import PLAIN, Dialect, decimal_sign
from service.errors import BadFormat

_BLOCK = 1 << 20
_HEADER_BLOCK = 1 << 16
_LONGEST_RECORD = 1 << 20
ROWS_PER_BATCH = 8192

csv.field_size_limit(_LONGEST_RECORD)


class Unclean(Exception):
    """The fast reader met something that it cannot read as a good row."""


@dataclass(frozen=True)
class Header:
    """The first record of a CSV file."""

    names: tuple[str, ...]
    lines: int
    matched: Matched
    dialect: Dialect


def read_header(file: IO[bytes], expected: Expected, dialect: Dialect = PLAIN) -> Header:
    """Read and match the header; a file of numbers alone has none and is in the dataset's order."""
    reader = csv.reader(_Lines(file, _HEADER_BLOCK), delimiter=dialect.separator)
    try:
        first = next(reader, None)
    except csv.Error as error:
        raise BadFormat(f"the header cannot be read as CSV: {error}") from error
    if first is None or not any(first):
        raise BadFormat("the first line is empty; put the names of the columns there")
    names = tuple(name.strip() for name in first)
    if (
        expected.positional
        and expected.id_column is None
        and all(dialect.number(name) is not None for name in names)
    ):
        generic = (
            tuple(expected.columns)
            if len(names) == len(expected.columns)
            else tuple(f"column {i}" for i in names)
        )
        return Header(generic, 0, match_columns(generic, expected), dialect)
    return Header(names, reader.line_num, match_columns(names, expected), dialect)


def read_csv_fast(file: IO[bytes], header: Header) -> Iterator[Batch]:
    """Return batches of a file in which every row is good; Unclean at the first doubt.

    The file must be this reader's alone: dropped, it may still read ahead for a while.
    """
    width = len(header.matched.positions)
    for block in blocks(file, header, [pa.float64()] * width):
        yield _clean(block, width, header.matched.person is not None)


def blocks(
    file: IO[bytes], header: Header, types: Sequence[pa.DataType], missing: Sequence[str] | None = None
) -> Iterator[Any]:
    """Return the dataset's columns of a file in these types, then the id column, some rows at a time."""
    keys = [str(place) for place in range(len(header.names))]
    matched, dialect = header.matched, header.dialect
    values = [keys[place] for place in matched.positions]
    person = [] if matched.person is None else [keys[matched.person]]
    try:
        yield from arrow_csv.open_csv(
            pa.PythonFile(file, mode="r"),
            read_options=arrow_csv.ReadOptions(block_size=_BLOCK, column_names=keys, skip_rows=header.lines),
            parse_options=arrow_csv.ParseOptions(delimiter=dialect.separator, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types={**dict(zip(values, types, strict=True)), **dict.fromkeys(person, pa.string())},
                include_columns=values + person,
                decimal_point=dialect.decimal,
                null_values=missing,
            ),
        )
    except (pa.ArrowException, ValueError, OverflowError) as error:
        raise Unclean from error


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
    people = people_of(block, width)
    if any(is_missing_id(name) for name in people):
        raise Unclean
    return Batch(dense, people)


def people_of(block: Any, place: int) -> list[str]:
    """Return the entries of the id column."""
    return [name.strip() for name in block.column(place).to_pylist()]


def read_csv_carefully(file: IO[bytes], header: Header, findings: Findings) -> Iterator[Batch]:
    """Return batches of the good rows, the bad ones noted with the line they begin on."""
    rows: list[list[float]] = []
    people: list[str] | None = None if header.matched.person is None else []
    for line, record in records(file, header, findings):
        reason = _take(record, header, rows, people, findings)
        if reason:
            findings.add(line, reason)
        if len(rows) >= ROWS_PER_BATCH:
            yield _batch(rows, header, people)
            rows, people = [], None if people is None else []
    yield _batch(rows, header, people)


def records(file: IO[bytes], header: Header, findings: Findings) -> Iterator[tuple[int, list[str]]]:
    """Return each record with the line it begins on; those with too few or too many fields are bad."""
    lines = _Lines(file)
    reader = csv.reader(lines, delimiter=header.dialect.separator)
    started = 1
    try:
        for record in reader:
            line, started = started, reader.line_num + 1
            lines.begin_record()
            if not record or line <= header.lines:
                continue
            if len(record) != len(header.names):
                fields = "1 field" if len(record) == 1 else f"{len(record)} fields"
                findings.add(line, f"{fields} instead of {len(header.names)}")
                continue
            yield line, record
    except csv.Error as error:
        raise BadFormat(f"line {started} cannot be read as CSV: {error}") from error


def _batch(rows: list[list[float]], header: Header, people: list[str] | None) -> Batch:
    return Batch(np.array(rows, dtype=np.float64).reshape(len(rows), len(header.matched.positions)), people)


def _take(
    record: list[str],
    header: Header,
    rows: list[list[float]],
    people: list[str] | None,
    findings: Findings,
) -> str | None:
    """Append a good record; return the first reason when it is bad."""
    reasons = []
    person = "" if header.matched.person is None else record[header.matched.person].strip()
    if header.matched.person is not None and is_missing_id(person):
        findings.column(header.names[header.matched.person]).missing += 1
        reasons.append(f"{header.names[header.matched.person]} is missing")
    values = []
    for place in header.matched.positions:
        text = record[place].strip()
        number = header.dialect.number(text)
        value = np.nan if number is None else number
        values.append(value)
        if np.isfinite(value):
            continue
        column = findings.column(header.names[place])
        if text:
            column.unreadable += 1
            column.example(text)
            reasons.append(f"{header.names[place]}: {quoted(text)} is not a finite number{hint(text)}")
        else:
            column.missing += 1
            reasons.append(f"{header.names[place]} is missing")
    if reasons:
        return reasons[0]
    rows.append(values)
    if people is not None:
        people.append(person)
    return None


def hint(text: str) -> str:
    """Say what a value looks like that is not a number."""
    if text.casefold() in ("true", "false", "yes", "no"):
        return "; write 1 and 0 for yes and no"
    if decimal_sign(text) == ",":
        return "; it has a decimal comma, unlike the first lines"
    return ""


class _Lines:
    """Lines of a file as text; an endless line or record is refused before it fills the memory."""

    def __init__(self, file: IO[bytes], block: int = _BLOCK):
        self._file, self._block = file, block
        self._number = 0
        self._whole: list[bytes] = []
        self._pending: bytes | None = b""
        self._record = 0

    def begin_record(self) -> None:
        """Start counting the bytes of the next record."""
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
        """Read until there is a complete line, or the last one."""
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
