"""Limits of a request: its head, the size and the speed of its body, how much is asked for at a time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from service.errors import InvalidRequest
from service.http.limits import Pace
from service.operations.settings import Settings
from tests.support.service import House


def test_upload_that_says_it_is_json_is_refused_unread(small_house: House) -> None:
    small_house.create()
    answer = small_house.upload(b'{"a": ' * 1000, kind="application/json")
    assert (answer.status_code, answer.json()["type"]) == (415, "/problems/bad-format")


@pytest.mark.parametrize("where", ["path", "query", "headers"])
def test_head_longer_than_the_limit_is_refused(shared_house: House, where: str) -> None:
    long = "x" * (17 << 10)
    answer = shared_house.client.request(
        "GET",
        f"/{long}" if where == "path" else "/healthz",
        params={"q": long} if where == "query" else {},
        headers={"X-Long": long} if where == "headers" else {},
    )
    assert (answer.status_code, answer.json()["type"]) == (431, "/problems/invalid-request")


@pytest.mark.parametrize(
    ("verb", "path"),
    [("POST", "/v1/jobs"), ("POST", "/v1/datasets"), ("POST", "/v1/nothing"), ("GET", "/v1/datasets")],
)
def test_body_without_announced_length_is_read_up_to_the_limit_only(
    shared_house: House, verb: str, path: str
) -> None:
    read = 0

    async def endless() -> Any:
        nonlocal read
        while True:
            read += 1 << 16
            yield b" " * (1 << 16)

    answer = shared_house.ada.call(verb, path, content=endless())
    assert answer.status_code == 413
    assert read <= (1 << 20) + (1 << 18)


def pieces(sizes: list[int]) -> Any:
    """A caller whose next piece is always there at once."""

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * sizes.pop(0), "more_body": True}

    return receive


def test_pace_is_lost_by_pausing_and_by_dripping(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr("service.http.limits.time.monotonic", lambda: now)
    pace = Pace(Settings(body_idle_seconds=10, body_bytes_per_second=100))

    async def never() -> Any:
        await asyncio.Event().wait()

    async def take(sizes: list[int]) -> None:
        await pace.next(pieces(sizes))

    asyncio.run(take([1000]))
    now = 19.9  # ten seconds of patience, and ten for the thousand bytes
    asyncio.run(take([1]))
    now = 20.1
    with pytest.raises(InvalidRequest) as refused:
        asyncio.run(pace.next(never))
    assert refused.value.answer_status == 408
