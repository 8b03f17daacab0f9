"""Delimited text is split record by record: fast and slow ways agree, and no record decides about another."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.data import Boolean, Category, Date, Dense, Number, Table
from service.datasets.ingest.readers import records
from service.datasets.ingest.readers.batch import Batch, Expected
from service.datasets.ingest.readers.number_rows import NumberReader
from service.datasets.ingest.readers.records import open_text, read_records
from service.datasets.ingest.readers.table_rows import TableReader
from service.datasets.ingest.readers.text import Dialect
from service.errors import BadFormat

DENSE = Expected(Dense.box(0.0, 10.0, ["a", "b"], size=100))
TABLE = Expected(
    Table(
        declared=(
            Number(name="a", low=0, high=100, missing="fill", fill=5),
            Category(name="b", levels=("north", "south", "x"), other="x", missing="fill", fill="x"),
            Boolean(name="c", missing="fill", fill=True),
            Date(name="d", low="2020-01-01", high="2030-01-01", missing="drop"),
        ),
        size=10,
    )
)
#: Odd spellings of numbers, texts, dates and gaps, combined below to more than 2,000 cells.
_SIGNS = ["", "+", "-", "--", " ", "\t", "\u00a0", "0x", "'"]
_NUMBERS = (
    "0 1 12.5 1. .5 . 1,5 1.234 1,234 1.234,5 1\u2009234 1'234 12,34 ١ 1_0 1e3 1E+3 1e e5 1e999 1e-999 ½ ²"
)
_WORDS = "inf Infinity nan nan(1) NA n/a null NaT <NA> None #N/A true Yes f north North x é"
_DATES = "2024-05-05 01.02.2024 2024-13-01 20240505 5/6/2024 2024-05-05T10:00:00 2024-W01-1"
_BODIES = ["", "1 234", "9" * 400, "0001", *_NUMBERS.split(), *_WORDS.split(), *_DATES.split()]
_ENDS = ["", " ", "%", "\x0b", "\ufeff", "\u2028"]
ODD = [f"{sign}{body}{end}" for sign in _SIGNS for body in _BODIES for end in _ENDS]


def batches(content: bytes, expected: Expected, dialect: Dialect | None = None) -> Iterator[Batch]:
    """The rows of a file, batch by batch."""
    dialect = dialect or expected.dialect
    header, blocks = open_text(io.BytesIO(content), expected, dialect)
    reader: TableReader | NumberReader = NumberReader.of(expected, header.matched, dialect.notation)
    if isinstance(expected.domain, Table):
        reader = TableReader.of(expected, dialect.notation)
    return (reader.batch(each) for each in read_records(blocks, header))


def stored(content: bytes, expected: Expected, dialect: Dialect | None = None) -> list[tuple[Any, ...]]:
    """The rows of a file as they would be stored, bad ones left out."""
    found = batches(content, expected, dialect)
    return [tuple(row) for batch in found for row in np.asarray(batch.values).tolist()]


def slowly(content: bytes, expected: Expected, dialect: Dialect | None = None) -> list[tuple[Any, ...]]:
    """The same with every record split by itself and every number read by itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_split_at_once", lambda block, header: None)
        patch.setattr("service.datasets.ingest.readers.numbers._plain_numbers", lambda texts, notation: None)
        return stored(content, expected, dialect)


def test_fast_and_slow_ways_read_two_thousand_odd_spellings_alike() -> None:
    assert len(ODD) > 2000
    for decimal, thousands, texts in ((".", "", ODD), (",", ".", ODD[::7]), (".", " ", ODD[::7])):
        dialect = Dialect(separator=";", decimal=decimal, thousands=thousands)
        for text in texts:
            rows = [f"{text};north;yes;2024-05-05", f"1;{text};{text};2024-05-05", f"1;south;no;{text}"]
            content = ("a;b;c;d\n" + "\n".join(rows) + "\n").encode()
            assert stored(content, TABLE, dialect) == slowly(content, TABLE, dialect), (text, dialect)


def test_an_odd_spelling_is_read_alike_alone_and_among_plain_ones() -> None:
    plain = ["1.5;2", "3;4"]
    for text in ODD[::3]:
        alone = stored(f"a;b\n{text};2\n".encode(), DENSE, Dialect(separator=";"))
        among = stored(
            "\n".join(["a;b", plain[0], f"{text};2", plain[1]]).encode(), DENSE, Dialect(separator=";")
        )
        assert among == [(1.5, 2.0), *alone, (3.0, 4.0)], text


_CELL = st.sampled_from(
    ["1", "-2.5", "3e2", ".5", "", "x", "NA", "nan", '"2"', '"a,b"', '"3', 'a"b', "\r", "\0", "\udcff", "é"]
)
_GOOD = st.sampled_from(["1", "-2.5", "3e2", ".5"])


@given(
    rows=st.lists(
        st.lists(_CELL, min_size=1, max_size=3) | st.lists(_GOOD, min_size=2, max_size=2), max_size=20
    ),
    ends=st.sampled_from(["\n", "\r\n", "\n\n", "\r"]),
    quoted_lines=st.booleans(),
    block=st.sampled_from([7, 64, 1 << 20]),
)
def test_fast_and_slow_ways_agree_whatever_the_blocks(
    rows: list[Sequence[str]], ends: str, quoted_lines: bool, block: int
) -> None:
    content = ends.join(["a,b", *(",".join(row) for row in rows)]).encode("utf-8", "surrogateescape")
    dialect = Dialect(quoted_lines=quoted_lines)
    try:
        found = slowly(content, DENSE, dialect)
    except BadFormat:  # the header line ends nowhere
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(records, "_BLOCK", block)
        assert stored(content, DENSE, dialect) == found


def test_plain_lines_are_split_at_once_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(records, "_BLOCK", 64)
    monkeypatch.delattr(records, "_split_one_by_one")
    content = "\r\n".join(["a,b", *(f"{number / 60},{number / 100}" for number in range(500))]).encode()
    assert stored(content, DENSE) == [(number / 60, number / 100) for number in range(500)]


ENCODINGS = ["utf-8", "utf-16", "windows-1252", "latin-1"]
#: Bytes of records that are valid in no encoding, or in some.
_BYTES = [b"", b"\xe9", b"\x81", b"\xff", b"\xed\xa0\x80", b"\xc3"]


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("quoted_lines", [False, True])
def test_a_record_that_cannot_be_decoded_is_bad_by_itself(encoding: str, quoted_lines: bool) -> None:
    codec = {"windows-1252": "cp1252"}.get(encoding, encoding)
    dialect = Dialect(encoding=encoding, quoted_lines=quoted_lines)
    good = "3,4\n".encode("utf-16-le" if encoding == "utf-16" else codec)
    for odd in (b"\x00\xd8", b"\x00\xdc") if encoding == "utf-16" else _BYTES:
        strange = odd + "1,2\n".encode("utf-16-le" if encoding == "utf-16" else codec)
        content = "a,b\n5,6\n".encode(codec) + strange + good
        assert stored(content, DENSE, dialect)[0] == (5.0, 6.0)
        assert stored(content, DENSE, dialect)[-1] == (3.0, 4.0)


def test_half_a_sign_at_the_end_of_a_file_is_no_part_of_a_record() -> None:
    content = "a,b\n5,6\n1,2".encode("utf-16") + b"3"
    assert stored(content, DENSE, Dialect(encoding="utf-16")) == [(5.0, 6.0)]


@pytest.mark.parametrize("quoted_lines", [False, True])
def test_a_record_that_is_too_long_is_bad_by_itself(
    quoted_lines: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "_BLOCK", 64)
    monkeypatch.setattr(records, "_LONGEST_RECORD", 1000)
    dialect = Dialect(quoted_lines=quoted_lines)
    for field in ("1" * 5000, '"' + "1" * 5000 + '"'):
        content = f"a,b\n5,6\n{field},2\n3,4\n".encode()
        assert stored(content, DENSE, dialect) == [(5.0, 6.0), (3.0, 4.0)]


def test_a_quote_that_is_left_open_takes_in_no_other_line() -> None:
    content = b'a,b\n1,2\n"3,4\n5,6\n7,"8\n9,1\n'
    assert stored(content, DENSE) == [(1.0, 2.0), (5.0, 6.0), (9.0, 1.0)]


def test_fields_that_span_lines_are_read_where_that_is_declared() -> None:
    content = b'a,b,note\n1,2,"two\nlines, ""quoted"""\n3,4,\n'
    assert stored(content, DENSE, Dialect(quoted_lines=True)) == [(1.0, 2.0), (3.0, 4.0)]
    assert stored(content, DENSE) == [(3.0, 4.0)]


LINES: Sequence[tuple[bytes, str]] = [
    (b"\xe91,2", "is not valid UTF-8; declare the file's encoding"),
    (b"1,\x002", "holds zero bytes"),
    (b'"1,2', "has a quote that is not closed"),
    (b'"1"1,2', "has a quote that is not closed, or text after a closing quote"),
    (b"1,2,3", "has 3 fields instead of 2"),
    (b"1", "has 1 field instead of 2"),
    (b"12,1.234.567", "if it is one, declare the “.” between thousands"),
    (b'"1,5",2', "if it is one, declare the decimal sign “,”"),
    (b"1 234,2", "if it is one, declare the blank between thousands"),
    (b"yes,2", "write 1 and 0 for yes and no"),
]


@pytest.mark.parametrize(("line", "reason"), LINES)
def test_a_bad_line_is_named_with_what_to_declare(line: bytes, reason: str) -> None:
    (batch,) = batches(b"a,b\n1,2\n" + line + b"\n3,4\n", DENSE)
    ((number, found),) = batch.report.bad_lines
    assert number == 3
    assert reason in found


def test_a_file_of_numbers_alone_says_that_its_header_is_missing() -> None:
    unnamed = Expected(Dense.box(0.0, 10.0, dimension=2, size=100))
    with pytest.raises(BadFormat, match="declare that the file has no header line"):
        stored(b"1,2\n3,4\n", unnamed)
    assert stored(b"1,2\n3,4\n", unnamed, Dialect(header=False)) == [(1.0, 2.0), (3.0, 4.0)]
    with pytest.raises(BadFormat, match="whose columns have no names"):
        stored(b"1,2\n3,4\n", DENSE, Dialect(header=False))
