"""A first description of a table, from the first lines of a file: what came from rows is marked."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from cairn_client.describing import confirmed, describe, describe_lines
from tests.support.hospital import as_text, hospital


def proposals(text: str) -> dict[str, Any]:
    return {each.column["name"]: each for each in describe_lines(text.splitlines()).columns}


def test_the_kinds_of_a_hospitals_table_are_recognised() -> None:
    found = proposals(as_text(hospital(200)))
    kinds = {name: each.column["kind"] for name, each in found.items()}
    assert kinds == {
        "patient_id": "text", "age": "number", "sex": "category", "region": "category",
        "admissions": "number", "cost": "number", "bmi": "number", "visited": "date", "smoker": "boolean",
    }  # fmt: skip
    assert found["patient_id"].column["role"] == "id"
    assert found["age"].column["whole"]


def test_levels_and_bounds_from_rows_are_marked_and_templates_are_not() -> None:
    found = proposals(as_text(hospital(200)))
    assert found["region"].from_rows == ("levels",)
    assert found["cost"].from_rows == ("low", "high")
    assert found["visited"].from_rows == ("low", "high")
    assert (found["age"].column["low"], found["age"].column["high"], found["age"].from_rows) == (0, 120, ())
    assert found["bmi"].from_rows == ("missing",)
    assert found["smoker"].from_rows == ()


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("Age", 0, 120), ("bmi", 10, 80), ("percent_used", 0, 100), ("hour", 0, 24), ("latitude", -90, 90)],
)
def test_templates_offer_bounds_by_what_a_column_means(name: str, low: float, high: float) -> None:
    (column,) = proposals(f"{name}\n17\n18\n").values()
    assert (column.column["low"], column.column["high"], column.from_rows) == (low, high, ())


@pytest.mark.parametrize("first", ["ann,41,2024-03-01", "x,y,5", "a,,c", "yes,b,c"])
def test_a_first_line_that_looks_like_data_gives_no_names(first: str) -> None:
    found = describe_lines([first, "ben,50,2024-01-01"])
    assert found.columns == []
    assert "looks like data" in found.problem
    assert "ann" not in found.problem


@pytest.mark.parametrize(
    ("values", "facts"),
    [
        ("1.234,50\n2,5", {"low": 2.5, "high": 1234.5}),
        ("1,234.50\n7", {"low": 7.0, "high": 1234.5}),
        ("31.12.2024\n01.01.2024", {"order": "dmy", "low": "2024-01-01", "high": "2024-12-31"}),
        ("12/31/2024\n01/01/2024", {"order": "mdy", "low": "2024-01-01", "high": "2024-12-31"}),
        ("2024-01-01 10:30\n2024-02-01 11:00", {"kind": "datetime"}),
        ("0\n1\n0", {"kind": "boolean"}),
    ],
)
def test_numbers_and_dates_are_read_as_people_write_them(values: str, facts: dict[str, Any]) -> None:
    (found,) = describe_lines(["value;other", *(f"{line};x" for line in values.splitlines())]).columns[:1]
    assert {name: found.column[name] for name in facts} == facts


def test_a_description_cannot_be_declared_before_it_is_confirmed() -> None:
    marked = [each.to_json() for each in proposals(as_text(hospital(50))).values()]
    with pytest.raises(ValueError, match="column sex: levels came from the rows and would become public"):
        confirmed(marked)
    assert "from_rows" not in confirmed([{**each, "from_rows": []} for each in marked])[2]


def test_a_file_in_another_encoding_is_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("größe;straße\n1,5;Süd\n2,5;Süd\n".encode("latin-1"))
    assert [each.column["name"] for each in describe(tmp_path / "latin.csv").columns] == ["größe", "straße"]
    (tmp_path / "wide.csv").write_bytes("a,b\n1,x\n".encode("utf-16"))
    assert [each.column["name"] for each in describe(tmp_path / "wide.csv").columns] == ["a", "b"]


def test_a_gzip_file_is_read_and_a_damaged_one_refused(tmp_path: Path) -> None:
    packed = gzip.compress(b"a,b\n1,x\n")
    (tmp_path / "rows.csv.gz").write_bytes(packed)
    assert [each.column["name"] for each in describe(tmp_path / "rows.csv.gz").columns] == ["a", "b"]
    (tmp_path / "rows.csv.gz").write_bytes(packed[:-9])
    with pytest.raises(ValueError, match="damaged gzip file"):
        describe(tmp_path / "rows.csv.gz")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rows.npy").write_bytes(b"\x93NUMPY\0\0" + bytes(100))
    with pytest.raises(ValueError, match="is not a text file"):
        describe(tmp_path / "rows.npy")
