"""Records of delimited text: each is decoded and split on its own, whatever the others hold.

A record is a line, or, where quoted fields may span lines, the lines up to one where quotes are closed. Arrow
splits blocks of plain lines, since it is fast; any other block is split record by record. Both split a record
alike, so which one does makes no difference (a test compares them).
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyarrow import csv as arrow_csv

from service.datasets.ingest.readers.batch import Expected, Records
from service.datasets.ingest.readers.columns import Matched, match_columns
from service.datasets.ingest.readers.text import ENCODINGS, SEPARATORS, Dialect
from service.datasets.ingest.reports import BadLine
from service.errors import BadFormat

_BLOCK = 1 << 20
_LONGEST_RECORD = 1 << 20
#: In place of the bytes of a record that is too long; they are valid in no encoding.
_TOO_LONG = b"\xff\xfe\xfd"
_CODECS = {"utf-16": "utf-16", "windows-1252": "cp1252", "latin-1": "latin-1"}

#: Lines in which each quote opens or closes a whole field.
_QUOTED = {
    sign: re.compile(
        rb'(?:(?:"(?:[^"\n]|"")*+"|[^"\n%b]*+)(?:%b|\r?\n))*+' % ((re.escape(sign.encode()),) * 2)
    )
    for sign in SEPARATORS
}

csv.field_size_limit(_LONGEST_RECORD)


@dataclass(frozen=True, eq=False)
class Block:
    """Whole records in UTF-8, each with its line end, and the number of the first line."""

    content: bytes
    line: int


@dataclass(frozen=True)
class Header:
    """The names of a file's columns and where the dataset's are."""

    matched: Matched
    dialect: Dialect

    @property
    def places(self) -> tuple[int, ...]:
        """Positions of the fields that are read: the dataset's columns, then the id column."""
        return self.matched.places

    @cached_property
    def keys(self) -> list[str]:
        """A name of each field that no other has."""
        return [str(place) for place in range(len(self.matched.names))]

    def records(
        self, fields: Sequence[Any], lines: npt.NDArray[np.intp], bad_lines: Sequence[BadLine] = ()
    ) -> Records:
        """Return records, given the fields that are read of each, column by column."""
        width = len(self.matched.positions)
        people = None if self.matched.person is None else fields[width]
        return Records(fields[:width], lines, people, bad_lines)


def open_text(file: IO[bytes], expected: Expected, dialect: Dialect) -> tuple[Header, Iterator[Block]]:
    """Return the header of a text file and the blocks of its records."""
    found = blocks(file, dialect)
    if not dialect.header:
        if not expected.positional or expected.id_column:
            raise BadFormat("a file without a header line needs a dataset whose columns have no names")
        return Header(match_columns(expected.columns, expected), dialect), found
    first = next(found, None)
    record, rest = b"", b""
    if first is not None:
        end = _end_of_first(first.content, dialect)
        record, rest = first.content[:end], first.content[end:]
    names, problem = split(record.removesuffix(b"\n").removesuffix(b"\r"), dialect)
    if problem:
        raise BadFormat(f"the header line {problem}")
    names = [name.strip() for name in names]
    if not any(names):
        raise BadFormat("the first line is empty; put the names of the columns there")
    if expected.positional and all(dialect.notation.number(name) is not None for name in names):
        raise BadFormat("the first line holds numbers; declare that the file has no header line, or add one")
    return Header(match_columns(names, expected), dialect), _following(record, rest, found)


def _following(record: bytes, rest: bytes, found: Iterator[Block]) -> Iterator[Block]:
    if rest:
        yield Block(rest, 1 + record.count(b"\n"))
    yield from found


def _end_of_first(content: bytes, dialect: Dialect) -> int:
    end = content.find(b"\n") + 1
    while dialect.quoted_lines and content.count(b'"', 0, end) % 2 and end < len(content):
        end = content.find(b"\n", end) + 1
    return end


def blocks(file: IO[bytes], dialect: Dialect) -> Iterator[Block]:
    """Return the records of a file, about a mebibyte at a time."""
    pending, line = b"", 1
    for piece in _in_utf8(file, dialect.encoding):
        pending += piece
        end = _end_of_records(pending, dialect)
        if end:
            yield Block(pending[:end], line)
            line += pending.count(b"\n", 0, end)
            pending = pending[end:]
        if len(pending) > _LONGEST_RECORD:  # forget what it holds, but not whether its quotes are closed
            line += pending.count(b"\n")
            pending = _TOO_LONG + b'"' * (pending.count(b'"') % 2)
    if pending:
        yield Block(pending + b"\n", line)


def _end_of_records(content: bytes, dialect: Dialect) -> int:
    """Return where the last whole record of some bytes ends."""
    end = content.rfind(b"\n") + 1
    if not dialect.quoted_lines:
        return end
    quotes = content.count(b'"', 0, end)
    while end and quotes % 2:
        before = content.rfind(b"\n", 0, end - 1) + 1
        quotes -= content.count(b'"', before, end)
        end = before
    return end


def _in_utf8(file: IO[bytes], encoding: str) -> Iterator[bytes]:
    """Return the bytes of a text file in UTF-8. What is not valid stays invalid, and so does its record."""
    start = True
    decoder = None
    if encoding != "utf-8":
        # Undefined bytes and single surrogates pass; in UTF-8 neither is valid.
        errors = "surrogatepass" if encoding == "utf-16" else "surrogateescape"
        decoder = codecs.getincrementaldecoder(_CODECS[encoding])(errors)
        encode_errors = errors
    while piece := file.read(_BLOCK):
        if decoder is not None:
            try:
                piece = decoder.decode(piece).encode("utf-8", encode_errors)
            except UnicodeError as error:
                raise BadFormat(f"the file is not {ENCODINGS[encoding]} text") from error
        yield piece.removeprefix(codecs.BOM_UTF8) if start else piece
        start = False
    if decoder is not None and decoder.getstate()[0]:
        yield _TOO_LONG  # half a sign at the end


def read_records(found: Iterator[Block], header: Header) -> Iterator[Records]:
    """Return the records of a file; those that cannot be split, or not as the header, are bad."""
    for block in found:
        yield _split_at_once(block, header) or _split_one_by_one(block, header)


def _split_at_once(block: Block, header: Header) -> Records | None:
    """Split plain lines that have as many fields as the header; None where there are others."""
    content, quoted = block.content, b'"' in block.content
    if not _is_plain(content, header.dialect, quoted):
        return None
    keys = [header.keys[place] for place in header.places]
    try:
        content.decode("utf-8")
        table = arrow_csv.read_csv(
            pa.BufferReader(content),
            read_options=arrow_csv.ReadOptions(
                use_threads=False, block_size=len(content) + 1, column_names=header.keys
            ),
            parse_options=arrow_csv.ParseOptions(
                delimiter=header.dialect.separator, quote_char='"' if quoted else False, double_quote=quoted
            ),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.string()), include_columns=keys, check_utf8=False
            ),
        )
    except (UnicodeDecodeError, pa.ArrowInvalid):
        return None
    if table.num_rows != content.count(b"\n"):  # empty lines
        return None
    columns = [pa.concat_arrays(table.column(key).chunks) for key in keys]
    return header.records(columns, np.arange(block.line, block.line + table.num_rows))


def _is_plain(content: bytes, dialect: Dialect, quoted: bool) -> bool:
    """Return True for lines that Arrow and `split` cut alike."""
    if b"\0" in content or content.startswith(codecs.BOM_UTF8):  # which Arrow would leave out
        return False
    if b"\r" in content and content.count(b"\r") != content.count(b"\r\n"):
        return False
    return not quoted or (
        not dialect.quoted_lines and _QUOTED[dialect.separator].fullmatch(content) is not None
    )


def _split_one_by_one(block: Block, header: Header) -> Records:
    """Split each record; those that are not as the header says are bad."""
    width, rows, lines, bad_lines = len(header.keys), [], [], []
    for line, record in _records(block, header.dialect):
        fields, problem = split(record, header.dialect)
        if not problem and len(fields) != width:
            problem = f"has {'1 field' if len(fields) == 1 else f'{len(fields)} fields'} instead of {width}"
        if problem:
            bad_lines.append((line, f"the line {problem}"))
            continue
        rows.append([fields[place] for place in header.places])
        lines.append(line)
    by_column = zip(*rows, strict=True) if rows else [()] * len(header.places)
    columns = [pa.array(column, pa.string()) for column in by_column]
    return header.records(columns, np.array(lines, dtype=np.intp), bad_lines)


def _records(block: Block, dialect: Dialect) -> Iterator[tuple[int, bytes]]:
    """Return each record that is not empty, without its line end, and the line that it begins on."""
    line = begun = block.line
    pending = b""
    for text in block.content.split(b"\n"):
        pending += text
        line += 1
        if dialect.quoted_lines and pending.count(b'"') % 2:
            pending += b"\n"
            continue
        record = pending.removesuffix(b"\r")
        if record:
            yield begun, record
        begun, pending = line, b""
    if pending:
        yield begun, pending


def split(record: bytes, dialect: Dialect) -> tuple[list[str], str]:
    """Return the fields of one record, or what is wrong with it."""
    if _TOO_LONG in record:
        return [], f"is longer than {_LONGEST_RECORD} bytes, or incomplete; is a quote left open?"
    try:
        text = record.decode("utf-8")
    except UnicodeDecodeError:
        others = ", ".join(name for name in ENCODINGS if name != dialect.encoding)
        return [], f"is not valid {ENCODINGS[dialect.encoding]}; declare the file's encoding ({others})"
    if "\0" in text:
        return [], "holds zero bytes; is the file UTF-16? If so, declare that encoding"
    if '"' not in text:
        return text.split(dialect.separator), ""
    try:
        (fields,) = csv.reader([text], delimiter=dialect.separator, strict=True)
    except (csv.Error, ValueError):
        advice = "" if dialect.quoted_lines else "; if fields span lines, declare quoted line breaks"
        return [], f"has a quote that is not closed, or text after a closing quote{advice}"
    return fields, ""
