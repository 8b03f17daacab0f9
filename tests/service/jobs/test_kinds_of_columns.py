"""Every kind of column in the registry goes all the way: declared, uploaded, clustered on and asked about."""

from __future__ import annotations

from typing import Any

import numpy as np

from core.columns.base import StoredColumn
from core.columns.registry import KINDS, column_from_json
from tests.service.jobs.test_questions import done, result
from tests.support.service import House

ROWS = 400
COLUMNS = [
    column_from_json({"kind": name, **kind.example, "name": name, "missing": "refuse"})
    for name, kind in KINDS.items()
]
NAMES = [column.name for column in COLUMNS if isinstance(column, StoredColumn)]


def rows() -> bytes:
    """Values at both ends of every column; the order of dates is that of ISO 8601."""
    draw, fields = np.random.default_rng(8), []
    for column in COLUMNS:
        values: Any = np.arange(ROWS)
        if isinstance(column, StoredColumn):
            codes = np.where(np.arange(ROWS) % 2, 0, column.codes - 1) // (1 + draw.integers(0, 2, ROWS))
            values = column.values(codes.astype(np.uint16))
        fields.append([str(value) for value in values])
    lines = [",".join(row) for row in zip(*fields, strict=True)]
    return "\n".join([",".join(column.name for column in COLUMNS), *lines]).encode()


def test_a_table_of_every_kind_is_clustered_and_described(small_house: House) -> None:
    budget = {"epsilon": "50", "delta": "0.00001"}
    table = [column.to_json() for column in COLUMNS]
    body = {"name": "patients", "table": table, "size": ROWS, "budget": budget}
    assert small_house.carla.post("/v1/datasets", body).status_code == 201
    assert small_house.upload(rows(), "patients").json()["columns"] == []
    grant = {**budget, "kinds": ["cluster", "profile", "explain", "table"]}
    assert small_house.carla.put("/v1/datasets/patients/grants/ada", grant).status_code == 200

    single = done(small_house, k=2, epsilon="5")
    for profile in result(small_house, single)["profiles"]:
        assert [entry["column"] for entry in profile] == NAMES
    open_k = done(small_house, k={"from": 1, "to": 3}, epsilon="5")
    assert [entry["column"] for entry in result(small_house, open_k)["profiles"][0]] == NAMES
    asked = done(small_house, kind="profile", clusterings=[{"job": single}], epsilon="5")
    assert [each["column"] for each in result(small_house, asked)["findings"]["columns"]] == NAMES
    crossed = done(small_house, kind="table", columns=NAMES[:2], epsilon="5")
    assert result(small_house, crossed)["findings"]


def test_kinds_are_listed_with_the_facts_to_declare(shared_house: House) -> None:
    listed = {each["name"]: each for each in shared_house.ada.get("/v1/column-kinds").json()["items"]}
    assert list(listed) == list(KINDS)
    assert listed["boolean"]["title"] == "yes or no"
    assert {"low", "high", "log"} <= listed["number"]["schema"]["properties"].keys()
    assert listed["category"]["missing"] == ["refuse", "drop", "fill", "level", "keep"]
    assert (listed["text"]["roles"], listed["text"]["missing"]) == (["id", "ignore"], ["refuse", "drop"])
