"""Requests for access: asked, granted all or in part, declined, withdrawn: each once, by the right person."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from typing import Any

from httpx import Response

from service.operations.clock import rfc3339
from tests.support.service import START, House, Person

REQUESTS = "/v1/requests"
PLAN = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.4", "delta": "0"}


def ask(house: House, who: Person | None = None, **body: Any) -> Response:
    asked = {"dataset": "flowers", "epsilon": "3", "purpose": "frailty", **body}
    return (who or house.ada).post(REQUESTS, {name: each for name, each in asked.items() if each is not None})


def asked(house: House, **body: Any) -> str:
    answer = ask(house, **body)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def act(who: Person, request: str, verb: str, body: Any = None) -> Response:
    return who.post(f"{REQUESTS}/{request}/{verb}", {} if body is None else body)


def cap(house: House) -> Any:
    return house.carla.get("/v1/datasets/flowers/grants").json()["items"][0]


def test_half_of_what_is_asked_is_granted_and_the_analyst_reads_it(house: House) -> None:
    house.ready(budget={"epsilon": "5", "delta": "0.000001"})
    request = asked(house, plan=PLAN, permit="2030/17", kinds=["cluster", "profile"])
    seen = house.carla.get(f"{REQUESTS}?waiting=true").json()["items"]
    assert [each["id"] for each in seen] == [request]
    assert seen[0]["plan"]["cost"] == {"epsilon": "0.4", "delta": "0"}
    assert seen[0]["plan"]["accuracy"]["verdict"]["sentence"]
    assert seen[0]["standing"]["budget"]["remaining"]["epsilon"] == "5"
    assert seen[0]["standing"]["cap"]["total"]["epsilon"] == "1"
    granted = act(house.carla, request, "grant", {"epsilon": "1.5", "reason": "half for now"})
    assert granted.json()["state"] == "granted", granted.text
    told = house.ada.get(f"{REQUESTS}/{request}").json()
    assert (told["decided"]["epsilon"], told["reason"], told["decided_by"]) == (
        "1.5",
        "half for now",
        "carla",
    )
    assert (told["standing"], told["acts"]) == (None, [])
    found = cap(house)
    assert found["cap"]["declared"] == {"epsilon": "1.5", "delta": "0.000001"}
    assert (found["kinds"], found["permit"]) == (["cluster", "profile"], "2030/17")
    assert house.carla.get(f"{REQUESTS}?waiting=true").json()["items"] == []


def test_every_step_is_in_the_audit_log_with_its_person(small_house: House) -> None:
    house = small_house
    house.ready()
    request = asked(house)
    act(house.carla, request, "grant", {"epsilon": "2"})
    act(house.carla, asked(house), "decline", {"reason": "not for this"})
    house.ada.delete(f"{REQUESTS}/{asked(house)}")
    events = house.carla.get("/v1/audit?dataset=flowers").json()["items"][:6]
    assert [(each["actor"], each["action"]) for each in reversed(events)] == [
        ("ada", "request"),
        ("carla", "grant"),
        ("ada", "request"),
        ("carla", "decline-request"),
        ("ada", "request"),
        ("ada", "withdraw-request"),
    ]
    assert f"on request {request[:8]}" in events[-2]["words"]
    assert "not for this" in events[2]["words"]


def test_what_is_left_out_stays_and_an_ended_grant_can_be_asked_for_again(small_house: House) -> None:
    house = small_house
    house.ready()
    ends = rfc3339(START + timedelta(hours=1))
    terms = {"epsilon": "1", "delta": "0.000001", "ends_at": ends, "permit": "2030/17"}
    assert house.carla.put("/v1/datasets/flowers/grants/ada", terms).status_code == 200
    house.clock.move(3600)
    assert house.submit().status_code == 404
    later = rfc3339(START + timedelta(hours=3))
    request = asked(house, epsilon=None, purpose=None, ends_at=later)
    assert act(house.carla, request, "grant").json()["state"] == "granted"
    found = cap(house)
    assert (found["cap"]["declared"]["epsilon"], found["permit"], found["ends_at"]) == ("1", "2030/17", later)
    assert house.submit().status_code == 202


def test_request_is_decided_once_by_its_owner_alone(house: House) -> None:
    house.ready()
    request = asked(house)
    assert act(house.ada, request, "grant").status_code == 403
    assert act(house.ben, request, "decline", {"reason": "x"}).status_code == 403
    assert house.ben.get(f"{REQUESTS}/{request}").status_code == 404
    assert house.carla.delete(f"{REQUESTS}/{request}").status_code == 403
    assert act(house.carla, request, "second").status_code == 409
    assert house.ada.delete(f"{REQUESTS}/{request}").json()["state"] == "withdrawn"
    refused = act(house.carla, request, "grant")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/already-decided")
    assert refused.json()["state"] == "withdrawn"
    assert cap(house)["cap"]["declared"]["epsilon"] == "1"


def test_of_two_grants_at_once_one_wins(house: House, database_url: str, tmp_path: Path) -> None:
    house.ready()
    keys = {each.name: each.key for each in (house.carla, house.ada, house.ben)}
    with closing(House(database_url, tmp_path, keys=keys)) as other, ThreadPoolExecutor(2) as pool:
        for _ in range(5):
            request = asked(house)
            answers = pool.map(
                lambda each, request=request: act(each[0].carla, request, "grant", {"epsilon": each[1]}),
                ((house, "2"), (other, "3")),
            )
            states = {each.status_code: each.json() for each in answers}
            assert set(states) == {200, 409}
            assert states[409]["type"] == "/problems/already-decided"
            assert cap(house)["cap"]["declared"]["epsilon"] == states[200]["decided"]["epsilon"]


def test_retired_dataset_declines_what_is_open_and_a_new_owner_decides_what_is_handed_over(
    small_house: House,
) -> None:
    house = small_house
    house.ready()
    request = asked(house)
    made = house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"}).json()
    cleo = Person(house.client, "cleo", made["first_key"]["key"])
    assert cleo.get(f"{REQUESTS}/{request}").status_code == 404
    assert house.carla.post("/v1/datasets/flowers/owner", {"curator": "cleo"}).status_code == 204
    assert act(house.carla, request, "grant").status_code == 404
    assert cleo.post("/v1/datasets/flowers/retire").status_code == 200
    told = house.ada.get(f"{REQUESTS}/{request}").json()
    assert (told["state"], told["reason"]) == ("declined", "The dataset is retired.")
    assert act(cleo, request, "grant").status_code == 409
    assert ask(house).status_code == 409


def test_nobody_asks_for_what_they_must_not_know_of_or_for_nothing(small_house: House) -> None:
    house = small_house
    house.ready()
    missing = ask(house, house.ben, dataset="missing")
    unknown = ask(house, house.ben)
    assert (missing.status_code, unknown.status_code) == (404, 404)
    assert house.carla.delete("/v1/datasets/flowers/grants/ada").status_code == 204
    assert ask(house).status_code == 404
    assert house.grant().status_code == 200
    wrong: list[dict[str, Any]] = [
        {"epsilon": None, "purpose": None},
        {"epsilon": "-1"},
        {"ends_at": rfc3339(START)},
        {"purpose": "x" * 2001},
        {"plan": {**PLAN, "dataset": "other"}},
        {"plan": {**PLAN, "algorithm": "skellam-kmeans", "options": {"note": "x" * 20_000}}},
        {"period": "2026-01"},
    ]
    for each in wrong:
        assert ask(house, **each).status_code == 422, each
    assert ask(house, analyst="ben").status_code == 403
    assert ask(house, about="total").status_code == 403


def test_plan_that_cannot_be_made_is_kept_with_the_reason(small_house: House) -> None:
    small_house.ready()
    request = asked(small_house, plan={**PLAN, "algorithm": "nothing"})
    plan = small_house.carla.get(f"{REQUESTS}/{request}").json()["plan"]
    assert (plan["cost"], plan["asked_for"]) == (None, "2 centres")
    assert "nothing" in plan["problem"]


def test_number_of_requests_in_a_day_is_limited(small_house: House) -> None:
    small_house.ready()
    most = small_house.settings.max_open_requests
    made = [asked(small_house) for _ in range(most)]
    small_house.ada.delete(f"{REQUESTS}/{made[0]}")
    refused = ask(small_house)
    assert (refused.status_code, refused.json()["limit"]) == (409, most)
    small_house.clock.move(24 * 3600)
    assert [ask(small_house).status_code for _ in range(2)] == [201, 409]  # those of before are still open


def test_key_that_is_limited_to_datasets_sees_requests_on_those_alone(small_house: House) -> None:
    house = small_house
    house.ready()
    house.ready("others")
    request = asked(house)
    made = house.carla.post("/v1/principals/carla/keys", {"datasets": ["others"]}).json()
    limited = Person(house.client, "carla", made["key"])
    assert limited.get(REQUESTS).json()["items"] == []
    assert act(limited, request, "grant").status_code == 404


def test_who_asks_from_the_catalogue_is_not_told_what_the_plan_says_of_the_dataset(
    small_house: House,
) -> None:
    house = small_house
    house.ready()
    assert house.carla.put("/v1/datasets/flowers/listing", {"title": "Flowers"}).status_code == 200
    answer = ask(house, house.ben, plan=PLAN)
    assert answer.status_code == 201, answer.text
    told = answer.json()
    assert (told["plan"]["cost"], told["plan"]["problem"], told["standing"]) == (None, None, None)
    assert house.carla.get(f"{REQUESTS}/{told['id']}").json()["plan"]["cost"]["epsilon"] == "0.4"
    assert act(house.carla, told["id"], "grant").json()["state"] == "granted"
    assert house.submit("0.4", who=house.ben).status_code == 202
