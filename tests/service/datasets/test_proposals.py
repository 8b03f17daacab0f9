"""Proposals for columns: what cells decided is marked, whatever they decided."""

from __future__ import annotations

from typing import Any

import pytest

from core.columns.cells import Cells
from core.columns.notation import Notation
from service.datasets.proposals import looks_like_data, propose
from tests.support.hospital import NAMES, hospital


def proposed(name: str, *texts: str, **typed: Any) -> dict[str, Any]:
    (found,) = propose([Cells(name, texts, **typed)])
    return found.to_json()


def of(rows: list[list[str]]) -> dict[str, dict[str, Any]]:
    columns = [Cells(name, [row[place] for row in rows]) for place, name in enumerate(NAMES)]
    return {each.facts["name"]: each.to_json() for each in propose(columns)}


def test_the_kinds_of_a_hospitals_table_are_recognised() -> None:
    found = of(hospital(200))
    assert {name: each["kind"] for name, each in found.items()} == {
        "patient_id": "text", "age": "number", "sex": "category", "region": "category",
        "admissions": "number", "cost": "number", "bmi": "number", "visited": "date", "smoker": "boolean",
    }  # fmt: skip
    assert (found["patient_id"]["role"], found["age"]["whole"]) == ("id", True)


def test_every_fact_that_cells_decide_is_marked() -> None:
    found = {name: each["from_rows"] for name, each in of(hospital(200)).items()}
    assert found == {
        "patient_id": [],
        "age": ["kind", "role", "whole", "missing"],
        "sex": ["kind", "role", "levels", "missing"],
        "region": ["kind", "role", "levels", "missing"],
        "admissions": ["kind", "role", "low", "high", "whole", "missing"],
        "cost": ["kind", "role", "low", "high", "whole", "log", "missing"],
        "bmi": ["kind", "role", "whole", "missing"],
        "visited": ["kind", "role", "low", "high", "order", "missing"],
        "smoker": ["kind", "role", "missing"],
    }


def changed(before: dict[str, Any], after: dict[str, Any]) -> set[str]:
    return {name for name in before | after if before.get(name) != after.get(name)} - {"from_rows"}


@pytest.mark.parametrize(
    ("column", "value", "fields"),
    [
        ("age", "41.5", {"whole"}),
        ("age", "", {"missing"}),
        ("admissions", "many", {"kind", "low", "high", "whole", "levels"}),
        ("cost", "1000000", {"high"}),
        ("cost", "0", {"low", "log"}),
        ("sex", "other", {"levels"}),
        ("sex", "x" * 129, {"kind", "role", "levels", "missing"}),
        ("region", "", {"missing"}),
        ("visited", "2031-01-01", {"high"}),
        ("visited", "2019-01-01", {"low"}),
        ("smoker", "perhaps", {"kind", "levels"}),
        ("admissions", "007", {"kind", "low", "high", "whole", "levels"}),
    ],
)
def test_a_fact_that_one_changed_cell_moves_is_marked(column: str, value: str, fields: set[str]) -> None:
    rows = hospital(200)
    before = of(rows)[column]
    rows[17][NAMES.index(column)] = value
    after = of(rows)[column]
    assert changed(before, after) == fields
    for found in (before, after):
        assert fields & found.keys() <= set(found["from_rows"])


def test_the_order_of_dates_is_marked() -> None:
    before, after = proposed("day", "1/2/2024", "3/4/2024"), proposed("day", "1/2/2024", "12/31/2024")
    assert (before["order"], after["order"]) == ("dmy", "mdy")
    assert "order" in before["from_rows"]
    assert "order" in after["from_rows"]


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("Age", 0, 120), ("bmi", 10, 80), ("percent_used", 0, 100), ("hour", 0, 24), ("latitude", -90, 90)],
)
def test_bounds_that_follow_from_a_name_are_not_from_rows(name: str, low: int, high: int) -> None:
    found = proposed(name, "17", "18")
    assert (found["low"], found["high"]) == (low, high)
    assert not {"low", "high"} & set(found["from_rows"])


@pytest.mark.parametrize(
    ("texts", "low", "high"),
    [
        (("18", "97"), 18, 97),
        (("0.5", "812.3"), 0.5, 820),
        (("1234", "56789"), 1200, 57000),
        (("-1234", "-0.0123"), -1300, -0.012),
        (("5", "5"), 5, 10),
        (("0", "0"), 0, 1),
    ],
)
def test_extremes_are_rounded_outward_to_two_digits(texts: tuple[str, ...], low: float, high: float) -> None:
    found = proposed("value", *texts)
    assert (found["low"], found["high"]) == (low, high)


@pytest.mark.parametrize(
    ("texts", "facts"),
    [
        (("31.12.2024", "01.01.2024"), {"order": "dmy", "low": "2024-01-01", "high": "2024-12-31"}),
        (("2024-01-01", "2025-02-01"), {"order": "ymd", "high": "2025-12-31"}),
        (("2024-01-01 10:30", "2024-02-01 11:00"), {"kind": "datetime", "high": "2024-12-31T23:59"}),
        (("01.02.24", "03.04.24", "05.06.24", "07.08.24"), {"kind": "text", "role": "ignore"}),
        (("0", "1", "0"), {"kind": "boolean"}),
        (("yes", "No"), {"kind": "boolean"}),
        (("1", "1"), {"kind": "number"}),
        (("007", "012", "007", "012"), {"kind": "category", "levels": ["007", "012"]}),
        (("", "NA"), {"kind": "text", "role": "ignore"}),
        (("a", "b", "a", ""), {"kind": "category", "missing": "level"}),
        (("a", "missing", "a", ""), {"kind": "category", "missing": "drop"}),
        (("1e400", "1"), {"kind": "category"}),
    ],
)
def test_cells_are_read_as_people_write_them(texts: tuple[str, ...], facts: dict[str, Any]) -> None:
    found = proposed("value", *texts)
    assert {name: found[name] for name in facts} == facts


def test_numbers_are_read_as_the_reading_says() -> None:
    german = Notation(",", ".")
    assert proposed("cost", "1.234,50", "2,5", notation=german)["high"] == 1300
    assert proposed("cost", "1.234,50", "x", "y", "z")["kind"] == "text"
    assert Notation(".", " ").number("12\u202f345.5") == 12345.5
    assert Notation(",", "").number("12.5") is None


def test_levels_are_few_beside_the_rows() -> None:
    names = [f"person {number}" for number in range(300)]
    assert proposed("name", *names[:10])["role"] == "ignore"
    assert proposed("name", *names[:5], *names[:5])["kind"] == "category"
    assert proposed("name", *names[:256], *names[:256])["kind"] == "category"
    assert proposed("name", *names[:257], *names[:257])["role"] == "ignore"


def test_codes_are_no_numbers() -> None:
    assert proposed("zip_code", "10115", "10117", "10115")["kind"] == "category"
    assert proposed("zip_code", "10115", "10117", type="number", whole=True)["kind"] == "category"


@pytest.mark.parametrize(
    "texts", [("007", "12"), ("4711000123", "4711000124"), ("0049", "0041")], ids=["zero", "long", "prefix"]
)
def test_leading_zeros_and_long_integers_are_no_numbers(texts: tuple[str, ...]) -> None:
    assert proposed("number", *texts * 3)["kind"] == "category"
    assert proposed("number", *texts, *(f"{texts[0]}{i}" for i in range(40)))["role"] == "ignore"


def test_skewed_numbers_get_a_log_scale_and_others_none() -> None:
    costs = [str(round(50 * 1.2**i, 2)) for i in range(40)]
    assert (proposed("cost", *costs)["log"], "log" in proposed("cost", *costs)["from_rows"]) == (True, True)
    assert "log" not in proposed("cost", *costs, "0")
    assert "log" not in proposed("stays", *map(str, range(1, 200)))


@pytest.mark.parametrize(
    "levels",
    [
        ["I", "II", "III", "IV", "V", "IX", "X", "XII"],
        ["<18", "18-29", "30-64", "65-79", "80-99", "100+"],
        ["under 5", "5 to 9", "10 to 14", "over 90"],
        ["Q1", "Q2", "Q10"],
        ["I", "It", "V"],
        ["north", "south"],
    ],
)
def test_levels_are_in_the_order_of_people(levels: list[str]) -> None:
    assert proposed("level", *sorted(levels) * 3)["levels"] == levels


def test_a_type_decides_on_the_kind_without_rows() -> None:
    found = proposed("flag", "0", "1", type="number", whole=True)
    assert found["kind"] == "number"
    assert found["from_rows"] == ["role", "low", "high", "missing"]
    assert "order" not in proposed("day", "2024-01-01", type="date")


def test_one_column_at_most_tells_people_apart() -> None:
    found = propose([Cells("patient_id", ["1"]), Cells("visit_id", ["2"])])
    assert [each.facts["role"] for each in found] == ["id", "cluster"]


@pytest.mark.parametrize(
    "first", ["ann,41,2024-03-01", "x,y,5", "a,,c", "yes,b,c", "ben,b,c", "1 234,x,y", "50%,a,b"]
)
def test_a_first_line_of_data_is_recognised(first: str) -> None:
    assert looks_like_data(first.split(","), [["ben", "50", "2024-01-01"]])


def test_names_are_recognised_with_the_empty_one_of_an_index() -> None:
    assert not looks_like_data(["", "age", "sex"], [["0", "41", "f"]])
