"""Proposals for how text files are read."""

from typing import Any

import pytest

from service.datasets.ingest.readers.proposed import propose_reading
from service.datasets.ingest.readers.text import Dialect


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (b"age,sex\n41,f\n", {}),
        (b"age;sex\n41;f\n", {"separator": ";"}),
        (b"age\tsex\n41\tf\n", {"separator": "\t"}),
        (b"age|sex\n41,5,6|f\n", {"separator": "|"}),
        (b"cost;sex\n12,5;f\n", {"separator": ";", "decimal": ",", "from_rows": ["decimal"]}),
        (b"cost,sex\n12.5,f\n1.234,m\n", {}),
        (
            b"cost;sex\n1.234,5;f\n2.500,0;m\n",
            {"separator": ";", "decimal": ",", "thousands": ".", "from_rows": ["decimal", "thousands"]},
        ),
        (
            b"cost;sex\n1.234.567;f\n",
            {"separator": ";", "decimal": ",", "thousands": ".", "from_rows": ["decimal", "thousands"]},
        ),
        (b'cost,sex\n"1,234.5",f\n', {"thousands": ",", "from_rows": ["thousands"]}),
        (b"cost;sex\n12 345;f\n", {"separator": ";", "thousands": " ", "from_rows": ["thousands"]}),
        ("cost;sex\n12’345.5;f\n".encode(), {"separator": ";", "thousands": "'", "from_rows": ["thousands"]}),
        (b"day;sex\n01.02.2024;f\n", {"separator": ";"}),
        ("größe\n1\n".encode(), {}),
        ("größe\n1\n".encode("utf-16"), {"encoding": "utf-16"}),
        ("größe\n1\n".encode("latin-1"), {"encoding": "windows-1252"}),
        ("town\nKöln\n".encode("latin-1"), {"encoding": "windows-1252", "from_rows": ["encoding"]}),
        (b"gr\xf6sse\n\x81\n", {"encoding": "latin-1", "from_rows": ["encoding"]}),
        (b'note,sex\n"two\nlines",f\n', {"quoted_lines": True, "from_rows": ["quoted_lines"]}),
        (b'note,sex\n"open,f\nx,m\n', {}),
        (b'note,sex\n"open,f\nx,"m\n', {}),
        (b"", {}),
    ],
)
def test_a_sample_shows_how_its_file_is_written(sample: bytes, expected: dict[str, Any]) -> None:
    default = {
        "encoding": "utf-8",
        "separator": ",",
        "decimal": ".",
        "thousands": "",
        "quoted_lines": False,
        "from_rows": [],
    }
    assert propose_reading(sample).to_json() == default | expected


def test_a_sample_may_end_within_a_character() -> None:
    assert propose_reading("town\nKö".encode()[:-1]).dialect.encoding == "utf-8"
    assert propose_reading("town\nKö".encode("utf-16")[:-1]).dialect.encoding == "utf-16"


def test_the_separator_never_depends_on_a_record() -> None:
    assert propose_reading(b"a;b;c\n1,2,3,4,5\n").dialect.separator == ";"


def test_most_numbers_decide_on_the_decimal_sign() -> None:
    body = "".join(f"{number},5;x\n" for number in range(10, 20))
    assert propose_reading(f"cost;sex\n{body}12.5;x\n".encode()).dialect.decimal == ","
    assert propose_reading(b"cost;version\n12,5;1.5\n").dialect.decimal == "."


GERMAN = Dialect("latin-1", ";", ",", ".", quoted_lines=True)


@pytest.mark.parametrize(
    ("sample", "expected"),
    [
        (b"cost;sex\n12;f\n", {}),
        (b"cost\n12\n", {}),
        ("cost;town\n1,5;Köln\n".encode("latin-1"), {}),
        ("cost;town\n1,5;Köln\n".encode(), {"encoding": "utf-8", "from_rows": ["encoding"]}),
        ("größe;sex\n1,5;f\n".encode(), {"encoding": "utf-8"}),
        (b"cost,sex\n12,f\n", {"separator": ","}),
        (b"cost;sex\n12.5;f\n", {"decimal": ".", "thousands": "", "from_rows": ["decimal", "thousands"]}),
        (b"cost;sex\n1 234,5;f\n", {"thousands": " ", "from_rows": ["thousands"]}),
    ],
)
def test_what_is_declared_is_kept_unless_a_sample_shows_something_else(
    sample: bytes, expected: dict[str, Any]
) -> None:
    declared = {name: value for name, value in GERMAN.to_json().items() if name != "header"}
    assert propose_reading(sample, GERMAN).to_json() == {**declared, "from_rows": [], **expected}
