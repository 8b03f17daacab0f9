"""Corrections of datasets without periods: other rows, the same account, and versions in what jobs say."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from service.operations.tables import DatasetChunk
from tests.support.service import DOUBTS, House, table

pytestmark = pytest.mark.both_databases

FLOWERS = "/v1/datasets/flowers"


@pytest.fixture
def flowers(house: House) -> House:
    """A sealed dataset that ada may use, whose results appear at once."""
    house.ready(release_ticks=False)
    return house


def correct(house: House, rows: int = 50) -> Any:
    """Upload and seal corrected rows; the answer to the seal."""
    assert house.carla.post(f"{FLOWERS}/correction").status_code == 201
    assert house.check(table(rows)).status_code == 200
    return house.seal()


def stored_rows(house: House) -> int:
    with house.database.read() as session:
        return session.scalar(select(func.sum(DatasetChunk.rows))) or 0


def receipt(house: House, job: str) -> dict[str, Any]:
    found: dict[str, Any] = house.ada.get(f"/v1/jobs/{job}/receipt").json()
    return found


def verified(house: House) -> None:
    assert house.carla.post(f"{FLOWERS}/ledger/verify").json()["faults"] == []


def test_corrected_dataset_has_other_rows_and_the_account_that_it_had(flowers: House) -> None:
    assert flowers.submit("0.7", delta="0").status_code == 202
    assert flowers.work()
    for version, rows in ((2, 50), (3, 60)):
        sealed = correct(flowers, rows)
        assert (sealed.status_code, sealed.json()["version"], sealed.json()["upload"]["rows"]) == (
            200,
            version,
            rows,
        )
        assert stored_rows(flowers) == rows
    assert sealed.json()["budget"]["spent"]["epsilon"] == "0.7"
    assert flowers.submit("0.4", delta="0").json()["type"] == "/problems/budget-exhausted"
    seen = flowers.ada.get(FLOWERS).json()
    assert (seen["version"], seen["upload"], seen["correction"]) == (3, None, None)
    assert seen["corrected_at"] == sealed.json()["corrected_at"]
    job = flowers.submit("0.1", delta="0").json()
    assert (job["version"], job["periods"]) == (3, None)
    assert flowers.work()
    found = receipt(flowers, job["id"])
    assert found["version"] == 3
    assert "The dataset “flowers” (version 3)" in str(found["explanation"])
    assert flowers.carla.get(f"{FLOWERS}/periods").json()["items"] == []
    verified(flowers)
    assert flowers.carla.post(f"{FLOWERS}/retire").status_code == 200
    assert stored_rows(flowers) == 0
    assert flowers.ada.get(FLOWERS).json()["version"] == 3
    verified(flowers)


def test_queued_job_runs_on_the_version_that_is_there_when_it_is_claimed_and_says_so(flowers: House) -> None:
    first = flowers.submit(delta="0").json()
    assert first["version"] == 1
    assert correct(flowers).status_code == 200
    second = flowers.submit(delta="0").json()
    assert correct(flowers, 60).status_code == 200
    assert flowers.work()
    assert flowers.work()
    for job in (first, second):
        assert receipt(flowers, job["id"])["version"] == 3
        assert flowers.ada.get(f"/v1/jobs/{job['id']}").json()["version"] == 3
    verified(flowers)


def test_running_job_ends_on_the_version_that_it_began_with(flowers: House) -> None:
    job = flowers.submit(delta="0").json()
    held = flowers.worker.claim()
    assert held is not None
    refused = correct(flowers).json()
    assert (refused["type"], refused["detail"]) == ("/problems/cannot-seal", "jobs are running on flowers")
    assert stored_rows(flowers) == 250
    assert flowers.worker.carry_out(held)
    assert "version" not in receipt(flowers, job["id"])
    assert flowers.seal().json()["version"] == 2
    verified(flowers)


def test_draft_of_a_correction_changes_nothing_and_can_be_discarded(flowers: House) -> None:
    assert flowers.check(table(50)).json()["type"] == "/problems/already-sealed"
    begun = flowers.carla.post(f"{FLOWERS}/correction").json()
    assert (begun["state"], begun["correction"]) == ("sealed", {"version": 2, "upload": None})
    assert flowers.carla.post(f"{FLOWERS}/correction").json()["correction"] == begun["correction"]
    assert flowers.check(table(50)).json()["rows"] == 50
    for person, shown in ((flowers.carla, 50), (flowers.ada, None)):
        found = person.get(FLOWERS).json()
        assert (found["version"], found["corrected_at"]) == (1, None)
        assert (found["correction"] and found["correction"]["upload"]["rows"]) == shown
    refused = flowers.carla.post(f"{FLOWERS}/seal", {"confirm": []})
    assert refused.json()["doubts"][0]["confirm"] == "size"
    assert flowers.carla.delete(f"{FLOWERS}/data").status_code == 204
    assert flowers.carla.get(FLOWERS).json()["correction"] is None
    assert flowers.carla.delete(f"{FLOWERS}/data").json()["type"] == "/problems/already-sealed"
    job = flowers.submit(delta="0").json()
    assert flowers.work()
    assert (job["version"], receipt(flowers, job["id"]).get("version")) == (1, None)
    assert stored_rows(flowers) == 200
    verified(flowers)


def test_correction_whose_answer_was_lost_is_answered_again(flowers: House) -> None:
    sealed = correct(flowers).json()
    digest = sealed["upload"]["sha256"]
    assert flowers.check(table(50), sha256=digest).json()["sha256"] == digest
    again = flowers.carla.post(f"{FLOWERS}/seal", {"confirm": list(DOUBTS), "sha256": digest})
    assert (again.status_code, again.json()["version"]) == (200, 2)


def test_whole_of_a_dataset_with_periods_is_not_corrected(house: House) -> None:
    assert house.create(unit="record").status_code == 201
    assert house.carla.post(f"{FLOWERS}/correction").json()["type"] == "/problems/not-sealed"
    assert house.carla.post(f"{FLOWERS}/periods", {"label": "2026-01"}).status_code == 201
    assert house.carla.call("PUT", f"{FLOWERS}/periods/2026-01/data", content=table(40)).status_code == 200
    sealed = house.carla.post(f"{FLOWERS}/periods/2026-01/seal", {"confirm": list(DOUBTS)})
    assert sealed.status_code == 200
    refused = house.carla.post(f"{FLOWERS}/correction").json()
    assert (refused["detail"], refused["next"]) == ("flowers has periods", "Correct one of them.")
    assert house.carla.get(FLOWERS).json()["version"] is None
