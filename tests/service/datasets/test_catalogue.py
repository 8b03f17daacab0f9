"""The catalogue shows people without a grant what an owner chose of a sealed dataset, and nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.service import House, table

LISTING = "/v1/datasets/flowers/listing"
ENTRY = "/v1/catalogue/flowers"
EVERY_GROUP = ["description", "owner", "columns", "size", "privacy", "periods"]


def listed(house: House, *shows: str, title: str = "") -> Any:
    return house.carla.put(LISTING, {"title": title, "shows": list(shows)})


def lines(entry: Any) -> dict[str, list[str]]:
    return {each["group"]: each["lines"] for each in entry["groups"]}


def test_nothing_is_listed_unless_chosen(house: House) -> None:
    house.ready()
    assert house.ben.get("/v1/catalogue").json() == {"items": [], "next": None}
    missing = house.ben.get("/v1/catalogue/missing").json()["detail"]
    assert house.ben.get(ENTRY).json()["detail"] == missing.replace("missing", "flowers")
    offered = house.carla.get(LISTING).json()
    assert (offered["since"], offered["shows"]) == (None, [])
    assert set(lines(offered)) == {"owner", "columns", "size", "privacy"}  # it has no description


def test_people_without_a_grant_see_the_chosen_facts_alone(house: House) -> None:
    house.ready(description="petals")
    assert listed(house, "columns", title="Irises").status_code == 200
    entry = house.ben.get(ENTRY).json()
    assert (entry["name"], entry["title"], entry["accessible"]) == ("flowers", "Irises", False)
    assert lines(entry) == {"columns": ["a: number from 0 to 10", "b: number from 0 to 4"]}
    assert house.ben.get("/v1/catalogue").json()["items"] == [entry]
    assert house.ada.get(ENTRY).json()["accessible"]
    assert house.ben.get("/v1/datasets/flowers").status_code == 404

    assert listed(house).json()["title"] == ""
    assert house.ben.get(ENTRY).json()["groups"] == []
    assert house.carla.delete(LISTING).status_code == 204
    assert house.ben.get(ENTRY).status_code == 404


def test_entry_depends_on_neither_rows_nor_spending(house: House) -> None:
    entries = []
    for name, rows in (("few", 3), ("many", 400)):
        house.ready(name, rows=rows)
        house.carla.put(f"/v1/datasets/{name}/listing", {"shows": EVERY_GROUP})
        if name == "many":
            assert house.submit("0.5", dataset=name).status_code == 202
            assert house.work()
        entries.append(json.dumps(house.ben.get(f"/v1/catalogue/{name}").json()).replace(name, "?"))
    assert entries[0] == entries[1]
    for figure in ("400", "0.5", "epsilon", "delta", "0.000001"):
        assert figure not in entries[1]


def test_periods_are_named_once_they_are_sealed(house: House) -> None:
    assert house.create(unit="record").status_code == 201
    periods = "/v1/datasets/flowers/periods"
    for label in ("2026-01", "2026-02"):
        assert house.carla.post(periods, {"label": label}).status_code == 201
    house.carla.call("PUT", f"{periods}/2026-01/data", content=table(40))
    sealed = house.carla.post(f"{periods}/2026-01/seal", {"confirm": ["size"]})
    assert sealed.status_code == 200, sealed.text
    assert listed(house, "periods", "privacy").status_code == 200
    assert lines(house.ben.get(ENTRY).json()) == {"privacy": ["a row"], "periods": ["2026-01"]}


def test_facts_that_rows_decided_are_marked(house: House) -> None:
    assert house.create().status_code == 201
    assert house.check(table(200)).status_code == 200
    assert house.carla.call("PATCH", "/v1/datasets/flowers", json={"size": 300}).status_code == 200
    assert house.seal().status_code == 200
    listed(house, "columns", "size")
    found = lines(house.ben.get(ENTRY).json())
    assert found["size"] == [
        "about 300, as declared without counting them",
        "changed after a look at the rows: size",
    ]
    assert len(found["columns"]) == 2


def test_drafts_and_retired_datasets_are_not_in_the_catalogue(house: House) -> None:
    house.create()
    assert listed(house, "columns").json()["type"] == "/problems/not-sealed"
    house.upload(table(200))
    assert listed(house, "columns").status_code == 200
    assert house.carla.post("/v1/datasets/flowers/retire").status_code == 200
    assert house.ben.get(ENTRY).status_code == 404
    assert house.ben.get("/v1/catalogue").json()["items"] == []


def test_key_that_is_limited_to_other_datasets_finds_nothing(house: House) -> None:
    house.ready()
    listed(house, "columns")
    made = house.carla.post("/v1/principals/ben/keys", {"datasets": ["others"]}).json()["key"]
    limited = {"Authorization": f"Bearer {made}"}
    assert house.client.request("GET", "/v1/catalogue", headers=limited).json()["items"] == []
    assert house.client.request("GET", ENTRY, headers=limited).status_code == 404


def test_listing_is_an_act_in_the_audit_log(house: House) -> None:
    house.ready()
    listed(house, "columns", "size")
    house.carla.delete(LISTING)
    house.carla.delete(LISTING)
    words = [each["words"] for each in house.carla.get("/v1/audit?dataset=flowers").json()["items"]]
    assert words[:2] == [
        "took the dataset out of the catalogue",
        "listed the dataset in the catalogue, which shows: name, columns, size",
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"bounds": {"ball": {"radius": 3}}},
        {"columns": None, "dimension": 5000, "bounds": {"sparse": {"radius": 1}}},
        {"columns": None, "bounds": {"ids": {"count": 12}}},
        {"columns": None, "dimension": 300},
    ],
    ids=["ball", "sparse", "ids", "many"],
)
def test_columns_of_every_kind_of_domain_are_in_words(small_house: House, changes: dict[str, Any]) -> None:
    box = {"box": {"low": 0, "high": 1}}
    assert small_house.create(**{"bounds": box, **changes}).status_code == 201
    (columns,) = [
        each for each in small_house.carla.get(LISTING).json()["groups"] if each["group"] == "columns"
    ]
    assert 1 <= len(columns["lines"]) <= 201
    assert all(columns["lines"])
