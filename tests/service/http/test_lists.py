"""Filters of lists, and HEAD."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.service import House


def items(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


@pytest.mark.both_databases
def test_lists_are_filtered_by_state_kind_person_and_time(house: House) -> None:
    house.ready()
    house.create("empty")
    start = house.clock.now()
    clustering = house.submit("0.1").json()["id"]
    house.clock.move(60)
    question = {"dataset": "flowers", "kind": "summary", "epsilon": "0.1"}
    asked = house.carla.post("/v1/jobs", question).json()["id"]
    later = "2030-01-01T09:00:30Z"

    def jobs(**filters: str) -> list[str]:
        return [each["id"] for each in items(house.carla.get("/v1/jobs", params=filters))]

    assert jobs() == [asked, clustering]
    assert jobs(kind="summary") == [asked]
    assert jobs(kind="cluster") == [clustering]
    assert jobs(analyst="ada") == [clustering]
    assert jobs(since=later) == [asked]
    assert jobs(until=later) == [clustering]
    assert jobs(state="queued", dataset="flowers", analyst="ada") == [clustering]
    assert jobs(state="running") == []
    assert start.isoformat() < later

    def datasets(state: str) -> list[str]:
        return [each["name"] for each in items(house.carla.get(f"/v1/datasets?state={state}"))]

    assert (datasets("draft"), datasets("sealed"), datasets("retired")) == (["empty"], ["flowers"], [])

    ledger = "/v1/datasets/flowers/ledger"
    reserved = items(house.carla.get(ledger, params={"kind": "reserve"}))
    assert [each["job"] for each in reserved] == [clustering, asked]
    assert [each["job"] for each in items(house.carla.get(ledger, params={"analyst": "carla"}))] == [asked]
    of_ada = items(house.carla.get(ledger, params={"analyst": "ada", "kind": "reserve"}))
    assert [each["job"] for each in of_ada] == [clustering]
    assert [each["job"] for each in items(house.carla.get(ledger, params={"since": later}))] == [asked]
    assert [each["job"] for each in items(house.ada.get(ledger, params={"kind": "reserve"}))] == [clustering]
    assert items(house.ada.get(ledger, params={"analyst": "carla"})) == []

    acts = items(house.carla.get("/v1/audit", params={"until": later, "actor": "carla"}))
    assert len(acts) > 2
    assert items(house.carla.get("/v1/audit", params={"since": later})) == []
    assert items(house.carla.get("/v1/audit", params={"actor": "ada"})) == []
    people = items(house.carla.get("/v1/principals", params={"role": "curator"}))
    assert {each["role"] for each in people} == {"curator"}


@pytest.mark.parametrize("since", ["yesterday", "2030-01-01T09:00:00", "2030-01-01"])
def test_a_time_without_its_offset_is_refused_in_words(shared_house: House, since: str) -> None:
    answer = shared_house.carla.get("/v1/jobs", params={"since": since})
    assert answer.status_code == 422
    assert "such as 2026-01-31T08:00:00Z" in answer.json()["detail"]


@pytest.mark.parametrize("path", ["/v1/datasets", "/v1/jobs/none", "/healthz", "/openapi.json", "/"])
def test_head_has_the_headers_of_get_and_no_body(shared_house: House, path: str) -> None:
    got, head = shared_house.carla.get(path), shared_house.carla.call("HEAD", path)
    assert (head.status_code, head.content) == (got.status_code, b"")
    assert head.headers["content-length"] == got.headers["content-length"]
    assert head.headers["content-type"] == got.headers["content-type"]


def test_head_needs_a_key_and_is_refused_where_there_is_no_get(shared_house: House) -> None:
    assert shared_house.carla.call("HEAD", "/v1/jobs", headers={"Authorization": "none"}).status_code == 401
    assert shared_house.carla.call("HEAD", "/v1/plans").status_code == 405
