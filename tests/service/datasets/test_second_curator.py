"""Above an amount that the operator sets, no curator makes a grant or a total alone, through any door."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from httpx import Response

from tests.support.service import DOUBTS, START, House, Person

REQUESTS = "/v1/requests"
BUDGET = {"epsilon": "2", "delta": "0.000001"}
LARGER = {"epsilon": "2.5", "delta": "0.000001"}
GRANT = "/v1/datasets/flowers/grants/ada"


class Institution(House):
    """A service where more than epsilon 2 takes two curators: carla and dora, whom an operator created.

    cleo is a curator whom carla created.
    """

    def __init__(self, url: str, folder: Path):
        super().__init__(url, folder, second_epsilon="2", second_delta="0.000001")
        self.cleo = self._made(self.carla, "cleo", "curator")
        self.otto = self._made(self.carla, "otto", "operator")
        self.dora = self._made(self.otto, "dora", "curator")
        self.ready(budget=BUDGET)

    def _made(self, by: Person, name: str, role: str) -> Person:
        made = by.post("/v1/principals", {"name": name, "role": role}).json()
        return Person(self.client, name, made["first_key"]["key"])

    def cap(self) -> Any:
        return self.carla.get("/v1/datasets/flowers/grants").json()["items"][0]["cap"]["declared"]

    def total(self) -> Any:
        return self.carla.get("/v1/datasets/flowers").json()["budget"]["declared"]


@pytest.fixture
def house(database_url: str, tmp_path: Path) -> Iterator[Institution]:
    with closing(Institution(database_url, tmp_path)) as made:
        yield made


@pytest.fixture
def small_house(sqlite_url: str, tmp_path: Path) -> Iterator[Institution]:
    with closing(Institution(sqlite_url, tmp_path)) as made:
        yield made


def proposed(house: Institution, **body: Any) -> str:
    answer = house.carla.post(REQUESTS, {"dataset": "flowers", **LARGER, **body})
    assert (answer.status_code, answer.json().get("state")) == (201, "proposed"), answer.text
    return str(answer.json()["id"])


def second(who: Person, request: str) -> Response:
    return who.post(f"{REQUESTS}/{request}/second")


def test_no_door_lets_one_curator_allow_more(small_house: Institution) -> None:
    house = small_house
    monthly = {"name": "monthly", "dimension": 2, "bounds": {"box": {"low": 0, "high": 1}}, "size": 1000}
    made = house.carla.post("/v1/datasets", {**monthly, "budget": BUDGET, "unit": "record"})
    assert made.status_code == 201, made.text
    periods = "/v1/datasets/monthly/periods"
    assert house.carla.post(periods, {"label": "2026-01"}).status_code == 201
    content = b"x1,x2\n" + b"0.5,0.5\n" * 40
    assert house.carla.call("PUT", f"{periods}/2026-01/data", content=content).status_code == 200
    assert house.carla.post(f"{periods}/2026-01/seal", {"confirm": list(DOUBTS)}).status_code == 200
    request = house.ada.post(REQUESTS, {"dataset": "flowers", **LARGER}).json()["id"]
    doors: list[tuple[str, str, dict[str, Any]]] = [
        ("PUT", GRANT, LARGER),
        ("PUT", GRANT, {"epsilon": "1", "delta": "0.000002"}),
        ("PUT", "/v1/datasets/flowers/grants/ben", LARGER),
        ("POST", "/v1/datasets/flowers/budget", LARGER),
        ("POST", f"{periods}/2026-01/budget", LARGER),
        ("POST", periods, {"label": "2026-02", "budget": LARGER}),
        ("POST", "/v1/datasets", {**monthly, "name": "another", "budget": LARGER}),
    ]
    for verb, path, body in doors:
        answer = house.carla.call(verb, path, json=body)
        assert (answer.status_code, answer.json()["type"]) == (409, "/problems/second-needed"), path
        assert answer.json()["alone"] == BUDGET
    granted = house.carla.post(f"{REQUESTS}/{request}/grant", {})
    assert granted.json()["state"] == "proposed", granted.text
    period = proposed(house, dataset="monthly", about="total", period="2026-01")
    assert second(house.dora, period).json()["state"] == "granted"
    raised = house.carla.get(f"{periods}/2026-01").json()["budget"]["declared"]
    assert raised == LARGER
    assert house.cap()["epsilon"] == "1"
    assert house.total() == BUDGET


def test_grant_and_total_are_made_when_another_curator_agrees(house: Institution) -> None:
    total = proposed(house, about="total")
    grant = proposed(house, analyst="ada", permit="2030/17")
    waiting = house.dora.get(f"{REQUESTS}?waiting=true").json()["items"]
    assert [each["id"] for each in waiting] == [grant, total]
    assert waiting[0]["acts"] == ["second", "decline"]
    assert waiting[0]["standing"]["budget"]["declared"] == BUDGET
    for request in (total, grant):
        assert second(house.dora, request).json()["state"] == "granted"
    assert (house.cap(), house.total()) == (LARGER, LARGER)
    assert second(house.dora, grant).json()["type"] == "/problems/already-decided"
    events = house.carla.get("/v1/audit?dataset=flowers").json()["items"][:6]
    assert [(each["actor"], each["action"]) for each in events if each["actor"] == "dora"] == [
        ("dora", "second"),
        ("dora", "second"),
    ]
    agreed = next(each["words"] for each in events if each["action"] == "grant")
    assert agreed.endswith(f"on request {grant[:8]}, with the agreement of dora")
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_the_second_curator_is_somebody_else_with_an_account_of_their_own(small_house: Institution) -> None:
    house = small_house
    request = proposed(house, analyst="ada")
    for who in (house.carla, house.cleo):  # carla was shown the first key of cleo
        refused = second(who, request)
        assert (refused.status_code, refused.json()["type"]) == (403, "/problems/forbidden"), who.name
    assert house.ada.post(f"{REQUESTS}/{request}/second").status_code == 403
    assert house.cap()["epsilon"] == "1"
    declined = house.dora.post(f"{REQUESTS}/{request}/decline", {"reason": "too much"})
    assert (declined.json()["state"], declined.json()["decided_by"]) == ("declined", "dora")
    assert second(house.dora, request).status_code == 404  # declined proposals are their dataset's again


def test_a_large_grant_is_changed_by_one_curator_only_to_less(small_house: Institution) -> None:
    house = small_house
    assert second(house.dora, proposed(house, analyst="ada", kinds=["cluster", "profile"])).status_code == 200
    more: list[dict[str, Any]] = [
        {"kinds": ["cluster", "profile", "table"]},
        {"purpose": "something else"},
        {"epsilon": "2.6"},
    ]
    for each in more:
        assert house.carla.put(GRANT, LARGER | each).status_code == 409, each
    ends = START.replace(year=2031).isoformat()
    for each in ({"kinds": ["cluster"]}, {"ends_at": ends}, {"epsilon": "2.4"}):
        assert house.carla.put(GRANT, LARGER | each).status_code == 200, each
        LESS = each
    assert LESS["epsilon"] == house.cap()["epsilon"]
    later = {**LARGER, "epsilon": "2.4", "ends_at": None}
    assert house.carla.put(GRANT, later).status_code == 409
    assert house.carla.delete(GRANT).status_code == 204
    assert house.carla.put(GRANT, {**LARGER, "epsilon": "2.4"}).status_code == 409  # withdrawn, so it is new
    assert house.carla.put(GRANT, BUDGET).status_code == 200


def test_proposal_of_a_former_owner_is_the_new_owners_to_decide(small_house: Institution) -> None:
    house = small_house
    own = proposed(house, about="total")
    request = house.ada.post(REQUESTS, {"dataset": "flowers", **LARGER}).json()["id"]
    assert house.carla.post(f"{REQUESTS}/{request}/grant", {}).json()["state"] == "proposed"
    assert house.carla.post("/v1/datasets/flowers/owner", {"curator": "dora"}).status_code == 204
    assert house.carla.get(f"{REQUESTS}/{own}").json()["state"] == "withdrawn"
    told = house.dora.get(f"{REQUESTS}/{request}").json()
    assert (told["state"], told["decided"], told["acts"]) == ("open", None, ["grant", "decline"])
    assert second(house.dora, request).status_code == 409
    agreed = house.dora.post(f"{REQUESTS}/{request}/grant", {"epsilon": "2"})
    assert agreed.json()["state"] == "granted"


def test_what_one_curator_may_allow_is_not_proposed(small_house: Institution) -> None:
    body = {"dataset": "flowers", "analyst": "ada", **BUDGET}
    assert small_house.carla.post(REQUESTS, body).status_code == 409
    assert small_house.carla.get(REQUESTS).json()["items"] == []
