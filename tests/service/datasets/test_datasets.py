"""Tests of datasets: what is asked of a new one, who sees what, caps, raising, retiring."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from service.datasets import budget_routes
from service.ledger import entries
from service.operations.tables import DatasetChunk
from tests.support.service import House, Person, table


def test_analyst_sees_public_facts_and_budgets_but_never_the_count(house: House) -> None:
    house.ready(rows=137)
    facts = house.ada.get("/v1/datasets/flowers").json()
    assert facts["columns"] == ["a", "b"]
    assert facts["budget"]["remaining"] == {"epsilon": "1", "delta": "0.000001"}
    assert facts["upload"] is None
    assert "137" not in house.ada.get("/v1/datasets/flowers").text
    assert house.carla.get("/v1/datasets/flowers").json()["upload"]["rows"] == 137


def test_ungranted_dataset_looks_like_none(house: House) -> None:
    house.ready()
    absent = house.ben.get("/v1/datasets/nothing")
    hidden = house.ben.get("/v1/datasets/flowers")
    assert (absent.status_code, hidden.status_code) == (404, 404)
    assert hidden.json() == {**absent.json(), "detail": absent.json()["detail"].replace("nothing", "flowers")}
    assert house.submit(who=house.ben).status_code == 404
    assert house.ben.get("/v1/datasets").json()["items"] == []
    assert house.ben.get("/v1/datasets/flowers/ledger").status_code == 404


def test_another_curators_dataset_looks_like_none(small_house: House) -> None:
    small_house.ready()
    made = small_house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"}).json()
    cleo = Person(small_house.client, "cleo", made["first_key"]["key"])
    for verb, path in [("GET", ""), ("POST", "/retire"), ("GET", "/ledger"), ("GET", "/grants")]:
        assert cleo.call(verb, f"/v1/datasets/flowers{path}").status_code == 404
    assert cleo.get("/v1/datasets").json()["items"] == []
    assert cleo.get("/v1/audit", params={"dataset": "flowers"}).json()["items"] == []


WRONG: list[dict[str, Any]] = [
    {"bounds": {}},
    {"bounds": {"box": {"low": 0, "high": 1}, "ball": {"radius": 1}}},
    {"bounds": {"box": {"low": [0, 0], "high": [10, 0]}}},
    {"bounds": {"box": {"low": [0], "high": [10, 4]}}},
    {"bounds": {"ball": {"radius": -1}}},
    {"bounds": {"sparse": {"radius": 1}}},
    {"columns": ["a", "a"]},
    {"columns": ["a", "a\u0000b"]},
    {"columns": [], "dimension": 2},
    {"size": 0},
    {"size": True},
    {"size": 10.5},
    {"size": None},
    {"name": "Not A Name"},
    {"name": "../etc"},
    {"budget": {"epsilon": "0"}},
    {"budget": {"epsilon": "-1"}},
    {"budget": {"epsilon": True}},
    {"budget": {"epsilon": "1e-13"}},
    {"budget": {"epsilon": "1", "delta": "1"}},
    {"budget": {"epsilon": "1", "delta": "1e-19"}},
    {"budget": {"epsilon": "abc"}},
    {"accountant": "zcdp", "budget": {"epsilon": "1"}},
    {"accountant": "other"},
    {"id_column": "a"},
    {"rows_per_person": 3},
    {"surprise": 1},
]


@pytest.mark.parametrize("change", WRONG, ids=str)
def test_wrong_public_facts_are_refused(shared_house: House, change: dict[str, Any]) -> None:
    answer = shared_house.create("other", **change) if "name" not in change else shared_house.create(**change)
    assert answer.status_code == 422, answer.text
    assert answer.json()["type"] == "/problems/invalid-request"


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": NaN}',
        b'{"size": Infinity}',
        b'{"a": 1, "a": 2}',
        b"[" * 100_000,
        b'{"a": 1e999}',
        b"{",
        b'"\\ud800"',
        b"\xff",
    ],
)
def test_json_outside_the_strict_rules_is_refused(shared_house: House, body: bytes) -> None:
    answer = shared_house.carla.call(
        "POST", "/v1/datasets", content=body, headers={"Content-Type": "application/json"}
    )
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-request")


def test_bounds_of_every_kind_come_back_as_given(small_house: House) -> None:
    kinds: list[dict[str, Any]] = [
        {"columns": ["a", "b"], "bounds": {"box": {"low": 0, "high": 1}}},
        {"columns": ["a", "b"], "bounds": {"ball": {"radius": 3, "centre": [1, 1]}}},
        {"columns": None, "dimension": 5, "bounds": {"sparse": {"radius": 2}}},
        {"columns": None, "bounds": {"ids": {"count": 12}}},
    ]
    for number, kind in enumerate(kinds):
        facts = small_house.create(f"d{number}", **kind).json()
        assert list(facts["bounds"]) == list(kind["bounds"])
    names = [each["name"] for each in small_house.carla.get("/v1/datasets").json()["items"]]
    assert names == ["d0", "d1", "d2", "d3"]


@pytest.mark.both_databases
def test_name_of_a_dataset_is_taken_once(house: House) -> None:
    house.create()
    assert house.create().status_code == 409


def test_lists_of_datasets_are_paged(small_house: House) -> None:
    for number in range(5):
        small_house.create(f"d{number}")
    first = small_house.carla.get("/v1/datasets", params={"limit": 3}).json()
    second = small_house.carla.get("/v1/datasets", params={"limit": 3, "cursor": first["next"]}).json()
    assert [each["name"] for each in first["items"] + second["items"]] == [f"d{i}" for i in range(5)]
    assert second["next"] is None


@pytest.mark.parametrize("cursor", ["x", "AAAA", "bnVsbA", "W10", "Ilx1MDAwMCI"])
def test_foreign_cursor_is_refused(shared_house: House, cursor: str) -> None:
    assert shared_house.carla.get("/v1/datasets", params={"cursor": cursor}).status_code == 422


def test_draft_cannot_be_planned_on(small_house: House) -> None:
    small_house.create()
    small_house.grant()
    assert small_house.submit().json()["type"] == "/problems/not-sealed"
    assert (
        small_house.ada.post("/v1/plans", {"dataset": "flowers", "k": 2, "epsilon": "0.1"}).json()["type"]
        == "/problems/not-sealed"
    )


def test_total_is_raised_and_never_lowered(house: House) -> None:
    house.ready()
    raised = house.carla.post("/v1/datasets/flowers/budget", {"epsilon": "2.5", "delta": "0.000001"})
    assert raised.json()["budget"]["remaining"] == {"epsilon": "2.5", "delta": "0.000001"}
    for lower in ({"epsilon": "2.4", "delta": "0.000001"}, {"epsilon": "3", "delta": "0"}):
        assert house.carla.post("/v1/datasets/flowers/budget", lower).status_code == 422
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_withdrawn_and_renewed_grant_remembers_what_was_spent(house: House) -> None:
    house.ready(planned_release=False)
    house.submit("0.3", delta="0")
    assert house.work()
    queued = house.submit("0.2", delta="0").json()
    assert house.carla.delete("/v1/datasets/flowers/grants/ada").status_code == 204
    assert house.ada.get("/v1/datasets/flowers").status_code == 404
    assert house.ada.get(queued["links"]["self"]).json()["state"] == "cancelled"
    assert not house.work()
    assert house.grant().status_code == 200
    cap = house.ada.get("/v1/datasets/flowers").json()["cap"]
    assert (cap["spent"]["epsilon"], cap["reserved"]["epsilon"]) == ("0.3", "0")
    assert house.grant(epsilon="0.2").status_code == 409
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json() | {"head": ""} == {
        "ok": True,
        "entries": 7,
        "since": 0,
        "head": "",
        "faults": [],
    }


@pytest.mark.both_databases
def test_retired_dataset_loses_its_rows_and_keeps_its_ledger(house: House) -> None:
    house.ready(planned_release=False)
    house.submit("0.3", delta="0")
    assert house.work()
    queued = house.submit("0.2", delta="0").json()
    assert house.carla.post("/v1/datasets/flowers/retire").json() == {"state": "retired", "voided_jobs": 1}
    assert house.carla.post("/v1/datasets/flowers/retire").json()["voided_jobs"] == 0
    with house.database.read() as session:
        assert session.scalar(select(func.count()).select_from(DatasetChunk)) == 0
    assert house.ada.get(queued["links"]["self"]).json()["state"] == "cancelled"
    assert house.submit().json()["type"] == "/problems/retired"
    assert house.upload(table(3)).json()["type"] == "/problems/retired"
    assert house.grant("ben").json()["type"] == "/problems/retired"
    spent = house.carla.get("/v1/datasets/flowers").json()["budget"]
    assert (spent["spent"]["epsilon"], spent["reserved"]["epsilon"]) == ("0.3", "0")
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_ledger_shows_all_to_the_owner_and_their_own_to_analysts(house: House) -> None:
    house.ready(planned_release=False)
    house.grant("ben")
    house.submit("0.1", delta="0")
    house.submit("0.2", delta="0", who=house.ben)
    every = house.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    assert [row["kind"] for row in every] == ["open", "cap", "cap", "reserve", "reserve"]
    assert every[1]["previous"] == every[0]["hash"]
    own = house.ben.get("/v1/datasets/flowers/ledger").json()["items"]
    assert [(row["kind"], row["amount"]["epsilon"]) for row in own] == [("cap", "1"), ("reserve", "0.2")]
    assert {row["hash"] for row in own} == {None}
    table_text = house.carla.get("/v1/datasets/flowers/ledger", headers={"Accept": "text/csv"}).text
    assert table_text.splitlines()[0].startswith("sequence,kind,at,analyst,job,periods,epsilon")
    assert len(table_text.splitlines()) == 6
    assert table_text.splitlines()[1].startswith("1,open,2030-01-01T09:00:00.000Z,")


@pytest.mark.both_databases
def test_ledger_is_written_as_a_table_a_page_at_a_time(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget_routes, "_CSV_PAGE", 2)
    monkeypatch.setattr(budget_routes, "_CSV_PIECE", 10)
    asked: list[Any] = []
    page = entries.page

    def noting(*arguments: Any, limit: int, **options: Any) -> Any:
        asked.append(limit)
        return page(*arguments, limit=limit, **options)

    monkeypatch.setattr(entries, "page", noting)
    house.ready()
    for _ in range(5):
        house.submit("0.01", delta="0")
    text = house.carla.get("/v1/datasets/flowers/ledger", headers={"Accept": "text/csv"}).text
    assert [line.split(",")[0] for line in text.splitlines()] == ["sequence", *map(str, range(1, 8))]
    assert asked == [2] * 5


@pytest.mark.both_databases
def test_sites_are_stored_once_under_a_name(house: House) -> None:
    house.create()
    put = {"content": b"1,1\n5,2\n9,3\n", "headers": {"Content-Type": "text/csv"}}
    made = house.carla.call("PUT", "/v1/datasets/flowers/sites/shops", **put)
    assert (made.status_code, made.json()["count"]) == (200, 3)
    assert house.carla.call("PUT", "/v1/datasets/flowers/sites/shops", **put).status_code == 200
    put["content"] = b"2,2\n"
    assert house.carla.call("PUT", "/v1/datasets/flowers/sites/shops", **put).status_code == 409
    house.grant()
    assert [each["name"] for each in house.ada.get("/v1/datasets/flowers/sites").json()["items"]] == ["shops"]


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("coordinates", b"1\n2\n"),
        ("coordinates", b"1,x\n"),
        ("coordinates", b"1,nan\n"),
        ("coordinates", b"1,2\n3\n"),
        ("coordinates", b""),
        ("coordinates", b"a,b\n1,2\n"),
        ("coordinates", b"1,2\n11,2\n"),
        ("coordinates", b"1,2\n1,2\n"),
        ("distances", b"0,1\n1,0\n"),
        ("distances", b"0,1\n2,0\n"),
        ("distances", b"0,1,2\n1,0,2\n"),
        ("distances", b"1,1\n1,1\n"),
        ("distances", b"\x93NUMPY garbage"),
    ],
)
def test_wrong_sites_are_refused(shared_house: House, kind: str, content: bytes) -> None:
    answer = shared_house.carla.call(
        "PUT", "/v1/datasets/flowers/sites/s", content=content, params={"kind": kind}
    )
    assert answer.json()["type"] == "/problems/bad-format"


def test_a_wrong_line_of_sites_is_named(shared_house: House) -> None:
    answer = shared_house.carla.call("PUT", "/v1/datasets/flowers/sites/s", content=b"1,2\n3,x\n")
    assert answer.json()["detail"].startswith("line 2 of the sites holds something other than numbers")
    answer = shared_house.carla.call("PUT", "/v1/datasets/flowers/sites/s", content=b"1,2\n3\n")
    assert answer.json()["detail"].startswith("line 2 of the sites has 1 values and the first line 2")


def test_sites_on_the_globe_need_a_dataset_of_latitudes_and_longitudes(house: House) -> None:
    place = {"content": b"52.5,13.4\n48.1,11.6\n", "params": {"kind": "great-circle"}}
    house.create("globe", columns=["lat", "lon"], bounds={"box": {"low": [-90, -180], "high": [90, 180]}})
    made = house.carla.call("PUT", "/v1/datasets/globe/sites/towns", **place)
    assert (made.status_code, made.json()["kind"], made.json()["count"]) == (200, "great-circle", 2)
    house.create("tall", bounds={"box": {"low": [0, 0], "high": [100, 4]}})
    refused = house.carla.call("PUT", "/v1/datasets/tall/sites/towns", **place)
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/bad-format")
    assert "latitudes within -90..90" in refused.json()["detail"]


def test_the_same_numbers_of_another_kind_are_other_sites(small_house: House) -> None:
    small_house.create()
    put = {"content": b"1,1\n5,2\n"}
    place = "/v1/datasets/flowers/sites/shops"
    assert small_house.carla.call("PUT", place, **put).status_code == 200
    assert small_house.carla.call("PUT", place, **put, params={"kind": "great-circle"}).status_code == 409
