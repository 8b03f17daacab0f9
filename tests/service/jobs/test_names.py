"""Names of jobs and notes about them."""

from __future__ import annotations

import pytest

from service.jobs import filters
from service.operations.clock import rfc3339
from tests.support.service import House


def named(house: House, job: str, **texts: str) -> dict[str, object]:
    answer = house.ada.put(f"/v1/jobs/{job}/note", texts)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_name_and_note_are_changed_one_without_the_other(house: House) -> None:
    house.ready()
    job = house.submit().json()
    assert (job["name"], job["note"]) == ("", "")
    named(house, job["id"], name="baseline", note="before the reform\nfirst try")
    assert named(house, job["id"], name=" second ")["note"] == "before the reform\nfirst try"
    shown = house.carla.get(f"/v1/jobs/{job['id']}").json()
    assert (shown["name"], shown["note"]) == ("second", "before the reform\nfirst try")
    assert named(house, job["id"], note="")["note"] == ""


def test_only_the_analyst_who_submitted_a_job_names_it(small_house: House) -> None:
    small_house.ready()
    small_house.grant("ben")
    job = small_house.submit().json()["id"]
    body = {"name": "mine"}
    assert small_house.ben.put(f"/v1/jobs/{job}/note", body).status_code == 404
    assert small_house.carla.put(f"/v1/jobs/{job}/note", body).status_code == 403
    assert small_house.ada.get(f"/v1/jobs/{job}").json()["name"] == ""


@pytest.mark.parametrize(
    "body",
    [{"name": "x" * 81}, {"name": "two\nlines"}, {"note": "x" * 2001}, {"note": "\x00"}, {"other": ""}],
)
def test_texts_that_are_too_long_or_odd_are_refused(small_house: House, body: dict[str, str]) -> None:
    small_house.ready()
    job = small_house.submit().json()["id"]
    assert small_house.ada.put(f"/v1/jobs/{job}/note", body).status_code == 422


@pytest.mark.both_databases
def test_jobs_are_found_by_a_part_of_their_name_or_note(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    house.ready()
    first, second = (house.submit(rehearsal=True).json()["id"] for _ in range(2))
    house.clock.move(1)
    moment = rfc3339(house.clock.now())
    house.submit(rehearsal=True)
    named(house, first, name="100% Baseline")
    named(house, second, note="like the baseline, with k = 2")
    found = {
        text: [each["id"] for each in house.ada.get("/v1/jobs", params={"search": text}).json()["items"]]
        for text in ("BASELINE", "100%", "%", "_", "nothing")
    }
    assert found == {"BASELINE": [second, first], "100%": [first], "%": [first], "_": [], "nothing": []}
    monkeypatch.setattr(filters, "MOST_SEARCHED", 2)  # the newest two, or the newest two until a moment
    for query, ids in (({}, [second]), ({"until": moment}, [second, first])):
        listed = house.ada.get("/v1/jobs", params={"search": "baseline", **query}).json()["items"]
        assert [each["id"] for each in listed] == ids
    # PostgreSQL has no text with this character.
    assert house.ada.get("/v1/jobs", params={"search": "a\0b"}).status_code == 422


def test_name_is_no_part_of_the_request_its_quote_or_its_identity(small_house: House) -> None:
    small_house.ready()
    request = {"dataset": "flowers", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0.0000001"}
    quote = small_house.ada.post("/v1/plans", request).json()["quote"]
    job = small_house.submit(key="once", delta="0.0000001").json()
    after = named(small_house, job["id"], name="renamed")
    assert after["request"] == job["request"]
    assert small_house.ada.post("/v1/plans", request).json()["quote"] == quote
    again = small_house.submit(key="once", delta="0.0000001")
    assert (again.json()["id"], again.headers["idempotency-replayed"]) == (job["id"], "true")
    assert small_house.ada.post("/v1/jobs", {**request, "name": "x"}).status_code == 422
