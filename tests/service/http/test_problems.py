"""Every problem has a page, a place in the tests and one shape; no answer shows what it must not."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from core.algorithms import registry
from core.errors import EpsilonTooSmall
from service.errors import PROBLEMS, ServiceError
from service.http.json_limits import StrictRoute
from service.operations.logs import redact
from tests.support.service import House, answer_to_a_mistake

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("slug", PROBLEMS)
def test_problem_has_a_page(slug: str) -> None:
    page = (ROOT / "docs" / "problems" / f"{slug}.md").read_text()
    assert f"/problems/{slug}" in page
    assert f"status {PROBLEMS[slug].status}" in page
    assert "## What to do" in page


@pytest.mark.parametrize("slug", PROBLEMS)
def test_problem_is_provoked_by_a_test(slug: str) -> None:
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "service").rglob("test_*.py"))
    assert f"/problems/{slug}" in tests or f'"{slug}")' in tests


@pytest.mark.parametrize("problem", PROBLEMS.values())
def test_problem_says_what_to_do_in_sentences(problem: type[ServiceError]) -> None:
    step = problem("wrong").body()["next"]
    assert step[0].isupper()
    assert step.endswith(".")


@pytest.mark.parametrize("slug", PROBLEMS)
def test_running_service_explains_the_problem(shared_house: House, slug: str) -> None:
    page = shared_house.client.request("GET", f"/problems/{slug}")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert PROBLEMS[slug].title in page.text


def test_unknown_address_and_method_are_problems_too(shared_house: House) -> None:
    for verb, path, status in [
        ("GET", "/v2", 404),
        ("PATCH", "/v1/datasets", 405),
        ("GET", "/problems/x", 404),
    ]:
        answer = shared_house.ada.call(verb, path)
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")


def test_epsilon_too_small_is_its_own_problem(shared_house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> Any:
        raise EpsilonTooSmall("epsilon is too small for this algorithm", parameter="epsilon")

    monkeypatch.setattr(registry, "plan", refuse)
    answer = shared_house.submit("0.0123457")  # that nobody asked for before: plans are remembered
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/epsilon-too-small")
    assert answer.json()["errors"][0]["where"] == "epsilon"


def test_body_too_large_is_refused(shared_house: House) -> None:
    answer = shared_house.carla.call("POST", "/v1/datasets", content=b"x" * (2 << 20))
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")


def test_database_that_is_away_is_a_problem_with_a_time_to_retry(
    shared_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> Any:
        raise OperationalError("SELECT secret FROM rows", {}, Exception("row 17 is 3.14"))

    monkeypatch.setattr(shared_house.database, "read", fail)
    answer = shared_house.ada.get("/v1/datasets")
    assert (answer.status_code, answer.json()["type"]) == (503, "/problems/unavailable")
    assert answer.headers["retry-after"]
    assert "secret" not in answer.text
    assert "3.14" not in answer.text


def test_mistake_in_the_service_shows_no_traceback(
    shared_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = answer_to_a_mistake(shared_house, monkeypatch)
    assert (answer.status_code, answer.json()["type"]) == (500, "/problems/unavailable")
    for word in ("Traceback", "KeyError", "a value from a row", "service/"):
        assert word not in answer.text


def test_service_is_not_ready_before_its_migrations(small_house: House) -> None:
    assert small_house.client.request("GET", "/readyz").text == "ok\n"
    with small_house.database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0001'"))
    assert small_house.client.request("GET", "/readyz").json()["type"] == "/problems/unavailable"
    assert small_house.client.request("GET", "/healthz").text == "ok\n"


def test_service_stays_ready_while_a_newer_version_has_migrated(small_house: House) -> None:
    with small_house.database.engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = 'of a newer version'"))
    assert small_house.client.request("GET", "/readyz").text == "ok\n"


def test_service_is_not_ready_where_uploads_cannot_be_written(sqlite_url: str, tmp_path: Path) -> None:
    with closing(House(sqlite_url, tmp_path, spool_directory=tmp_path / "gone")) as house:
        answer = house.client.request("GET", "/readyz")
        assert answer.status_code == 503
        assert str(tmp_path / "gone") in answer.json()["detail"]


def test_metrics_are_for_curators_and_the_scraper(sqlite_url: str, tmp_path: Path) -> None:
    token = "t" * 32
    house = House(sqlite_url, tmp_path, metrics_token=token)
    house.ready()
    house.submit()
    scraped = house.client.request("GET", "/metrics", headers={"Authorization": f"Bearer {token}"})
    assert 'cairn_jobs{state="queued"} 1.0' in scraped.text
    assert house.carla.get("/metrics").status_code == 200
    assert house.ada.get("/metrics").json()["type"] == "/problems/forbidden"
    assert house.client.request("GET", "/metrics").status_code == 401
    house.close()


def test_every_answer_has_security_headers(shared_house: House) -> None:
    for path in ("/docs", "/v1/datasets", "/nothing", "/openapi.json"):
        headers = shared_house.ada.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer"
        known = path in ("/docs", "/openapi.json")  # browsers may keep these, and ask whether they changed
        assert headers["cache-control"] == ("no-cache" if known else "no-store")


def test_keys_are_blotted_out_of_log_lines(shared_house: House) -> None:
    line = redact(f"Authorization: Bearer {shared_house.ada.key} and {shared_house.carla.key}")
    assert shared_house.ada.key[15:] not in line
    assert shared_house.carla.key[15:] not in line


def test_validation_errors_do_not_repeat_what_was_sent(shared_house: House) -> None:
    answer = shared_house.ada.post("/v1/jobs", {"dataset": "flowers", "k": "a-secret", "epsilon": "1"})
    assert "a-secret" not in answer.text
    assert answer.json()["errors"] == [{"where": "k", "problem": "must be a whole number"}]


@pytest.mark.parametrize(
    ("change", "detail"),
    [
        ({"k": 0}, "k must be at least 1"),
        ({"k": 10_001}, "k must be at most 10000"),
        ({"k": 2.5}, "k must be a whole number"),
        ({"k": {"from": 1}}, "k.to must be given"),
        ({"epsilon": None}, "epsilon must be a number, best written as a string"),
        ({"epsilom": "1"}, "epsilom must be left out: there is no such field"),
        ({"objective": "modes"}, "objective must be 'means' or 'medians'"),
        ({"rehearsal": "yes"}, "rehearsal must be true or false"),
        ({"columns": "age"}, "columns must be a list"),
    ],
)
def test_wrong_fields_are_named_as_they_were_sent_and_explained_in_words(
    shared_house: House, change: dict[str, Any], detail: str
) -> None:
    body = {"dataset": "flowers", "k": 3, "epsilon": "1", **change}
    answer = shared_house.ada.post("/v1/plans", body).json()
    assert answer["detail"] == detail
    assert answer["errors"] == [dict(zip(("where", "problem"), detail.split(" ", 1), strict=True))]


def test_value_that_fits_no_branch_of_a_union_is_one_problem(shared_house: House) -> None:
    body = {"name": "x", "columns": ["a"], "size": 10, "budget": {"epsilon": "1"}}
    answer = shared_house.carla.post("/v1/datasets", {**body, "bounds": {"box": {"low": "0", "high": 1}}})
    assert answer.json()["errors"] == [{"where": "bounds.box.low", "problem": "must be a number or a list"}]


def test_body_without_the_content_type_of_json_is_told_so(shared_house: House) -> None:
    headers = {"Authorization": f"Bearer {shared_house.ada.key}", "Content-Type": "text/plain"}
    answer = shared_house.client.request("POST", "/v1/plans", content=b'{"k": 3}', headers=headers)
    assert answer.json()["detail"] == "body must be an object, sent with `Content-Type: application/json`"


@pytest.mark.parametrize(
    ("path", "detail"),
    [
        ("/v1/jobs?colour=foo", "there is no query parameter 'colour'; this call takes "),
        ("/v1/jobs?limit=1&after=abc", "there is no query parameter 'after'; this call takes "),
        ("/v1/whoami?verbose=1", "there is no query parameter 'verbose'; this call takes none"),
    ],
)
def test_unknown_query_parameter_is_refused_with_those_that_exist(
    shared_house: House, path: str, detail: str
) -> None:
    answer = shared_house.ada.get(path)
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/invalid-request")
    assert answer.json()["detail"].startswith(detail)
    assert answer.json()["errors"][0]["where"].startswith("query.")


def test_refused_query_parameter_names_those_of_paging_too(shared_house: House) -> None:
    detail = shared_house.ada.get("/v1/jobs?colour=foo").json()["detail"]
    for name in ("dataset", "search", "limit", "cursor"):
        assert name in detail.partition("takes ")[2].split(", ")


def test_every_route_of_the_api_refuses_unknown_query_parameters(shared_house: House) -> None:
    routes = [(str(getattr(each, "path", "")), each) for each in shared_house.app.routes]
    calls = [(path, each) for path, each in routes if path.startswith("/v1/")]
    assert len(calls) > 20
    assert [path for path, each in calls if not isinstance(each, StrictRoute)] == []
