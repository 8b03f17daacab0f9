"""Sessions: a key exchanged for a cookie, what the cookie may do, and when it ends."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import pytest
from httpx import Response
from sqlalchemy import text

from service.operations.settings import Settings
from tests.support.service import House, Person

LOOPBACK, HTTPS = "http://localhost", "https://cairn.example"
PLAIN_NAME, SECURE_NAME = "cairn-session", "__Host-cairn-session"


class SignedIn:
    """A browser with a session's cookie."""

    def __init__(self, person: Person, origin: str = LOOPBACK, *, remember: bool = False):
        self.client, self.origin = person.client, origin
        self.started = person.call("POST", f"{origin}/v1/sessions", json={"remember": remember})
        cookies: SimpleCookie = SimpleCookie(self.started.headers.get("set-cookie", ""))
        self.cookie = "; ".join(f"{name}={each.value}" for name, each in cookies.items())

    def call(self, verb: str, path: str, **options: Any) -> Response:
        """A request as the console's own page makes it."""
        headers = {"Cookie": self.cookie, "Origin": self.origin, **options.pop("headers", {})}
        sent = {name: value for name, value in headers.items() if value is not None}
        return self.client.request(verb, self.origin + path, headers=sent, **options)

    def works(self) -> bool:
        return self.call("GET", "/v1/whoami").status_code == 200


@pytest.mark.parametrize(
    ("origin", "name", "secure"),
    [
        (LOOPBACK, PLAIN_NAME, False),
        ("http://localhost:8000", PLAIN_NAME, False),
        ("http://127.0.0.1:8000", PLAIN_NAME, False),
        ("http://[::1]:8000", PLAIN_NAME, False),
        (HTTPS, SECURE_NAME, True),
        ("https://localhost", SECURE_NAME, True),
    ],
)
def test_cookie_is_out_of_reach_of_scripts_and_other_sites(
    small_house: House, origin: str, name: str, secure: bool
) -> None:
    browser = SignedIn(small_house.ada, origin)
    value, *attributes = browser.started.headers["set-cookie"].split("; ")
    assert value.startswith(f"{name}=cairn_")
    assert set(attributes) == {"HttpOnly", "Path=/", "SameSite=strict"} | ({"Secure"} if secure else set())
    assert browser.call("GET", "/v1/whoami").json() == {"name": "ada", "role": "analyst"}


@pytest.mark.parametrize(
    "host", ["http://cairn.example", "http://192.168.0.7:8000", "http://[::2]", "http://127.evil"]
)
def test_no_session_starts_in_plain_text_over_a_network(small_house: House, host: str) -> None:
    refused = SignedIn(small_house.ada, host).started
    assert (refused.status_code, "HTTPS" in refused.json()["detail"]) == (422, True)
    assert "set-cookie" not in refused.headers
    assert small_house.ada.get("/v1/sessions").json()["items"] == []


def test_cookie_of_https_is_worth_nothing_without_https(small_house: House) -> None:
    secure = SignedIn(small_house.ada, HTTPS)
    token = secure.cookie.partition("=")[2]
    for cookie in (secure.cookie, f"{PLAIN_NAME}={token}"):
        headers = {"Cookie": cookie}
        answer = small_house.client.request("GET", "http://cairn.example/v1/whoami", headers=headers)
        assert answer.status_code == 401


def test_only_the_hash_of_a_session_is_stored(house: House) -> None:
    # A token is a prefix, the public part and the secret; the secret itself may hold underscores.
    secret = SignedIn(house.ada).cookie.split("_", 2)[2]
    with house.database.engine.connect() as connection:
        stored = str(connection.execute(text("SELECT * FROM sessions")).all())
    assert len(stored) > 64
    assert len(secret) >= 43
    assert secret not in stored


def test_cookie_lasts_until_the_browser_is_closed_unless_the_person_asks_for_more(small_house: House) -> None:
    assert "max-age" not in SignedIn(small_house.ada).started.headers["set-cookie"].lower()
    remembered = SignedIn(small_house.ada, remember=True).started
    assert "Max-Age=2592000" in remembered.headers["set-cookie"]
    assert remembered.json()["remembered"] is True


def test_session_ends_after_the_operators_hours(small_house: House) -> None:
    browser, remembered = SignedIn(small_house.ada), SignedIn(small_house.ada, remember=True)
    small_house.clock.move(12 * 3600 - 1)
    assert browser.works()
    small_house.clock.move(1)
    assert not browser.works()
    assert remembered.works()
    small_house.clock.move(30 * 86400)
    assert not remembered.works()


def test_operator_may_forbid_sessions_that_outlive_the_browser(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        small_house.app.state.context, "settings", Settings(remembered_session_days=0, session_hours=1)
    )
    refused = SignedIn(small_house.ada, remember=True).started
    assert (refused.status_code, "set-cookie" in refused.headers) == (422, False)
    browser = SignedIn(small_house.ada)
    assert browser.works()
    small_house.clock.move(3600)
    assert not browser.works()


def test_session_does_not_outlive_its_key(small_house: House) -> None:
    issued = small_house.carla.post("/v1/principals/ada/keys", {"expires_in_days": 1}).json()
    browser = SignedIn(Person(small_house.client, "ada", issued["key"]), remember=True)
    assert browser.started.json()["expires_at"] == issued["expires_at"]
    small_house.clock.move(86400)
    assert not browser.works()


@pytest.mark.both_databases
def test_revoked_key_ends_its_sessions_and_no_others(house: House) -> None:
    issued = house.carla.post("/v1/principals/ada/keys", {}).json()
    other = SignedIn(house.ada)
    browser = SignedIn(Person(house.client, "ada", issued["key"]))
    assert house.carla.delete(f"/v1/principals/ada/keys/{issued['id']}").status_code == 204
    assert (browser.works(), other.works()) == (False, True)
    assert [each["id"] for each in other.call("GET", "/v1/sessions").json()["items"]] == [
        other.started.json()["id"]
    ]


def test_disabled_person_is_signed_out_everywhere(small_house: House) -> None:
    browser = SignedIn(small_house.ada)
    assert small_house.carla.delete("/v1/principals/ada").status_code == 204
    answer = browser.call("GET", "/v1/whoami")
    assert (answer.status_code, answer.json()["detail"]) == (401, "your session has ended")


def test_sessions_are_listed_and_ended_by_their_owner(house: House) -> None:
    here, elsewhere = SignedIn(house.ada), SignedIn(house.ada)
    listed = here.call("GET", "/v1/sessions").json()["items"]
    assert [each["current"] for each in listed] == [True, False]
    assert here.call("DELETE", f"/v1/sessions/{listed[1]['id']}").status_code == 204
    assert (here.works(), elsewhere.works()) == (True, False)
    assert here.call("DELETE", f"/v1/sessions/{listed[1]['id']}").status_code == 404


def test_signing_out_ends_the_session_and_clears_the_cookie(small_house: House) -> None:
    for origin in (LOOPBACK, HTTPS):
        browser = SignedIn(small_house.ada, origin)
        answer = browser.call("DELETE", "/v1/sessions/current")
        assert answer.status_code == 204
        assert "Max-Age=0" in answer.headers["set-cookie"]
        assert not browser.works()
    assert small_house.ada.delete("/v1/sessions/current").status_code == 404


def test_curator_sees_and_ends_the_sessions_of_the_people_they_manage(small_house: House) -> None:
    browser = SignedIn(small_house.ada)
    found = {each["name"]: each for each in small_house.carla.get("/v1/principals").json()["items"]}
    (listed,) = found["ada"]["sessions"]
    assert (listed["id"], listed["current"]) == (browser.started.json()["id"], False)
    assert small_house.ben.delete(f"/v1/sessions/{listed['id']}").status_code == 404
    assert small_house.carla.delete(f"/v1/sessions/{listed['id']}").status_code == 204
    assert not browser.works()
    event = small_house.carla.get("/v1/audit").json()["items"][0]
    assert (event["action"], event["details"]["principal"]) == ("end-session", "ada")


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "https://cairn.example.evil", "http://cairn.example", "null", None]
)
def test_request_from_another_site_changes_nothing(small_house: House, origin: str | None) -> None:
    browser = SignedIn(small_house.carla, HTTPS)
    body = {"name": "mallory", "role": "curator"}
    answer = browser.call("POST", "/v1/principals", json=body, headers={"Origin": origin})
    assert (answer.status_code, answer.json()["type"]) == (403, "/problems/forbidden")
    assert "mallory" not in small_house.carla.get("/v1/principals").text
    assert browser.call("POST", "/v1/principals", json=body).status_code == 201


def test_request_from_another_site_is_refused_before_its_body_is_read(small_house: House) -> None:
    browser = SignedIn(small_house.carla, HTTPS)
    read: list[bytes] = []

    async def body() -> AsyncIterator[bytes]:
        read.append(b"{}")
        yield b"{}"

    evil = browser.call("POST", "/v1/datasets", content=body(), headers={"Origin": "https://evil.example"})
    assert (evil.status_code, evil.headers["connection"], read) == (403, "close", [])
    assert browser.call("POST", "/v1/datasets", content=body()).status_code == 422
    assert read == [b"{}"]


def test_reading_needs_no_origin_but_refuses_another(small_house: House) -> None:
    browser = SignedIn(small_house.ada, HTTPS)
    assert browser.call("GET", "/v1/datasets", headers={"Origin": None}).status_code == 200
    assert browser.call("GET", "/v1/datasets", headers={"Origin": "https://evil.example"}).status_code == 403


def test_bearer_header_wins_over_a_cookie(small_house: House) -> None:
    browser = SignedIn(small_house.ada)
    key = {"Authorization": f"Bearer {small_house.ben.key}", "Origin": "https://evil.example"}
    assert browser.call("GET", "/v1/whoami", headers=key).json()["name"] == "ben"
    wrong = {"Authorization": "Bearer cairn_00000000_" + "A" * 43}
    assert browser.call("GET", "/v1/whoami", headers=wrong).status_code == 401
    assert browser.call("GET", "/v1/whoami", headers={"Authorization": ""}).status_code == 401


def test_session_cannot_start_another_session(small_house: House) -> None:
    answer = SignedIn(small_house.ada).call("POST", "/v1/sessions", json={})
    assert (answer.status_code, "set-cookie" in answer.headers) == (403, False)


def test_key_is_no_cookie_and_a_cookie_is_no_key(small_house: House) -> None:
    token = SignedIn(small_house.ada).cookie.partition("=")[2]
    assert Person(small_house.client, "ada", token).get("/v1/whoami").status_code == 401
    headers = {"Cookie": f"{PLAIN_NAME}={small_house.ada.key}"}
    assert small_house.client.request("GET", "/v1/whoami", headers=headers).status_code == 401


@pytest.mark.parametrize("value", ["", "x", "cairn_00000000_" + "A" * 43, '"', "cairn_é", "a=b=c"])
def test_altered_cookie_is_refused(small_house: House, value: str) -> None:
    headers = {"Cookie": f"{PLAIN_NAME}={value}".encode()}
    assert small_house.client.request("GET", "/v1/whoami", headers=headers).status_code == 401


def test_oldest_session_ends_when_there_are_too_many(small_house: House) -> None:
    first, second = SignedIn(small_house.ada), SignedIn(small_house.ada)
    for _ in range(49):
        SignedIn(small_house.ada)
    assert (first.works(), second.works()) == (False, True)
    assert len(small_house.ada.get("/v1/sessions").json()["items"]) == 50


def test_key_and_cookie_share_one_allowance(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path, caller_rate=1e-6, caller_burst=3)) as house:
        browser = SignedIn(house.ada)
        while browser.works():
            pass
        assert browser.call("GET", "/v1/whoami").status_code == 429
        assert house.ada.get("/v1/whoami").status_code == 429
        assert house.ben.get("/v1/whoami").status_code == 200


def test_session_of_a_curator_opens_the_metrics(small_house: House) -> None:
    assert SignedIn(small_house.carla).call("GET", "/metrics").status_code == 200
    assert SignedIn(small_house.ada).call("GET", "/metrics").status_code == 403
