"""What the console recognises in the first lines of a file, in the browser and before anything is sent."""

from __future__ import annotations

import gzip
from typing import Any

from playwright.sync_api import Page

from tests.console.conftest import Tab
from tests.console.test_modules import call
from tests.support.hospital import as_text, hospital

READ = """([bytes]) => import("/console/delimited.js")
    .then((m) => m.readStart(new File([new Uint8Array(bytes)], "t")))"""


def read(page: Page, content: bytes) -> Any:
    """What is recognised in a file that holds these bytes."""
    return page.evaluate(READ, [list(content)])


def test_separator_decimal_sign_and_names_are_recognised(tab: Tab) -> None:
    page = tab.go("")
    for text, separator, decimal, names in (
        ("a,b\n1.5,2\n", ",", ".", ["a", "b"]),
        ("a;b\n1,5;2\n", ";", ",", ["a", "b"]),
        ("a\tb\n1\t2\n", "\t", ".", ["a", "b"]),
        ("a|b|c\n1|2|3\n", "|", ".", ["a", "b", "c"]),
        ("\ufeffa;b\r\n1;2\r\n", ";", ".", ["a", "b"]),
        ('"a; total";b\n1.234,50;2\n', ";", ",", ["a; total", "b"]),
        ('name,cost\nx,"1,234.50"\n', ",", ".", ["name", "cost"]),
        ("only\n3\n4\n", ",", ".", ["only"]),
        (",age\n0,54\n1,61\n", ",", ".", ["", "age"]),
    ):
        found = read(page, text.encode())
        assert (found["separator"], found["decimal"], found["names"]) == (separator, decimal, names)


def test_a_first_line_of_data_has_no_names(tab: Tab) -> None:
    page = tab.go("")
    for text in (
        "54;F;2026-01-02\n61;M;2026-01-03\n",
        "F,north\nM,south\nF,east\n",
        "Smith,yes\nJones,no\n",
        "31.12.2026;a\n01.01.2027;b\n",
        "1.234,50;x\n99,10;y\n",
        "a,,c\n1,2,3\n",
    ):
        found = read(page, text.encode())
        assert found["names"] is None
        assert found["records"][0] == found["first"]


def test_the_encoding_is_recognised(tab: Tab) -> None:
    page = tab.go("")
    for encoding, words in (("utf-8", "UTF-8"), ("utf-16", "UTF-16"), ("latin-1", "Latin-1")):
        found = read(page, "a;b\nä;1\n".encode(encoding))
        assert found["words"].endswith(words)
        assert found["records"] == [["ä", "1"]]


def test_a_gzip_file_is_read(tab: Tab) -> None:
    assert read(tab.go(""), gzip.compress(b"a,b\n1,2\n"))["names"] == ["a", "b"]


def test_a_file_of_another_kind_is_named_for_what_it_is(tab: Tab) -> None:
    page = tab.go("")
    for content, words in (
        (b"PK\x03\x04rest", "This is an Excel or OpenDocument file"),
        (b"PAR1rest", "This is a Parquet file"),
        (b"\x93NUMPY\x01", "This is an NPY file"),
        (b"a\x00b", "This is not a text file"),
        (b"\x1f\x8bno gzip", "This gzip file is damaged"),
        (b"\n\n", "The first line of this file is empty"),
    ):
        assert read(page, content)["problem"].startswith(words)


def test_the_kinds_of_the_hospital_table_are_proposed(tab: Tab) -> None:
    found = read(tab.go(""), as_text(hospital(300)).encode())
    columns = call(tab.page, "proposals.js", "proposals", found)
    assert {each["name"]: (each["kind"], each["role"]) for each in columns} == {
        "patient_id": ("text", "id"),
        "age": ("number", "cluster"),
        "sex": ("category", "cluster"),
        "region": ("category", "cluster"),
        "admissions": ("number", "cluster"),
        "cost": ("number", "cluster"),
        "bmi": ("number", "cluster"),
        "visited": ("date", "cluster"),
        "smoker": ("boolean", "cluster"),
    }
    assert [each["name"] for each in columns if each.get("whole")] == ["age", "admissions"]
    assert [each["name"] for each in columns if each["missing"] != "refuse"] == ["bmi"]


def test_nothing_that_comes_from_rows_is_proposed_as_a_fact(tab: Tab) -> None:
    found = read(tab.go(""), as_text(hospital(300)).encode())
    for each in call(tab.page, "proposals.js", "proposals", found):
        assert not {"low", "high", "levels", "fill"} & set(each)


def test_the_kind_of_a_column_follows_from_its_values(tab: Tab) -> None:
    page = tab.go("")
    cases: list[tuple[list[str], str, str | None]] = [
        (["2026-01-31", "2026-02-01"], "date", None),
        (["31.01.2026", "01.02.2026"], "date", "dmy"),
        (["03.04.2026", "05.06.2026"], "date", "dmy"),
        (["01/31/2026", "02/01/2026"], "date", "mdy"),
        (["2026-01-31T10:30", "2026-02-01 11:00:05Z"], "datetime", None),
        (["31.02.2026", "01.02.2026"], "text", None),
        (["0", "1", "1"], "boolean", None),
        (["Yes", "no"], "boolean", None),
        (["1,234.50", "2"], "number", None),
        (["a", "b", "a"], "category", None),
        ([f"note {i}" for i in range(40)], "text", None),
        ([], "text", None),
    ]
    for values, kind, order in cases:
        found = call(page, "proposals.js", "proposal", "x", values)
        assert (found["kind"], found.get("order")) == (kind, order)


def test_a_date_that_can_be_read_in_two_ways_is_said_to_be_ambiguous(tab: Tab) -> None:
    found = call(tab.go(""), "proposals.js", "proposal", "x", ["03/04/2026", "05/06/2026"])
    assert found["ambiguous"]


def test_only_names_that_mean_something_get_the_usual_bounds(tab: Tab) -> None:
    page = tab.go("")
    for name, low, high in (
        ("age", "0", "120"),
        ("patient_age", "0", "120"),
        ("BMI", "10", "80"),
        ("percent done", "0", "100"),
        ("hour", "0", "24"),
        ("lat", "-90", "90"),
    ):
        found = call(page, "proposals.js", "usualBounds", name)
        assert (found["low"], found["high"]) == (low, high)
    assert call(page, "proposals.js", "usualBounds", "garage") is None


def test_bounds_from_rows_are_rounded(tab: Tab) -> None:
    page = tab.go("")
    cases: list[tuple[str, Any, Any, str, str]] = [
        ("number", 18, 97, "10", "100"),
        ("number", 0.5, 812.3, "0", "900"),
        ("number", 5, 5, "5", "6"),
        ("date", "2024-03-01", "2025-02-03", "2024-01-01", "2025-12-31"),
        ("datetime", "2024-03-01T10:00", "2024-03-02T10:00", "2024-01-01T00:00", "2024-12-31T23:59"),
    ]
    for kind, low, high, lowest, highest in cases:
        found = call(page, "column-bounds.js", "rounded", kind, {"low": low, "high": high})
        assert (found["low"], found["high"]) == (lowest, highest)
