"""Kinds of columns: what they accept, and how values become codes."""

import json
from typing import Any

import numpy as np
import pytest

from core.data import (
    MISSING_CODE,
    Boolean,
    Category,
    Column,
    Date,
    DateTime,
    Fault,
    Number,
    Text,
    column_from_json,
)
from core.errors import InvalidDomain

AGE = Number(name="age", low=0, high=110, whole=True)
COST = Number(name="cost", low=0, high=1e6, log=True, offset=1.0)
REGION = Category(name="region", levels=("north", "south", "other"), other="other")
VISIT = Date(name="visit", low="2020-01-01", high="2024-12-31")


def codes(column: Column, *values: Any) -> list[int]:
    return [int(code) for code in column.read(np.array(values, dtype=object)).codes]


def faults(column: Column, *values: Any) -> list[Fault]:
    return [Fault(fault) for fault in column.read(np.array(values, dtype=object)).faults]


def test_whole_numbers_are_stored_one_by_one() -> None:
    assert codes(AGE, 0, 41, "41", 110.0) == [0, 41, 41, 110]
    assert AGE.codes == 111


def test_numbers_outside_the_bounds_are_moved_to_them_and_counted() -> None:
    found = AGE.read([-3, 50, 200])
    assert found.codes.tolist() == [0, 50, 110]
    assert found.counts() == {"missing": 0, "unreadable": 0, "unknown": 0, "below": 1, "above": 1}
    assert found.usable.all()


def test_a_log_scale_has_even_steps_in_ratios() -> None:
    first, middle, last = codes(COST, 0, 999, 1e6)
    assert (first, last) == (0, COST.codes - 1)
    assert middle == pytest.approx(last / 2, abs=1)
    assert COST.value(COST.on_line(np.array([middle]))[0]) == pytest.approx(999, rel=1e-3)


def test_what_has_no_logarithm_is_below_the_bounds() -> None:
    assert faults(COST, -5, -1, 0) == [Fault.BELOW, Fault.BELOW, Fault.NONE]


@pytest.mark.parametrize("value", ["x", "1,5", "inf", float("inf"), "1.5"])
def test_what_is_no_whole_number_cannot_be_read(value: Any) -> None:
    assert faults(AGE, value) == [Fault.UNREADABLE]
    assert not AGE.read(np.array([value], dtype=object)).usable.any()


@pytest.mark.parametrize("value", [None, float("nan"), "", "  "])
@pytest.mark.parametrize("column", [AGE, COST, REGION, VISIT, Boolean(name="smoker")])
def test_gaps_are_missing_in_every_kind(column: Column, value: Any) -> None:
    found = column.read(np.array([value], dtype=object))
    assert found.faults.tolist() == [Fault.MISSING]
    assert not found.usable.any()


def test_a_mask_marks_further_gaps() -> None:
    assert AGE.read([1, 2], [False, True]).faults.tolist() == [Fault.NONE, Fault.MISSING]


def test_levels_are_found_without_surrounding_blanks() -> None:
    assert codes(REGION, "north", " south ", "other") == [0, 1, 2]


def test_an_undeclared_level_becomes_the_catch_all_or_is_of_no_use() -> None:
    found = REGION.read(["east"])
    assert (found.codes[0], found.faults[0], found.usable[0]) == (2, Fault.UNKNOWN, True)
    strict = Category(name="region", levels=("north", "south")).read(["east"])
    assert (strict.faults[0], strict.usable[0]) == (Fault.UNKNOWN, False)


def test_whole_numbers_and_booleans_are_levels_by_how_they_are_written() -> None:
    ward = Category(name="ward", levels=("1", "2"))
    assert ward.read([1, 2]).codes.tolist() == [0, 1]
    assert ward.read([1.0, np.nan]).codes[0] == 0


def test_words_numbers_and_booleans_are_true_or_false() -> None:
    smoker = Boolean(name="smoker")
    assert codes(smoker, "yes", "No", "TRUE", "0", 1, False) == [1, 0, 1, 0, 1, 0]
    assert faults(smoker, "maybe", 2) == [Fault.UNREADABLE] * 2


def test_dates_are_days_whatever_they_come_as() -> None:
    days = np.array(["2020-01-11", "NaT"], dtype="datetime64[D]")
    assert VISIT.read(days).codes[0] == 10
    assert VISIT.read(days).faults.tolist() == [Fault.NONE, Fault.MISSING]
    assert codes(VISIT, "2020-01-11", "2020-01-11T23:59:00") == [10, 10]
    assert faults(VISIT, "11.01.2020", "2019-12-31", "2025-01-01") == [
        Fault.UNREADABLE,
        Fault.BELOW,
        Fault.ABOVE,
    ]
    assert VISIT.value(VISIT.on_line(np.array([10.0]))[0]) == "2020-01-11"


def test_moments_are_in_utc() -> None:
    at = DateTime(name="at", low="2030-01-01T00:00:00", high="2030-01-01T12:00:00Z")
    assert codes(at, "2030-01-01T02:00:00+02:00", "2030-01-01T01:00:00") == [0, 3600]
    assert at.value(at.on_line(np.array([3600.0]))[0]) == "2030-01-01T01:00:00Z"


@pytest.mark.parametrize(
    ("column", "code"),
    [
        (Number(name="a", low=0, high=10, whole=True, missing="fill", fill=3), 3),
        (Boolean(name="a", missing="fill", fill=True), 1),
        (Category(name="a", levels=("x", "y"), missing="fill", fill="y"), 1),
        (Category(name="a", levels=("x", "y"), missing="level"), 2),
        (Date(name="a", low="2030-01-01", high="2030-12-31", missing="fill", fill="2030-01-03"), 2),
        (Number(name="a", low=0, high=10, role="keep"), MISSING_CODE),
    ],
)
def test_a_missing_value_is_stored_as_declared(column: Column, code: int) -> None:
    found = column.read(np.array([None], dtype=object))
    assert found.codes.tolist() == [code]
    assert found.faults.tolist() == [Fault.MISSING], "and counted all the same"
    assert found.usable.all()


def test_a_reading_of_distinct_values_serves_a_column_that_came_with_indices() -> None:
    found = REGION.read(["south", "", "north"]).take(np.array([2, 0, 0, 1]))
    assert found.codes.tolist()[:3] == [0, 1, 1]
    assert found.counts()["missing"] == 1


@pytest.mark.parametrize(
    "column",
    [
        AGE,
        COST,
        REGION,
        VISIT,
        Boolean(name="smoker", weight=0.5, missing="fill", fill=False),
        DateTime(name="at", low="2030-01-01T00:00:00", high="2030-01-02T00:00:00", role="keep"),
        Text(name="patient", role="id"),
    ],
)
def test_json_says_all_that_was_declared(column: Column) -> None:
    described = json.loads(json.dumps(column.to_json()))
    assert column_from_json(described) == column


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ({"kind": "colour", "name": "a"}, "kind must be one of boolean, date"),
        ({"kind": "number", "name": "a"}, "needs a name, low and high"),
        ({"kind": "number", "name": "a", "low": 1, "high": 1}, "low must be below high"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "log": True}, "give an offset"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "offset": 1}, "only possible on a log scale"),
        ({"kind": "number", "name": "a", "low": 0.5, "high": 2, "whole": True}, "must be whole"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "weight": 0}, "weight must be"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "levels": ["x"]}, "has no levels"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "missing": "keep"}, "cannot keep missing"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "missing": "level"}, "only a category"),
        ({"kind": "number", "name": "a", "low": 0, "high": 1, "missing": "fill"}, "give a fill value"),
        (
            {"kind": "number", "name": "a", "low": 0, "high": 1, "missing": "fill", "fill": 7},
            "inside its bounds",
        ),
        ({"kind": "category", "name": "a", "levels": ["x"]}, "between 2 and 256"),
        ({"kind": "category", "name": "a", "levels": [str(i) for i in range(257)]}, "between 2 and 256"),
        ({"kind": "category", "name": "a", "levels": ["x", "x "]}, "two levels are the same"),
        ({"kind": "category", "name": "a", "levels": ["x", "y"], "other": "z"}, "one of the levels"),
        (
            {"kind": "category", "name": "a", "levels": ["x", "missing"], "missing": "level"},
            "rename the declared one",
        ),
        ({"kind": "date", "name": "a", "low": "1.1.2030", "high": "2031-01-01"}, "such as 2030-12-31"),
        ({"kind": "date", "name": "a", "low": "2031-01-01", "high": "2030-01-01"}, "before high"),
        ({"kind": "text", "name": "a", "role": "cluster"}, "make it a category"),
        ({"kind": "boolean", "name": " "}, "needs a name"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(declared: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidDomain, match=says):
        column_from_json(declared)


def test_a_level_is_found_however_its_letters_are_composed_and_whatever_other_records_hold() -> None:
    city = Category(name="city", levels=("Gérone", "Zürich"))
    one_sign, two_signs = "Zürich", "Zu\u0308rich"
    values = [one_sign, two_signs, "Ge\u0301rone ", "Zurich"]
    assert codes(city, *values) == [1, 1, 0, 0]
    assert faults(city, *values) == [Fault.NONE, Fault.NONE, Fault.NONE, Fault.UNKNOWN]
    for place in range(len(values)):
        others = values[:place] + values[place + 1 :]
        assert codes(city, *others) == [code for at, code in enumerate([1, 1, 0, 0]) if at != place]


def test_levels_stored_before_they_had_to_be_composed_keep_their_values() -> None:
    stored = Category(name="city", levels=("Zürich", "Zu\u0308rich"))
    assert codes(stored, "Zürich", "Zu\u0308rich") == [0, 1]
