"""Encoding a file is encoding its records one by one: no record decides how another is read.

Each example is a file of some records. What is stored of it must be what is stored of each record alone, put
together; leaving a record out then moves no other. `make audit` runs these tests on many fresh examples.
"""

from __future__ import annotations

import gzip
import io
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import ipc, parquet

from core.data import Boolean, Category, Date, DateTime, Dense, Ids, Number, Stored, Table, Text
from service.datasets.ingest.chunks import decode_payload
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.readers.proposed import propose_reading
from service.datasets.ingest.readers.text import Dialect
from service.datasets.ingest.spool import Spool
from service.errors import BadRows
from service.operations.settings import Settings
from tests.support.spreadsheets import spreadsheet

SETTINGS = Settings(database_url="sqlite://")
COLUMNS = (
    Number(name="amount", low=-100, high=10_000, missing="fill", fill=5),
    Number(name="count", low=0, high=50, whole=True, missing="drop"),
    Category(name="ward", levels=("Nord", "Süd", "1", "missing one"), other="1", missing="level"),
    Boolean(name="smoker", role="keep"),
    Date(name="day", low="2020-01-01", high="2030-01-01", order="dmy", role="keep"),
    DateTime(name="seen", low="2020-01-01T00:00", high="2030-01-01T00:00", role="keep"),
)
NAMES = [column.name for column in COLUMNS]
TABLE = Table(declared=COLUMNS, size=100)
PEOPLE = Table(declared=(Text(name="who", role="id"), *COLUMNS), size=100, rows_per_person=2)
DENSE = Dense.box(-1.0, 1e6, ["a", "b"], size=100)
BALL = Dense.ball(3.0, columns=["a", "b"], size=100)
SITES = Ids(count=7, size=100)

Row = tuple[int, ...]
#: What is stored of a file; None where it is refused for a bad row.
Encoder = Callable[[bytes], list[Row] | None]


def encoder(domain: Stored, dialect: Dialect | None = None, *, drop: bool = True) -> Encoder:
    """Encode files as the service does."""
    expected = Expected(domain, getattr(domain, "id_column", None), dialect or Dialect())

    def rows(content: bytes) -> list[Row] | None:
        with Spool(None, 1 << 30) as spool:
            spool.write(content)
            try:
                with closing(encode(Upload(spool, "", expected, SETTINGS, drop))) as encoded:
                    parts = [
                        np.asarray(decode_payload(domain.kind, each.payload, domain.dimension))
                        for each in encoded.chunks()
                    ]
            except BadRows:
                return None
        return [tuple(np.atleast_1d(row).tolist()) for part in parts for row in part]

    return rows


def put_together(alone: Sequence[list[Row] | None], people: Sequence[str] | None = None) -> list[Row] | None:
    """What is stored of records, from what is stored of each alone."""
    if any(rows is None for rows in alone):
        return None
    found, seen = [], Counter[str]()
    for place, rows in enumerate(alone):
        assert rows is not None
        if rows and people is not None:
            seen[people[place]] += 1
            if seen[people[place]] > PEOPLE.rows_per_person:
                continue
        found += rows
    return found


def check(encoded: Encoder, file: Callable[[Sequence[Any]], bytes], records: Sequence[Any]) -> None:
    """A file is what its records are alone, and so is the file without any one of them."""
    alone = [encoded(file([record])) for record in records]
    assert encoded(file(records)) == put_together(alone)
    for place in range(len(records)):
        others = [*records[:place], *records[place + 1 :]]
        assert encoded(file(others)) == put_together(alone[:place] + alone[place + 1 :])


_NUMBERS = [
    "1",
    "-2",
    "12,5",
    "12.5",
    "1.234",
    "1,234",
    "1.234,5",
    "1 234",
    "1'234",
    "7e2",
    "nan",
    "x",
    "",
    "NA",
]
_WORDS = ["Nord", " Süd ", "nord", "1", "1.0", "true", "yes", "0", "", "null", "é€", "a;b", "a,b", 'say "hi"']
_DATES = ["01.02.2024", "12/31/2024", "2024-05-06", "13.1.2024", "2024-05-06 10:00", "45000", "", "NaT"]
FIELDS = st.tuples(*map(st.sampled_from, (_NUMBERS, _NUMBERS, _WORDS, _WORDS, _DATES, _DATES)))
#: Parts of lines that no program would write.
_STRANGE = st.lists(
    st.sampled_from(
        [b'"', b'""', b"\r", b"\0", b"\xe9", b"\xff", b"\x81", b",", b";", b"1", b"\xef\xbb\xbf", b" "]
    ),
    max_size=8,
).map(b"".join)
DIALECTS = st.sampled_from(
    [
        Dialect(),
        Dialect(separator=";", decimal=",", encoding="windows-1252"),
        Dialect(separator=";", decimal=",", thousands=".", encoding="latin-1"),
        Dialect(separator="\t", thousands=" ", encoding="utf-16"),
        Dialect(separator="|", thousands=",", quoted_lines=True),
    ]
)
_CODECS = {"windows-1252": "cp1252", "utf-16": "utf-16-le"}


def line_of(fields: Sequence[str], dialect: Dialect) -> bytes:
    """A record as its dialect writes it, without its line end."""
    needs = ('"', dialect.separator, "\n", "\r")
    quoted = [
        f'"{each.replace(chr(34), chr(34) * 2)}"' if any(n in each for n in needs) else each
        for each in fields
    ]
    return dialect.separator.join(quoted).encode(_CODECS.get(dialect.encoding, dialect.encoding), "replace")


def text_file(names: Sequence[str], dialect: Dialect, end: str = "\n") -> Callable[[Sequence[bytes]], bytes]:
    """Write lines below a header."""
    codec = _CODECS.get(dialect.encoding, dialect.encoding)
    mark = b"\xff\xfe" if dialect.encoding == "utf-16" else b""
    header, ends = dialect.separator.join(names).encode(codec), end.encode(codec)
    return lambda records: mark + b"".join(line + ends for line in [header, *records])


@given(
    dialect=DIALECTS,
    fields=st.lists(FIELDS, max_size=5),
    drop=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_rows_of_a_table_in_text(dialect: Dialect, fields: list[Sequence[str]], drop: bool, end: str) -> None:
    records = [line_of(each, dialect) for each in fields]
    check(encoder(TABLE, dialect, drop=drop), text_file(NAMES, dialect, end), records)


@given(
    fields=st.lists(FIELDS, min_size=1, max_size=3),
    strange=st.lists(_STRANGE, min_size=1, max_size=3),
    encoding=st.sampled_from(["utf-8", "windows-1252", "latin-1"]),
    order=st.permutations(range(6)),
)
def test_strange_lines_among_rows_of_a_table(
    fields: list[Sequence[str]], strange: list[bytes], encoding: str, order: list[int]
) -> None:
    dialect = Dialect(encoding=encoding, separator=";")
    lines = [*(line_of(each, dialect) for each in fields), *strange]
    records = [lines[place] for place in order if place < len(lines)]
    check(encoder(TABLE, dialect), text_file(["more", *NAMES], dialect), records)
    check(encoder(TABLE, dialect), text_file(NAMES, dialect), records)


@given(
    fields=st.lists(FIELDS, max_size=6),
    who=st.lists(st.sampled_from(["p", " p", "q", "", "NA", "r"]), min_size=6),
)
def test_rows_of_people_in_text(fields: list[Sequence[str]], who: list[str]) -> None:
    file, encoded = text_file(["who", *NAMES], Dialect()), encoder(PEOPLE)
    records = [line_of([name, *each], Dialect()) for name, each in zip(who, fields, strict=False)]
    alone, people = [encoded(file([record])) for record in records], [name.strip() for name in who]
    for left_out in {None, *people}:  # all rows of a person
        kept = [place for place in range(len(records)) if people[place] != left_out]
        expected = put_together([alone[place] for place in kept], [people[place] for place in kept])
        assert encoded(file([records[place] for place in kept])) == expected


@given(
    domain=st.sampled_from([DENSE, BALL, SITES]),
    fields=st.lists(
        st.tuples(st.sampled_from([*_NUMBERS, "1e300", "-1e308"]), st.sampled_from(_NUMBERS)), max_size=6
    ),
    drop=st.booleans(),
)
def test_rows_of_numbers_in_text(domain: Stored, fields: list[Sequence[str]], drop: bool) -> None:
    names = list(domain.columns)
    dialect = Dialect(separator=";", decimal=",")
    records = [line_of(each[: len(names)], dialect) for each in fields]
    check(encoder(domain, dialect, drop=drop), text_file(names, dialect), [each for each in records if each])


@given(
    fields=st.lists(FIELDS, max_size=4), extra=st.lists(st.sampled_from(["", "note"]), min_size=4, max_size=4)
)
def test_rows_of_a_packed_file(fields: list[Sequence[str]], extra: list[str]) -> None:
    write = text_file([*NAMES, "note"], Dialect())
    records = [line_of([*each, note], Dialect()) for each, note in zip(fields, extra, strict=False)]
    check(encoder(TABLE), lambda lines: gzip.compress(write(lines)), records)


_TYPED = {
    "amount": st.sampled_from([None, 1.0, -2.5, float("nan"), float("inf"), 1e300]),
    "count": st.sampled_from([None, 1, 7, 2**60]),
    "ward": st.sampled_from([None, "Nord", " Süd", "1", "x" * 2000, "NaN"]),
    "smoker": st.sampled_from([None, True, False]),
    "day": st.sampled_from([None, date(2024, 5, 6), date(1000, 1, 1)]),
    "seen": st.sampled_from([None, "2024-05-06T10:00", "06.05.2024", "x"]),
}
_TYPES = (pa.float64(), pa.int64(), pa.string(), pa.bool_(), pa.date32(), pa.string())
SCHEMA = pa.schema(list(zip(NAMES, _TYPES, strict=True)))
_DICTIONARY = pa.dictionary(pa.int32(), pa.string())


def as_parquet(records: Sequence[Sequence[Any]], schema: pa.Schema = SCHEMA) -> bytes:
    """Write records of these types."""
    file = io.BytesIO()
    parquet.write_table(_frame(records, schema), file)
    return file.getvalue()


def as_arrow(records: Sequence[Sequence[Any]], schema: pa.Schema = SCHEMA) -> bytes:
    """Write records of these types, texts in a dictionary."""
    frame = _frame(records, schema)
    frame = frame.set_column(2, "ward", frame["ward"].cast(_DICTIONARY).combine_chunks())
    file = io.BytesIO()
    with ipc.new_file(file, frame.schema) as writer:
        writer.write_table(frame)
    return file.getvalue()


def _frame(records: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    columns = [list(column) for column in zip(*records, strict=True)] or [[] for _ in schema]
    return pa.table([pa.array(c, t) for c, t in zip(columns, schema.types, strict=True)], schema=schema)


@given(
    records=st.lists(st.tuples(*_TYPED.values()), max_size=5),
    write=st.sampled_from([as_parquet, as_arrow]),
    drop=st.booleans(),
)
def test_rows_of_typed_columns(records: list[Any], write: Callable[..., bytes], drop: bool) -> None:
    check(encoder(TABLE, drop=drop), write, records)


_LEVELS = Table(
    declared=(Category(name="ward", levels=("1", "2", "2.5", "x"), other="x", missing="level"),), size=9
)


@given(st.lists(st.sampled_from([None, 1, 2, 3, 10**15]), min_size=1, max_size=5))
def test_a_gap_that_makes_floats_of_whole_numbers_moves_no_level(values: list[int | None]) -> None:
    """A program that writes whole numbers with gaps as floats stores the same levels."""
    encoded = encoder(_LEVELS)
    kinds = [pa.int64(), pa.float64()]
    one, other = (encoded(as_parquet([(v,) for v in values], pa.schema([("ward", kind)]))) for kind in kinds)
    texts = [("" if v is None else str(v),) for v in values]
    assert one == other == encoded(as_parquet(texts, pa.schema([("ward", pa.string())])))


@pytest.mark.parametrize("drop", [True, False])
def test_rows_of_a_sheet(drop: bool) -> None:
    records: list[list[Any]] = [  # few, since a process reads each sheet
        [1, 1, "Nord", True, "01.02.2024", "2024-05-06T10:00", ""],
        ["12,5", 2.0, 'a"b', "yes", "2024-05-06", "", "stray"],
        [2.5, "7", "two\nlines", 0, "01.02.2024", "2024-05-06T10:00", ""],
    ]
    check(encoder(TABLE, drop=drop), lambda rows: spreadsheet([NAMES, *rows]), records)


@given(
    st.lists(st.tuples(*[st.sampled_from([0.0, 1.5, np.nan, np.inf, 1e300, -1e308])] * 2), max_size=6),
    st.booleans(),
)
def test_rows_of_an_array(records: list[Any], drop: bool) -> None:
    def as_npy(rows: Sequence[Any]) -> bytes:
        file = io.BytesIO()
        np.save(file, np.array(rows, dtype=np.float64).reshape(-1, 2))
        return file.getvalue()

    check(encoder(BALL, drop=drop), as_npy, records)


def _by_votes(content: bytes) -> Dialect:
    """A reader that takes the decimal sign and the encoding which most of the file shows."""
    proposed = propose_reading(content)
    return replace(
        Dialect(separator=";"), decimal=proposed.dialect.decimal, encoding=proposed.dialect.encoding
    )


TWINS: dict[str, tuple[Callable[[bytes], Dialect], list[bytes]]] = {
    "votes for a decimal sign": (_by_votes, [b"1.234;1;Nord;1;1.2.2024;", b"12,5;1;Nord;1;1.2.2024;"]),
    "latin-1 where a byte is not utf-8": (
        _by_votes,
        ["1;1;Süd;1;1.2.2024;".encode(), "1;1;Süd;1;1.2.2024;".encode("latin-1")],
    ),
    "quotes that take in other lines": (
        lambda _: Dialect(separator=";", quoted_lines=True),
        [b'1;1;"Nord;1;1.2.2024;', b"1;1;Nord;1;1.2.2024;", b'1;1;Nord";1;1.2.2024;'],
    ),
}


@pytest.mark.parametrize("name", TWINS)
def test_a_reader_that_looks_at_the_whole_file_is_caught(name: str) -> None:
    choose, records = TWINS[name]
    file = text_file(NAMES, Dialect(separator=";"))
    with pytest.raises(AssertionError):
        check(lambda content: encoder(TABLE, choose(content))(content), file, records)
    check(encoder(TABLE, Dialect(separator=";")), file, records)
