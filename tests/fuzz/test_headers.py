"""Security headers on every answer, whatever was asked and however it went."""

from __future__ import annotations

from typing import Any

import pytest

from assurance.fuzz.judge import HEADERS
from service import console
from service.app import create_app
from tests.support.service import Browser, House, answer_to_a_mistake

REQUESTS = [
    ("GET", "/", 200),
    ("GET", "/console/main.js", 200),
    ("GET", "/console/nothing.js", 404),
    ("GET", "/docs", 200),
    ("GET", "/docs/style.css", 200),
    ("GET", "/openapi.json", 200),
    ("GET", "/healthz", 200),
    ("GET", "/readyz", 200),
    ("GET", "/.well-known/cairn-keys.json", 200),
    ("GET", "/metrics", 401),
    ("GET", "/problems/not-found", 200),
    ("GET", "/v1/datasets", 401),
    ("PATCH", "/readyz", 405),
    ("GET", "/nothing", 404),
    ("POST", "/v1/jobs", 401),
]


@pytest.fixture(scope="module")
def browser(shared_house: House) -> Any:
    """The service with its console."""
    app = create_app(
        shared_house.settings,
        database=shared_house.database,
        clock=shared_house.clock,
        extra_routers=[console.router],
    )
    made = Browser(app)
    yield made
    made.close()


def check(headers: Any) -> None:
    assert {name: headers.get(name) for name in HEADERS} == HEADERS
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert len(headers["x-request-id"]) == 32
    assert "server" not in headers


@pytest.mark.parametrize(("verb", "path", "status"), REQUESTS)
def test_answer_carries_the_headers(browser: Browser, verb: str, path: str, status: int) -> None:
    answer = browser.request(verb, path)
    assert answer.status_code == status
    check(answer.headers)


def test_refusals_and_files_carry_the_headers(shared_house: House) -> None:
    for answer in (
        shared_house.carla.get("/v1/datasets/flowers/ledger", headers={"Accept": "text/csv"}),
        shared_house.ada.post("/v1/jobs", {"k": True}),
        shared_house.carla.call("POST", "/v1/datasets", content=b"x" * (2 << 20)),
        shared_house.ada.get("/v1/audit"),
    ):
        check(answer.headers)


def test_mistake_of_the_service_carries_the_headers(
    shared_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_to_a_mistake(shared_house, monkeypatch)
    assert answer.status_code == 500
    check(answer.headers)


def test_answers_over_tls_ask_to_stay_there(shared_house: House) -> None:
    answer = shared_house.client.request("GET", "https://test/healthz")
    assert answer.headers["strict-transport-security"] == "max-age=31536000"


def test_nobody_elses_page_may_read_the_answers(shared_house: House) -> None:
    answer = shared_house.client.request(
        "GET", "/v1/algorithms", headers={"Origin": "https://elsewhere.example"}
    )
    assert not [name for name in answer.headers if name.startswith("access-control-")]
