"""Grants with a purpose, a permit and an end: what they say, and that nothing goes on after the end."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from service.jobs.ended_grants import withdraw_jobs
from service.operations.clock import rfc3339
from tests.support.service import START, House

CAP = {"epsilon": "1", "delta": "0.000001"}


def permit(house: House, hours: float = 1, **changes: Any) -> Any:
    """Let ada use flowers for some hours from the start."""
    ends = rfc3339(START + timedelta(hours=hours))
    terms = {"purpose": "frailty", "permit": "2030/17", "ends_at": ends, **changes}
    return house.carla.put("/v1/datasets/flowers/grants/ada", {**CAP, **terms})


def reserved(house: House) -> str:
    found = house.carla.get("/v1/datasets/flowers").json()["budget"]["reserved"]["epsilon"]
    return str(found)


def test_purpose_and_permit_are_in_facts_receipt_ledger_and_audit_log(house: House) -> None:
    house.ready()
    made = permit(house)
    assert (made.status_code, made.json()["permit"]) == (200, "2030/17"), made.text
    assert house.ada.get("/v1/datasets/flowers").json()["grant"]["purpose"] == "frailty"
    job = house.submit().json()["id"]
    assert house.work()
    house.clock.move(600)
    receipt = house.ada.get(f"/v1/jobs/{job}/receipt").json()
    assert receipt["grant"]["permit"] == "2030/17"
    table = house.carla.get("/v1/datasets/flowers/ledger", headers={"Accept": "text/csv"}).text
    assert "purpose,permit" in table.splitlines()[0]
    assert ",frailty,2030/17," in table.splitlines()[-1]
    words = house.carla.get("/v1/audit?dataset=flowers").json()["items"][0]["words"]
    assert "by permit 2030/17, until 2030-01-01T10:00:00" in words


def test_grant_that_has_ended_is_as_if_withdrawn(house: House) -> None:
    house.ready()
    assert permit(house).status_code == 200
    house.clock.move(3600 - 1)
    assert house.submit().status_code == 202
    house.clock.move(1)
    for refused in (house.submit(), house.ada.get("/v1/datasets/flowers")):
        assert refused.status_code == 404
    assert house.ada.get("/v1/datasets").json()["items"] == []


@pytest.mark.both_databases
def test_queued_jobs_of_an_ended_grant_are_void_without_a_worker(house: House) -> None:
    house.ready()
    assert permit(house).status_code == 200
    job = house.submit().json()["id"]
    assert house.submit(rehearsal=True).status_code == 202
    own = house.submit(who=house.carla, delta="0").json()["id"]
    house.clock.move(3600 - 1)
    assert withdraw_jobs(house.database, house.clock.now()) == 0
    house.clock.move(1)
    assert withdraw_jobs(house.database, house.clock.now()) == 2
    assert house.carla.get(f"/v1/jobs/{job}").json()["state"] == "cancelled"
    assert house.carla.get(f"/v1/jobs/{own}").json()["state"] == "queued"
    assert reserved(house) == "0.1"
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_queued_job_is_void_at_the_end_of_its_grant(house: House) -> None:
    house.ready()
    assert permit(house).status_code == 200
    job = house.submit().json()["id"]
    house.clock.move(3600)
    assert not house.work()
    assert house.carla.get(f"/v1/jobs/{job}").json()["state"] == "cancelled"
    assert reserved(house) == "0"


def test_job_that_was_claimed_before_the_end_is_finished_and_charged_once(house: House) -> None:
    house.ready()
    assert permit(house).status_code == 200
    job = house.submit().json()["id"]
    claim = house.worker.claim()
    assert claim is not None
    house.clock.move(3600)
    assert house.worker.carry_out(claim)
    house.clock.move(600)
    assert house.ada.get(f"/v1/jobs/{job}").json()["state"] == "succeeded"
    assert house.ada.get(f"/v1/jobs/{job}/result").status_code == 200
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def test_results_can_end_with_the_grant_but_not_receipts(house: House) -> None:
    house.ready()
    assert permit(house, keeps_results=False).status_code == 200
    job = house.submit().json()["id"]
    assert house.work()
    house.clock.move(600)
    assert house.ada.get(f"/v1/jobs/{job}/result").status_code == 200
    house.clock.move(3000)
    for part, status in (("result", 404), ("transcript", 404), ("receipt", 200)):
        assert house.ada.get(f"/v1/jobs/{job}/{part}").status_code == status, part
    assert house.carla.get(f"/v1/jobs/{job}/result").status_code == 200


def test_terms_that_are_left_out_stay_and_an_end_can_be_taken_away(small_house: House) -> None:
    small_house.ready()
    assert permit(small_house).status_code == 200
    kept = small_house.carla.put("/v1/datasets/flowers/grants/ada", CAP).json()
    assert (kept["permit"], kept["ends_at"]) == ("2030/17", "2030-01-01T10:00:00.000Z")
    assert permit(small_house, ends_at=None).json()["ends_at"] is None


def test_end_must_be_a_moment_to_come(small_house: House) -> None:
    small_house.ready()
    for ends in (rfc3339(START), "2030-06-01T00:00:00", "tomorrow", 7):
        assert permit(small_house, ends_at=ends).status_code == 422, ends
    assert small_house.ada.get("/v1/datasets/flowers").status_code == 200
