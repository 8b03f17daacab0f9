"""Tables on the wire: columns of different kinds are declared, shown and edited."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.service import House

COLUMNS: list[dict[str, Any]] = [
    {"name": "patient", "kind": "text", "role": "id"},
    {"name": "age", "kind": "number", "low": 0, "high": 110, "whole": True, "weight": 2},
    {"name": "cost", "kind": "number", "low": 0, "high": 100000, "log": True, "offset": 10},
    {"name": "bmi", "kind": "number", "low": 10, "high": 60, "missing": "fill", "fill": 25},
    {"name": "sex", "kind": "category", "levels": ["f", "m"], "missing": "level"},
    {"name": "region", "kind": "category", "levels": ["north", "south", "other"], "other": "other"},
    {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31", "missing": "drop"},
    {"name": "seen", "kind": "datetime", "low": "2024-01-01T00:00", "high": "2025-01-01T00:00"}
    | {"role": "keep"},
    {"name": "smoker", "kind": "boolean"},
    {"name": "notes", "kind": "text"},
]


def body(declared: list[dict[str, Any]] = COLUMNS, **others: Any) -> dict[str, Any]:
    budget = {"epsilon": "3", "delta": "0.00001"}
    return {"name": "patients", "table": declared, "size": 1000, "budget": budget, **others}


@pytest.mark.both_databases
def test_a_table_is_shown_as_it_was_declared(house: House) -> None:
    made = house.carla.post("/v1/datasets", body(rows_per_person=2))
    assert made.status_code == 201
    facts = made.json()
    assert (facts["kind"], facts["id_column"], facts["privacy_unit"]) == ("table", "patient", "person")
    assert (facts["bounds"], facts["scaling"], facts["dimension"]) == ({}, None, 8)
    assert facts["columns"] == ["age", "cost", "bmi", "sex", "region", "visited", "seen", "smoker"]
    assert facts["table_in_words"][1] == "whole number from 0 to 110"
    assert facts["table_in_words"][4] == "one of 2 levels: f, m"
    for shown, declared in zip(facts["table"], COLUMNS, strict=True):
        assert {name: shown[name] for name in declared} == declared
    assert house.carla.get("/v1/datasets/patients").json()["table"] == facts["table"]
    again = house.carla.post("/v1/datasets", body(facts["table"], name="copied", rows_per_person=2))
    assert again.json()["table"] == facts["table"]


def test_what_is_not_said_of_a_column_is_filled_in(house: House) -> None:
    facts = house.carla.post("/v1/datasets", body()).json()
    by_name = {column["name"]: column for column in facts["table"]}
    assert (by_name["seen"]["missing"], by_name["smoker"]["missing"]) == ("keep", "refuse")
    assert (by_name["smoker"]["weight"], by_name["smoker"]["role"]) == (0.16, "cluster")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"high": 0}, "column age: low must be below high"),
        ({"low": 0.5, "whole": True}, "column age: bounds of whole numbers must be whole"),
        ({"log": True}, "column age: on a log scale low + offset must be above zero"),
        ({"missing": "level"}, "column age: only a category has a level for missing values"),
        ({"missing": "fill"}, "column age: give a fill value if missing is"),
        ({"missing": "fill", "fill": 200}, "column age: the fill value 200.0 is not a value of the column"),
        ({"missing": "keep"}, "column age: a column to cluster on cannot keep missing values"),
        ({"weight": 0}, "column age: weight must be between"),
        ({"role": "id", "missing": "fill", "fill": 3}, "column age: a row without an id"),
    ],
)
def test_a_wrong_declaration_is_refused_by_the_columns_name(
    house: House, changes: dict[str, Any], words: str
) -> None:
    age = {"name": "age", "kind": "number", "low": 0, "high": 110} | changes
    refused = house.carla.post("/v1/datasets", body([age, COLUMNS[-2]]))
    assert refused.status_code == 422
    assert words in refused.json()["detail"]


@pytest.mark.parametrize(
    ("others", "words"),
    [
        ({"bounds": {"box": {"low": 0, "high": 1}}}, "leave bounds out"),
        ({"columns": ["age"]}, "leave columns out"),
        ({"id_column": "patient"}, "leave id_column out"),
        ({"table": COLUMNS[1:], "rows_per_person": 2}, "needs an id column"),
        ({"table": [COLUMNS[0]]}, "at least one column must be used for clustering"),
        ({"table": [*COLUMNS, COLUMNS[1]]}, "two columns have the same name"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(
    house: House, others: dict[str, Any], words: str
) -> None:
    refused = house.carla.post("/v1/datasets", body(**{"table": COLUMNS, **others}))
    assert refused.status_code == 422
    assert words in refused.json()["detail"]


def test_a_dataset_needs_a_table_or_bounds(house: House) -> None:
    refused = house.carla.post("/v1/datasets", {**body(), "table": None})
    assert refused.status_code == 422
    assert "give a table, or bounds" in refused.json()["detail"]


def test_a_draft_can_become_a_table_and_stop_being_one(house: House) -> None:
    house.create()
    edited = house.carla.call("PATCH", "/v1/datasets/flowers", json={"table": COLUMNS})
    assert (edited.status_code, edited.json()["kind"]) == (200, "table")
    box = {"columns": ["a", "b"], "bounds": {"box": {"low": 0, "high": 10}}}
    edited = house.carla.call("PATCH", "/v1/datasets/flowers", json=box)
    assert (edited.status_code, edited.json()["kind"], edited.json()["table"]) == (200, "dense", None)


def test_the_size_of_a_table_is_edited_alone(house: House) -> None:
    before = house.carla.post("/v1/datasets", body()).json()
    edited = house.carla.call("PATCH", "/v1/datasets/patients", json={"size": 5000}).json()
    assert (edited["size"], edited["table"]) == (5000, before["table"])


def test_facts_from_rows_that_were_confirmed_are_public_and_in_the_audit_log_until_they_change(
    house: House,
) -> None:
    declared: list[dict[str, Any]] = [
        {"name": "age", "kind": "number", "low": 0, "high": 97, "confirmed_from_rows": ["high", "low"]},
        {"name": "ward", "kind": "category", "levels": ["a", "b"], "confirmed_from_rows": ["levels"]},
    ]
    facts = house.carla.post("/v1/datasets", body(declared)).json()
    assert [column["confirmed_from_rows"] for column in facts["table"]] == [["high", "low"], ["levels"]]
    said = "taken from the rows, and confirmed by the curator to be public: age (high, low); ward (levels)"
    assert said in facts["warnings"]
    (event,) = house.carla.get("/v1/audit?limit=1").json()["items"]
    assert event["details"]["confirmed_from_rows"] == {"age": ["high", "low"], "ward": ["levels"]}

    age, ward = ({k: v for k, v in each.items() if k != "confirmed_from_rows"} for each in facts["table"])
    changes = {"table": [{**age, "high": 120, "weight": 2}, ward]}
    edited = house.carla.call("PATCH", "/v1/datasets/patients", json=changes).json()
    assert [column.get("confirmed_from_rows") for column in edited["table"]] == [["low"], ["levels"]]
    (event,) = house.carla.get("/v1/audit?limit=1").json()["items"]
    assert event["details"]["confirmed_from_rows"] == {"age": ["low"], "ward": ["levels"]}


def test_a_fact_from_rows_that_nobody_confirmed_is_refused(house: House) -> None:
    declared = [{"name": "age", "kind": "number", "low": 0, "high": 97, "from_rows": ["high"]}]
    refused = house.carla.post("/v1/datasets", body(declared))
    assert refused.status_code == 422
    assert "from_rows" in refused.text


def test_gaps_that_are_declared_to_leave_their_row_out_are_counted_apart_from_bad_rows(house: House) -> None:
    declared = [{"name": "age", "kind": "number", "low": 0, "high": 120, "missing": "drop"}]
    house.carla.post("/v1/datasets", body(declared))
    content = b'age\n41\n""\nNA\nold\n'
    report = house.check(content, "patients", on_bad_row="drop").json()
    assert (report["rows"], report["bad_rows"], report["gap_rows"]) == (1, 3, 2)
    assert [each["line"] for each in report["bad_row_lines"]] == [5]
