"""Keys, roles and rights: who is let in, and what they may do."""

from __future__ import annotations

import re

import pytest
from sqlalchemy import text

from tests.support.service import House, Person


def test_request_without_a_key_is_refused(shared_house: House) -> None:
    answer = shared_house.client.request("GET", "/v1/datasets")
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthorized")
    assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("change", ["cut", "other secret", "other handle", "empty", "upper", "surrogate"])
def test_altered_key_is_refused(shared_house: House, change: str) -> None:
    key = shared_house.ada.key
    altered = {
        "cut": key[:-1],
        "other secret": key[:-1] + ("A" if key[-1] != "A" else "B"),
        "other handle": key.replace(key[6:14], "00000000"),
        "empty": "",
        "upper": key.upper(),
        "surrogate": key + "é",
    }[change]
    headers = {"Authorization": f"Bearer {altered}".encode()}
    assert shared_house.client.request("GET", "/v1/whoami", headers=headers).status_code == 401


def test_key_is_shown_once_and_kept_only_as_a_digest(house: House) -> None:
    made = house.carla.post("/v1/principals", {"name": "dora", "role": "analyst"}).json()
    key = made["first_key"]["key"]
    assert re.fullmatch(r"cairn_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", key)
    assert key not in house.carla.get("/v1/principals").text
    with house.database.engine.connect() as connection:
        kept = str(connection.execute(text("SELECT * FROM api_keys")).all())
    assert key.split("_", 2)[2] not in kept
    assert Person(house.client, "dora", key).get("/v1/whoami").json() == {"name": "dora", "role": "analyst"}


def test_revoked_key_stops_working_at_once(house: House) -> None:
    issued = house.carla.post("/v1/principals/ada/keys", {"label": "laptop"}).json()
    laptop = Person(house.client, "ada", issued["key"])
    assert laptop.get("/v1/whoami").status_code == 200
    assert house.carla.delete(f"/v1/principals/ada/keys/{issued['id']}").status_code == 204
    assert laptop.get("/v1/whoami").status_code == 401
    assert house.ada.get("/v1/whoami").status_code == 200


def test_key_expires(small_house: House) -> None:
    issued = small_house.carla.post("/v1/principals/ada/keys", {"expires_in_days": 2}).json()
    short = Person(small_house.client, "ada", issued["key"])
    small_house.clock.move(2 * 86400 - 1)
    assert short.get("/v1/whoami").status_code == 200
    small_house.clock.move(1)
    assert short.get("/v1/whoami").status_code == 401


def test_disabled_principal_is_locked_out(small_house: House) -> None:
    assert small_house.carla.delete("/v1/principals/ada").status_code == 204
    assert small_house.ada.get("/v1/whoami").status_code == 401


def test_last_curator_cannot_be_disabled(small_house: House) -> None:
    answer = small_house.carla.delete("/v1/principals/carla")
    assert (answer.status_code, "the last curator" in answer.json()["detail"]) == (409, True)
    small_house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"})
    assert small_house.carla.delete("/v1/principals/carla").status_code == 204


def test_curator_cannot_take_over_another_curators_people(small_house: House) -> None:
    made = small_house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"}).json()
    cleo = Person(small_house.client, "cleo", made["first_key"]["key"])
    for name in ("carla", "ada"):
        assert cleo.post(f"/v1/principals/{name}/keys", {}).json()["type"] == "/problems/forbidden"
        assert cleo.delete(f"/v1/principals/{name}").status_code == 403
    assert cleo.post("/v1/principals/cleo/keys", {}).status_code == 201


@pytest.mark.both_databases
def test_name_is_taken_once(house: House) -> None:
    answer = house.carla.post("/v1/principals", {"name": "ada", "role": "analyst"})
    assert (answer.status_code, answer.json()["type"]) == (409, "/problems/invalid-request")


CURATORS_ONLY = [
    ("POST", "/v1/principals", {"name": "eve", "role": "analyst"}),
    ("GET", "/v1/principals", None),
    ("GET", "/v1/audit", None),
    ("POST", "/v1/principals/ben/keys", {}),
    ("DELETE", "/v1/principals/ben", None),
    ("PUT", "/v1/datasets/flowers/grants/ada", {"epsilon": "9"}),
    ("DELETE", "/v1/datasets/flowers/grants/ada", None),
    ("GET", "/v1/datasets/flowers/grants", None),
    ("POST", "/v1/datasets/flowers/budget", {"epsilon": "9"}),
    ("POST", "/v1/datasets/flowers/retire", None),
    ("POST", "/v1/datasets/flowers/ledger/verify", None),
    ("GET", "/metrics", None),
]


@pytest.mark.parametrize(("verb", "path", "body"), CURATORS_ONLY)
def test_analyst_may_not_do_a_curators_work(
    shared_house: House, verb: str, path: str, body: dict[str, str] | None
) -> None:
    answer = shared_house.ada.call(verb, path, json=body)
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")


def test_every_act_of_a_curator_is_in_the_audit_log(house: House) -> None:
    house.ready()
    house.carla.post("/v1/datasets/flowers/budget", {"epsilon": "2", "delta": "0.000001"})
    house.carla.delete("/v1/datasets/flowers/grants/ada")
    house.carla.post("/v1/datasets/flowers/retire")
    page = house.carla.get("/v1/audit", params={"limit": 500}).json()
    done = [event["action"] for event in reversed(page["items"])]
    acts = ["create-dataset", "upload", "seal", "grant", "raise-budget", "revoke-grant", "retire"]
    assert done[-7:] == acts
    assert {"create-principal", "issue-key"} <= set(done)


def test_pages_of_the_audit_log_join_without_gap(small_house: House) -> None:
    whole = [e["id"] for e in small_house.carla.get("/v1/audit", params={"limit": 500}).json()["items"]]
    seen: list[int] = []
    cursor = None
    while True:
        page = small_house.carla.get(
            "/v1/audit", params={"limit": 2} | ({"cursor": cursor} if cursor else {})
        ).json()
        seen += [event["id"] for event in page["items"]]
        cursor = page["next"]
        if cursor is None:
            break
    assert seen == whole
