"""Columns of a table are read from every format, each by its kind, and what is found is reported."""

from __future__ import annotations

import io
from contextlib import closing
from dataclasses import replace
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from pyarrow import ipc, parquet

from core.data import Boolean, Category, Date, DateTime, Number, Table, Text
from service.datasets.ingest.chunks import decode_payload
from service.datasets.ingest.encode import Upload, encode
from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.readers.text import PLAIN, Dialect
from service.datasets.ingest.spool import Spool
from service.errors import BadFormat, BadRows
from service.operations.settings import Settings
from tests.support.spreadsheets import spreadsheet

COLUMNS = (
    Number(name="age", low=0, high=110, whole=True),
    Number(name="cost", low=0, high=10_000, log=True, offset=10),
    Category(name="region", levels=("north", "south", "else"), other="else"),
    Boolean(name="smoker"),
    Date(name="visited", low="2024-01-01", high="2024-12-31"),
    DateTime(name="seen", low="2024-01-01T00:00", high="2024-12-31T00:00", role="keep"),
)
TABLE = Table(declared=COLUMNS, size=100)
NAMES = [column.name for column in COLUMNS]
ROWS: list[list[Any]] = [
    [41, 1234.5, "north", True, date(2024, 3, 1), datetime(2024, 3, 1, 10, 30, tzinfo=UTC)],
    [0, 0.0, "south", False, date(2024, 1, 1), None],
    [110, 10_000.0, "else", True, date(2024, 12, 31), datetime(2024, 1, 1, tzinfo=UTC)],
]


def expected_codes(rows: list[list[Any]] = ROWS) -> npt.NDArray[Any]:
    by_column = zip(COLUMNS, zip(*rows, strict=True), strict=True)
    return np.stack([column.read(list(values)).codes for column, values in by_column], axis=1)


def found(
    content: bytes, table: Table = TABLE, dialect: Dialect = PLAIN, **choices: Any
) -> tuple[Any, dict[str, Any]]:
    """The stored codes and the report of an upload."""
    settings = Settings(database_url="sqlite://")
    with Spool(None, 1 << 30) as spool:
        spool.write(content)
        upload = Upload(spool, "", Expected(table, table.id_column, dialect), settings, **choices)
        with closing(encode(upload)) as encoded:
            parts: list[Any] = [
                decode_payload("table", each.payload, table.dimension) for each in encoded.chunks()
            ]
            return np.concatenate(parts), encoded.report([])


def csv_of(rows: list[list[str]], names: list[str] = NAMES, separator: str = ",") -> bytes:
    return "\n".join(separator.join(row) for row in [names, *rows]).encode()


def as_parquet(frame: pa.Table) -> bytes:
    file = io.BytesIO()
    parquet.write_table(frame, file)
    return file.getvalue()


def as_arrow(frame: pa.Table) -> bytes:
    file = io.BytesIO()
    with ipc.new_file(file, frame.schema) as writer:
        writer.write_table(frame)
    return file.getvalue()


FRAME = pa.table({name: list(values) for name, values in zip(NAMES, zip(*ROWS, strict=True), strict=True)})
TEXTS = pa.table({name: [None if v is None else str(v) for v in FRAME[name].to_pylist()] for name in NAMES})
CODED = TEXTS.set_column(2, "region", TEXTS["region"].dictionary_encode())
SHEET = [["" if v is None else str(v) if isinstance(v, date) else v for v in row] for row in ROWS]
PLAIN_TEXT = csv_of(
    [
        ["41", "1234.50", "north", "yes", "2024-03-01", "2024-03-01T10:30"],
        ["0", "0", " south ", "false", "2024-01-01", ""],
        ["110", "1e4", "else", "1", "2024-12-31", "2024-01-01 00:00:00"],
    ]
)
LOCAL_TEXT = csv_of(
    [
        ["41", "1.234,50", "north", "TRUE", "01.03.2024", "01.03.2024 10:30"],
        ["0", "0", "south", "No", "1.1.2024", "NA"],
        ["110", "10000,0", "else", "y", "31.12.2024", "1.1.2024"],
    ],
    separator=";",
)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(PLAIN_TEXT, id="csv"),
        pytest.param(as_parquet(FRAME), id="parquet"),
        pytest.param(as_arrow(FRAME), id="arrow"),
        pytest.param(as_parquet(TEXTS), id="parquet of texts"),
        pytest.param(as_arrow(CODED), id="arrow with a dictionary"),
        pytest.param(spreadsheet([NAMES, *SHEET]), id="excel"),
    ],
)
def test_every_format_gives_the_same_codes(content: bytes) -> None:
    codes, report = found(content)
    assert np.array_equal(codes, expected_codes())
    assert (report["rows"], report["bad_rows"]) == (3, 0)


def test_numbers_and_dates_of_the_country_are_read_as_declared() -> None:
    local = [replace(each, order="dmy") if isinstance(each, Date | DateTime) else each for each in COLUMNS]
    dialect = Dialect(separator=";", decimal=",", thousands=".")
    codes, report = found(LOCAL_TEXT, Table(declared=tuple(local), size=10), dialect)
    assert np.array_equal(codes, expected_codes())
    assert (report["rows"], report["bad_rows"]) == (3, 0)


def test_the_order_of_dates_must_be_declared_even_where_one_alone_fits() -> None:
    dates = Table(declared=(Date(name="day", low="2024-01-01", high="2024-12-31"),), size=10)
    _, report = found(b"day\n30/04/2024\n2024-05-06\n", dates, drop_bad_rows=True)
    (line,) = report["bad_row_lines"]
    assert line["line"] == 2
    assert "declare the column's order of day, month and year" in line["reason"]
    column = Date(name="day", low="2024-01-01", high="2024-12-31", order="mdy")
    codes, _ = found(b"day\n03/04/2024\n05/06/2024\n", Table(declared=(column,), size=10))
    assert codes[:, 0].tolist() == column.read(["2024-03-04", "2024-05-06"]).codes.tolist()


def test_what_was_found_is_counted_by_column() -> None:
    rows = [
        ["41", "20000", "west", "yes", "2023-01-01", ""],
        ["x", "5", "north", "perhaps", "2024-01-01", ""],
        ["2.5", "-5", "east", "no", "2025-01-01", ""],
        ["3", "5", "south", "no", "someday", ""],
    ]
    codes, report = found(csv_of(rows), drop_bad_rows=True)
    by_name = {column.pop("name"): column for column in report["columns"]}
    assert len(codes) == report["rows"] == 1
    assert by_name["age"]["unreadable"] == 2
    assert by_name["age"]["examples"] == ["x", "2.5"]
    assert by_name["cost"] == {
        "missing": 0, "unreadable": 0, "unknown": 0, "below": 0, "above": 1, "examples": []
    }  # fmt: skip
    assert (by_name["region"]["unknown"], by_name["region"]["examples"]) == (2, ["west", "east"])
    assert by_name["smoker"]["examples"] == ["perhaps"]
    assert (by_name["visited"]["unreadable"], by_name["visited"]["below"]) == (1, 1)
    assert by_name["seen"]["missing"] == 4
    assert [each["line"] for each in report["bad_row_lines"]] == [3, 4, 5]


@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        (COLUMNS[0], "true", "“true” is not a number; declare the column as yes or no (boolean)"),
        (COLUMNS[0], "2.5", "“2.5” is not a whole number"),
        (COLUMNS[0], "31.12.2024", "“31.12.2024” is not a number; make the column a date"),
        (COLUMNS[0], "forty", "“forty” is not a number; correct it, or make the column a category"),
        (COLUMNS[3], "2", "“2” is neither yes nor no"),
        (
            Category(name="region", levels=("north", "south")),
            "nroth",
            "one of the column's levels; did you mean",
        ),
        (
            Category(name="region", levels=("north", "south")),
            "?",
            "add it as a level, or choose a level for all",
        ),
        (COLUMNS[4], "31.31.2024", "is not a date in the order in which"),
        (COLUMNS[4], "someday", "“someday” is not a date; correct it, or write it like 2030-12-31"),
    ],
)
def test_a_bad_value_is_named_with_its_column_and_what_to_do(column: Any, value: str, words: str) -> None:
    with pytest.raises(BadRows) as refused:
        found(f"{column.name}\n{value}\n".encode(), Table(declared=(column,), size=10))
    (line,) = refused.value.body()["bad_row_lines"]
    assert line["line"] == 2
    assert line["reason"].startswith(f"{column.name}: ")
    assert words in line["reason"]


NUMBER: dict[str, Any] = {"name": "bmi", "low": 10, "high": 60}


@pytest.mark.parametrize(
    ("column", "codes"),
    [
        (Number(**NUMBER, missing="drop"), [20.0, 30.0]),
        (Number(**NUMBER, missing="fill", fill=25), [20.0, 25.0, 30.0]),
    ],
)
@pytest.mark.parametrize("gap", ["", " ", "NA", "nan", "N/A", "null"])
def test_a_gap_does_what_was_declared(column: Number, codes: list[float], gap: str) -> None:
    table = Table(declared=(column, COLUMNS[3]), size=10)
    rows, report = found(csv_of([["20", "no"], [gap, "no"], ["30", "no"]], ["bmi", "smoker"]), table)
    assert rows[:, 0].tolist() == Number(**NUMBER).read(codes).codes.tolist()
    assert (report["columns"][0]["missing"], report["bad_rows"]) == (1, 3 - len(codes))


def test_a_gap_that_refuses_the_file_does_so_whatever_is_chosen_for_bad_rows() -> None:
    table = Table(declared=(Number(**NUMBER), COLUMNS[3]), size=10)
    with pytest.raises(BadRows, match="bmi is missing in 1 row, and the column is declared to refuse"):
        found(csv_of([["20", "no"], ["", "no"]], ["bmi", "smoker"]), table, drop_bad_rows=True)


def test_a_gap_is_a_level_of_its_own_where_declared() -> None:
    sex = Category(name="sex", levels=("f", "m"), missing="level")
    rows, _ = found(b"sex\nf\nNA\nm\n", Table(declared=(sex,), size=10))
    assert rows[:, 0].tolist() == [0, 2, 1]


def test_a_declared_level_is_never_taken_for_a_gap() -> None:
    country = Category(name="country", levels=("NA", "none", "DE"), missing="drop")
    rows, report = found(b"country\nNA\nnone\nDE\n", Table(declared=(country,), size=10))
    assert (rows[:, 0].tolist(), report["columns"]) == ([0, 1, 2], [])


@pytest.mark.parametrize("content", [b"who,smoker\nann,1\n,0\nNaN,0\nben,1\n", as_parquet(
    pa.table({"who": ["ann", None, "nan", "ben"], "smoker": [True, False, False, True]}))])  # fmt: skip
def test_rows_without_an_id_are_nobody(content: bytes) -> None:
    dropping = Text(name="who", role="id", missing="drop")
    rows, report = found(content, Table(declared=(dropping, COLUMNS[3]), size=10))
    assert (rows[:, 0].tolist(), report["bad_rows"]) == ([1, 1], 2)
    with pytest.raises(BadRows, match="who is missing in 2 rows"):
        found(content, Table(declared=(Text(name="who", role="id"), COLUMNS[3]), size=10), drop_bad_rows=True)


def test_rows_beyond_the_limit_of_a_person_are_left_out_and_not_counted_as_clipped() -> None:
    who = Text(name="who", role="id")
    table = Table(declared=(who, COLUMNS[0]), size=10, rows_per_person=1)
    rows, report = found(b"who,age\nann,5\nann,500\nben,7\n", table)
    assert (rows[:, 0].tolist(), report["rows_over_limit"], report["clipped_rows"]) == ([5, 7], 1, 0)


def test_an_array_without_names_is_no_table() -> None:
    file = io.BytesIO()
    np.save(file, np.zeros((3, 6)))
    with pytest.raises(BadFormat, match="an array has no column names"):
        found(file.getvalue())


def test_a_column_of_another_type_is_refused_by_its_name() -> None:
    content = as_parquet(pa.table({"smoker": [[1], [2]]}))
    with pytest.raises(BadFormat, match=r"column smoker holds list.* not values of a boolean"):
        found(content, Table(declared=(COLUMNS[3],), size=10))
