"""Bodies are read for known callers alone, and every caller gets a share of the service."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from starlette.routing import Match

from service.errors import InvalidRequest, RateLimited
from service.http import json_limits
from service.http.admission import Allowances, price_of_list
from service.http.context import Context
from service.http.json_limits import strict_json
from service.http.pacing import Pacing, PacingByAddress
from service.http.route_limits import LimitsOfRoutes
from service.operations.settings import KIB, Settings
from service.people.access_events import AccessEvents
from tests.support.service import House

PLAN = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1"}


def body_that_counts(read: list[int]) -> AsyncIterator[bytes]:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            read.append(1)
            yield b"[" * 16384

    return pieces()


@pytest.mark.parametrize("header", [None, "Bearer cairn_00000000_wrong", "Basic YTpi", "Bearer"])
@pytest.mark.parametrize("path", ["/v1/jobs", "/v1/plans", "/v1/datasets", "/v1/nothing"])
def test_no_body_is_read_for_an_unknown_caller(shared_house: House, header: str | None, path: str) -> None:
    read: list[int] = []
    headers = {"Authorization": header} if header else {}
    answer = shared_house.client.request("POST", path, content=body_that_counts(read), headers=headers)
    assert (answer.status_code, answer.json()["type"]) == (401, "/problems/unauthorized")
    assert read == []


def test_no_body_is_read_where_no_route_takes_one(shared_house: House) -> None:
    read: list[int] = []
    assert shared_house.client.request("POST", "/nothing", content=body_that_counts(read)).status_code == 404
    assert read == []


@pytest.mark.parametrize("path", ["/v1/plans", "/v1/jobs"])
def test_plan_longer_than_its_sites_may_be_is_refused_unread(shared_house: House, path: str) -> None:
    read: list[int] = []
    headers = {"Authorization": f"Bearer {shared_house.ada.key}", "Content-Length": str(321 << 10)}
    answer = shared_house.client.request("POST", path, content=body_that_counts(read), headers=headers)
    assert (answer.status_code, answer.json()["limit"]) == (413, 320 << 10)
    assert read == []


def test_two_contradicting_lengths_of_a_body_are_refused(shared_house: House) -> None:
    """A proxy may believe the one and the service the other."""
    headers = {"Content-Length": "2", "Transfer-Encoding": "chunked"}
    answer = shared_house.ada.call("POST", "/v1/plans", content=b"{}", headers=headers)
    assert answer.status_code == 400
    assert "contradict each other" in answer.json()["detail"]


def test_every_route_that_takes_a_body_has_room_for_one(shared_house: House) -> None:
    settings = shared_house.settings
    expecting = {
        (verb.upper(), re.sub(r"{[a-z_]+}", "x", path))
        for path, verbs in shared_house.app.openapi()["paths"].items()
        for verb, call in verbs.items()
        if isinstance(call, dict) and "requestBody" in call
    }
    assert {("PATCH", "/v1/datasets/x"), ("PUT", "/v1/datasets/x/data")} <= expecting
    limits_of = LimitsOfRoutes(shared_house.app.routes)
    small = {each for each in expecting if limits_of(scope(*each)).longest_body(settings) < 320 << 10}
    assert small == set()


@pytest.mark.parametrize("width", [12, 300])
def test_a_draft_with_many_columns_can_be_edited(shared_house: House, width: int) -> None:
    table = [{"name": f"column {i}", "kind": "number", "low": 0, "high": 100} for i in range(width)]
    name = f"wide-{width}"
    body = {"name": name, "table": table, "size": 60, "budget": {"epsilon": "1"}}
    assert shared_house.carla.call("POST", "/v1/datasets", json=body).status_code == 201
    table[-1]["high"] = 120
    edited = shared_house.carla.call("PATCH", f"/v1/datasets/{name}", json={"table": table})
    assert edited.status_code == 200, edited.text
    assert edited.json()["table"][-1]["high"] == 120


def scope(verb: str = "GET", path: str = "/v1/jobs") -> dict[str, Any]:
    return {"type": "http", "method": verb, "path": path}


def allowances(now: Callable[[], float] = lambda: 0.0, **settings: Any) -> Allowances:
    return Allowances(Settings(**settings), now)


def test_allowance_refills_with_time_and_is_one_callers_own() -> None:
    moment = 0.0
    shares = allowances(lambda: moment, caller_rate=10, caller_burst=40)
    for _ in range(3):
        shares.enter(1, 20)
        shares.leave(1, 0)
    with pytest.raises(RateLimited) as refused:
        shares.enter(1, 1)
    assert refused.value.headers["Retry-After"] == "3"
    shares.enter(2, 20)
    moment = 2.5
    shares.enter(1, 1)


def test_bytes_are_paid_for_after_they_were_sent() -> None:
    shares = allowances(caller_rate=10, caller_burst=40)
    shares.enter(1, 1)
    shares.leave(1, 208)
    with pytest.raises(RateLimited) as refused:
        shares.enter(1, 1)
    assert int(refused.value.headers["Retry-After"]) == 17  # 208 less 39 that were left


def test_list_is_paid_for_by_its_entries() -> None:
    assert price_of_list({**scope(), "query_string": b"dataset=flowers&limit=500"}) == 100
    assert price_of_list({**scope(), "query_string": b"search=rare&limit=5"}) == 51
    assert price_of_list({**scope(), "query_string": b"search="}) == 0
    assert price_of_list({**scope(), "query_string": b""}) == 0


@pytest.mark.parametrize(
    ("verb", "path", "price", "bytes_price"),
    [
        ("GET", "/v1/jobs", 1, 30),
        ("GET", "/v1/datasets/flowers/ledger", 1, 10 + 4 * 20),
        ("POST", "/v1/plans", 20, 8 * 10 + 20),
        ("POST", "/v1/jobs", 20, 8 * 10 + 20),
        ("PUT", "/v1/datasets/flowers/data", 1, 20),
        ("POST", "/v1/previews", 1, 20),
        ("POST", "/v1/nothing", 1, 30),
    ],
)
def test_requests_and_bytes_are_priced_by_what_their_route_declares(
    shared_house: House, verb: str, path: str, price: float, bytes_price: float
) -> None:
    limits = LimitsOfRoutes(shared_house.app.routes)(scope(verb, path))
    assert limits.price == price
    assert limits.price_of_bytes(10 * 64 * KIB, 20 * 64 * KIB) == bytes_price


def test_limits_of_a_request_are_those_of_the_route_that_answers_it(shared_house: House) -> None:
    routes = [route for route in shared_house.app.routes if isinstance(route, APIRoute)]
    limits_of = LimitsOfRoutes(shared_house.app.routes)
    for route in routes:
        for verb in route.methods or ():
            request = scope(verb, re.sub(r"{[a-z_]+}", "x", route.path))
            answering = next(each for each in routes if each.matches(request)[0] is Match.FULL)
            declared = getattr(answering.endpoint, "limits", limits_of(scope(verb, "/v1/nothing")))
            assert limits_of(request) == declared


def test_refusals_in_quick_succession_wait_for_their_turn() -> None:
    moment = 0.0
    pacing = Pacing(clock=lambda: moment)
    assert [round(pacing.wait(), 2) for _ in range(3)] == [0.0, 0.05, 0.1]
    assert max(pacing.wait() for _ in range(1000)) == 5.0
    moment = 60.0
    assert pacing.wait() == 0.0


def test_requests_without_a_key_wait_by_address_and_all_together() -> None:
    """One address uses a quarter of what all may have; others are not delayed by it, but by many."""
    pacing = PacingByAddress(100.0, saved=1.0, longest_seconds=2.0)

    def longest(*addresses: str, requests: int = 300) -> float:
        return max(pacing.wait({"client": (each, 1)}) for each in addresses for _ in range(requests))

    assert longest("10.0.0.1") > 1.5
    assert longest("10.0.0.2", requests=50) == 0
    assert longest("2001:db8::1", "2001:db8::2", requests=140) > 1.5  # one site
    crowd = [f"10.1.0.{place}" for place in range(1, 9)]
    assert longest(*crowd, requests=100) > 1
    assert longest("10.0.0.3", requests=1) > 0


def test_only_requests_to_addresses_without_a_key_wait_for_their_turn(
    shared_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[str] = []

    def note(_pacing: PacingByAddress, scope: Any) -> float:
        waited.append(scope["path"])
        return 0.0

    monkeypatch.setattr(PacingByAddress, "wait", note)
    for path in ("/healthz", "/readyz", "/docs", "/v1/datasets"):
        assert shared_house.ada.get(path).status_code == 200
    assert waited == ["/healthz", "/readyz", "/docs"]
    assert shared_house.client.request("GET", "/v1/datasets").status_code == 401
    assert waited[-1] == "/v1/datasets"


def test_one_callers_refusals_do_not_delay_anothers() -> None:
    shares = allowances(caller_rate=1, caller_burst=0.5)
    for caller in (1, 2):
        shares.enter(caller, 1)
    assert [shares.pause(1) for _ in range(10)][-1] > 0
    assert shares.pause(2) == 0


def test_caller_with_many_requests_at_once_is_refused_one_more() -> None:
    shares = allowances(caller_requests_at_once=2)
    shares.enter(1, 1)
    shares.enter(1, 1)
    with pytest.raises(RateLimited, match="at most 2 requests at once"):
        shares.enter(1, 1)
    shares.enter(2, 1)
    shares.leave(1, 0)
    shares.enter(1, 1)


def test_refused_plans_use_the_allowance_too(sqlite_url: str, tmp_path: Path) -> None:
    house = House(sqlite_url, tmp_path, caller_rate=0.001, caller_burst=50)
    house.ready()
    bad = {**PLAN, "epsilon": "-1"}
    assert [house.ada.post("/v1/plans", bad).status_code for _ in range(4)] == [422, 422, 422, 429]
    assert house.ben.get("/v1/datasets").status_code == 200
    house.close()


def test_downloads_use_the_allowance_and_uploads_do_not(sqlite_url: str, tmp_path: Path) -> None:
    house = House(sqlite_url, tmp_path, caller_rate=0.001, caller_burst=20)
    house.ready(rows=20_000)
    assert house.carla.get("/v1/datasets").status_code == 200
    house.close()


@pytest.mark.parametrize("text", ["[" + "0," * 100_000 + "0]", "[" * 100_001, "[[]" + ",[]" * 50_000 + "]"])
def test_json_of_too_many_values_is_refused_unparsed(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_limits, "from_json", lambda *_, **__: pytest.fail("parsed"))
    with pytest.raises(Exception, match="at most 32 levels and 100000 values"):
        strict_json(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "a": 2}',
        '{"a": 1, "b": {"c": ":", "c": 2}}',
        '[{"\\u0061": 1, "a": 2}]',
        "[NaN]",
        "[-Infinity]",
        "[1e999]",
        '"\\ud800"',
        '{"\\u0000": 1}',
        "[" * 34 + "]" * 34,
        "[" * 5000 + "]" * 5000,
    ],
)
def test_json_that_the_parser_would_accept_or_choke_on_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="no key twice"):
        strict_json(text.encode())


@pytest.mark.parametrize(
    "value",
    [
        {"a": {"a": 1}, "b": [{"a": ":"}, {"a": '":"'}]},
        {"a:b": 'c\\"d: e', "f": "\\"},
        [1, 2.5, None, True, "\U0001f600", -(10**30)],
        json.loads("[" * 32 + "]" * 32),
    ],
)
def test_json_within_the_limits_is_read_as_it_is(value: Any) -> None:
    assert strict_json(json.dumps(value).encode()) == value


def test_slow_reader_is_dropped(shared_house: House) -> None:
    """A caller who asks and then does not read keeps a connection no longer than the pace allows."""
    from service.http.limits import RequestLimits

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"x" * 1000})

    async def stuck(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    settings = Settings(body_idle_seconds=0.05, body_bytes_per_second=1e6)
    limits = RequestLimits(
        app,
        settings,
        lambda _: pytest.fail("no key is needed"),
        LimitsOfRoutes([]),
        AccessEvents(Context(settings, shared_house.database)),
    )
    request = {"type": "http", "method": "GET", "path": "/healthz", "headers": [], "query_string": b""}
    asyncio.run(asyncio.wait_for(limits(request, receive, stuck), 10))
