"""Files as people have them: separators, decimal signs, encodings, gzip, spreadsheets, and other kinds."""

from __future__ import annotations

import gzip
import io
import tempfile
import zipfile
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from core.columns.notation import Notation
from core.data import Dense
from service.datasets.ingest.readers import excel
from service.datasets.ingest.readers.text import Dialect
from tests.service.datasets.ingest.test_uploads import DOMAIN, VALUES, stored
from tests.support.service import House
from tests.support.spreadsheets import spreadsheet

TEXT = "a,b\n1,1\n9.5,0.25\n0,4\n"
SEMICOLONS = "a;b\n1;1\n9,5;0,25\n0;4\n"
#: What is declared, the content, and what the report says about it.
FILES: dict[str, tuple[dict[str, Any], bytes, str]] = {
    "commas": ({}, TEXT.encode(), "separated by commas, UTF-8, decimal points"),
    "semicolons and decimal commas": (
        {"separator": ";", "decimal": ","},
        SEMICOLONS.encode(),
        "separated by semicolons, UTF-8, decimal commas",
    ),
    "tabs": ({"separator": "\t"}, TEXT.replace(",", "\t").encode(), "separated by tabs"),
    "vertical bars": ({"separator": "|"}, TEXT.replace(",", "|").encode(), "separated by vertical bars"),
    "quoted decimal commas": (
        {"decimal": ","},
        b'a,b\n1,1\n"9,5","0,25"\n0,4\n',
        "separated by commas, UTF-8, decimal commas",
    ),
    "quotes": ({}, b'"a","b"\n"1","1"\n"9.5","0.25"\n"0","4"\n', "separated by commas"),
    "byte order mark": ({}, TEXT.encode("utf-8-sig"), "separated by commas"),
    "utf-16": (
        {"encoding": "utf-16", "separator": ";", "decimal": ","},
        SEMICOLONS.encode("utf-16"),
        "separated by semicolons, UTF-16, decimal commas",
    ),
    "utf-16, big end first": (
        {"encoding": "utf-16"},
        b"\xfe\xff" + TEXT.encode("utf-16-be"),
        "separated by commas, UTF-16",
    ),
    "latin-1": (
        {"encoding": "latin-1", "separator": ";", "decimal": ","},
        "a;b;größe\n1;1;é\n9,5;0,25;\n0;4;\n".encode("latin-1"),
        "separated by semicolons, Latin-1, decimal commas",
    ),
    "windows-1252": (
        {"encoding": "windows-1252"},
        "a,b,größe\n1,1,€\n9.5,0.25,\n0,4,\n".encode("cp1252"),
        "separated by commas, Windows-1252",
    ),
    "gzip": ({}, gzip.compress(TEXT.encode()), "decimal points, gzip"),
    "gzip of two parts": (
        {},
        gzip.compress(TEXT[:8].encode()) + gzip.compress(TEXT[8:].encode()),
        "decimal points, gzip",
    ),
    "names in other letters": ({}, b" A , B\n1,1\n9.5,0.25\n0,4\n", "separated by commas"),
    "a spreadsheet": ({}, spreadsheet([["a", "b"], [1, 1], [9.5, 0.25], [0, 4]]), "the sheet (“Sheet1”)"),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_read_as_declared_and_the_report_says_how(small_house: House, name: str) -> None:
    reading, content, words = FILES[name]
    small_house.create(reading=reading)
    answer = small_house.upload(content, kind="application/octet-stream")
    assert answer.status_code == 200, answer.text
    assert words in answer.json()["read_as"]
    assert np.array_equal(stored(small_house), DOMAIN.encode(VALUES))


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name][0] and "quoted" not in name])
def test_a_file_that_does_not_fit_is_refused_with_a_proposal_that_works(
    small_house: House, name: str
) -> None:
    declared, content, _ = FILES[name]
    small_house.create()
    refused = small_house.check(content, kind="application/octet-stream").json()
    proposed = refused["reading"]
    confirmed = proposed.pop("from_rows")
    assert refused["type"] in ("/problems/bad-format", "/problems/bad-rows")
    wanted = {**Dialect().to_json(), **declared}
    if wanted["encoding"] == "latin-1":
        wanted["encoding"] = "windows-1252"  # the same letters, and more
    assert proposed == wanted
    small_house.carla.call(
        "PATCH", "/v1/datasets/flowers", json={"reading": {**proposed, "confirmed_from_rows": confirmed}}
    )
    answer = small_house.upload(content, kind="application/octet-stream")
    assert answer.status_code == 200, answer.text
    assert np.array_equal(stored(small_house), DOMAIN.encode(VALUES))


@pytest.mark.parametrize(
    ("thousands", "text"),
    [(",", '"1,234.50"'), (" ", "1 234.5"), (" ", "1\u00a0234.5"), (" ", "1\u202f234.50"), ("'", "1'234.5"),
     ("'", "1’234.5")],
)  # fmt: skip
def test_marks_between_thousands_are_understood_where_they_are_declared(
    small_house: House, thousands: str, text: str
) -> None:
    small_house.create(bounds={"box": {"low": 0, "high": 10_000}})
    content = f"a,b\n{text},2\n1,3\n".encode()
    refused = small_house.check(content).json()
    assert "declare the" in refused["bad_row_lines"][0]["reason"]
    assert "between thousands" in refused["bad_row_lines"][0]["reason"]
    small_house.carla.call("PATCH", "/v1/datasets/flowers", json={"reading": {"thousands": thousands}})
    assert small_house.upload(content).json()["bad_rows"] == 0
    domain = Dense.box(0, 10_000, ["a", "b"], size=1000)
    assert np.array_equal(stored(small_house), domain.encode([[1234.5, 2.0], [1.0, 3.0]]))


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("1234", 1234.0, 1234.0),
        ("1.5", 1.5, None),
        ("1,5", None, 1.5),
        ("1,234", None, 1.234),
        ("1.234", 1.234, None),
        ("1,234.5", None, None),
        ("1\u00a0234", None, None),
        ("-1.5e3", -1500.0, None),
        ("-1,5e3", None, -1500.0),
        ("1,2,3", None, None),
        ("", None, None),
        ("abc", None, None),
        ("nan", None, None),
        ("1_0", None, None),
        ("١", None, None),
    ],
)
def test_a_number_is_read_by_its_decimal_sign(text: str, point: float | None, comma: float | None) -> None:
    assert Notation().number(text) == point
    assert Notation(",").number(text) == comma


def test_a_value_is_named_with_its_column(small_house: House) -> None:
    small_house.create()
    answer = small_house.check(b"a,b\n1,true\nM,2\n")
    reasons = [each["reason"] for each in answer.json()["bad_row_lines"]]
    assert reasons == [
        "b: “true” is not a finite number; write 1 and 0 for yes and no",
        "a: “M” is not a finite number",
    ]


def test_a_missing_column_is_answered_with_what_there_is(small_house: House) -> None:
    small_house.create(columns=["age", "visits"])
    answer = small_house.check(b"agee,visits\n1,2\n").json()
    assert answer["detail"] == "the file lacks the column age; did you mean “agee” by age?"
    answer = small_house.check(b"x,y\n1,2\n").json()
    assert answer["detail"] == "the file lacks the columns age, visits; its first line reads x, y"
    answer = small_house.check(b"age;visits\n1;2\n").json()
    assert answer["detail"] == (
        "the file lacks the columns age, visits; its first line reads age;visits. The file was read as its "
        "dataset declares (separated by commas, UTF-8, decimal points), but seems to be written otherwise "
        "(separated by semicolons, UTF-8, decimal points)"
    )
    assert "Declare that if it may be public" in answer["next"]


def test_two_columns_that_differ_in_case_alone_are_ambiguous(small_house: House) -> None:
    small_house.create()
    assert "more than one column named a" in small_house.check(b"A,A ,b\n1,2,3\n").json()["detail"]
    assert small_house.check(b"A,a,b\n1,2,3\n").status_code == 200


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_rows_whose_id_is_nan_are_bad_and_never_one_person(small_house: House, form: str) -> None:
    small_house.create(rows_per_person=1, id_column="who")
    if form == "csv":
        content = b"who,a,b\n1.0,1,1\nNaN,2,2\n,3,3\n<NA>,4,4\n2.0,5,1\n"
    else:
        file = io.BytesIO()
        who = np.array([1.0, np.nan, np.nan, np.nan, 2.0])
        parquet.write_table(
            pa.table({"who": pa.array(who), "a": [1.0, 2, 3, 4, 5], "b": [1.0, 2, 3, 4, 1]}), file
        )
        content = file.getvalue()
    refused = small_house.check(content, kind="application/octet-stream")
    assert (refused.status_code, refused.json()["bad_rows"]) == (422, 3)
    report = small_house.check(content, kind="application/octet-stream", on_bad_row="drop").json()
    assert (report["rows"], report["bad_rows"], report["rows_over_limit"]) == (2, 3, 0)
    assert report["columns"][0]["missing"] == 3


def _zip(*names: str) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


OTHERS: dict[str, tuple[bytes, str]] = {
    "pdf": (b"%PDF-1.7\n...", "a PDF document"),
    "json": (b'[{"a": 1, "b": 2}]', "a JSON file"),
    "html": (b"<!DOCTYPE html><table>", "an HTML page"),
    "spss": (b"$FL2@(#) SPSS DATA FILE", "an SPSS file"),
    "sqlite": (b"SQLite format 3\0" + bytes(84), "an SQLite database"),
    "word": (_zip("word/document.xml"), "a Word document"),
    "archive": (_zip("rows.csv"), "a ZIP archive of other files"),
    "packed pdf": (gzip.compress(b"%PDF-1.7\n..."), "a PDF document"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_of_another_kind_is_named(small_house: House, name: str) -> None:
    content, words = OTHERS[name]
    small_house.create()
    answer = small_house.check(content, kind="application/octet-stream")
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bad-format")
    assert f"this is {words}, not a table" in answer.json()["detail"]


def test_a_spreadsheet_that_stands_for_billions_of_cells_is_refused(small_house: House) -> None:
    small_house.create()
    rows: list[list[Any]] = [["a", "b"], [1, 2]]
    answer = small_house.check(spreadsheet(rows, far="XFD1048576"), kind="application/octet-stream")
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/bad-format")
    assert "save the sheet as CSV" in answer.json()["detail"]


def test_small_spreadsheet_may_take_little_memory_whatever_it_says_of_itself() -> None:
    file = io.BytesIO(spreadsheet([["a", "b"], [1, 2]]))
    with tempfile.TemporaryFile() as small, zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/more.xml", bytes(30_000_000))
        archive.close()
        small.write(file.getvalue())
        assert small.tell() < 35_000
        assert excel._memory(small) < 800 << 20
        lying = bytearray(file.getvalue())
        directory = lying.rindex(b"PK\x01\x02")
        lying[directory + 24 : directory + 28] = b"\xff\xff\xff\x7f"  # two gigabytes, it says
        small.seek(0)
        small.write(lying)
        assert excel._memory(small) < 900 << 20


def test_full_disk_is_a_problem_that_says_when_to_come_back(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Linux has a device that is always full."""
    small_house.create()
    full = partial(open, "/dev/full", "r+b", buffering=0)
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: full())
    answer = small_house.check(b"a,b\n1,2\n")
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/unavailable")
    assert answer.headers["retry-after"] == "60"
    assert "no room on its disk" in answer.json()["detail"]
