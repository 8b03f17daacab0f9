"""Who read what: events of readings, sign-ins and refusals, in batches, for owner, auditor and operator."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import SQLAlchemyError

from service import maintenance
from service.operations import audit_batches
from service.operations.audit_batches import REFUSALS_A_MINUTE
from service.operations.states import Role
from service.people import keys, principals
from tests.support.service import House, Person, table

RESULT = "/v1/jobs/latest/result"


def written(house: House) -> None:
    house.app.state.context.audit_batches.write()


def accesses(house: House, who: Person | None = None, **filters: Any) -> list[dict[str, Any]]:
    """What the curator, or somebody else, sees of the record of access, oldest first."""
    written(house)
    page = (who or house.carla).get("/v1/audit", params={"record": "access", "limit": 500, **filters})
    assert page.status_code == 200, page.text
    return list(reversed(page.json()["items"]))


def words(house: House, actor: str) -> list[str]:
    return [each["words"] for each in accesses(house, dataset="flowers", actor=actor)]


def first_key(house: House, name: str, role: str) -> str:
    with house.database.write() as session:
        principal = principals.create(session, name, Role(role), by=None, at=house.clock.now())
        return keys.issue(session, principal, by="operator", at=house.clock.now()).text


@pytest.fixture
def used(house: House) -> House:
    """A dataset with a job of ada's that left k open and has ended."""
    assert house.create(budget={"epsilon": "100", "delta": "0.01"}).status_code == 201
    house.upload(table(200))
    house.grant("ada", "flowers", "100", "0.01")
    house.submit("2", k={"from": 1, "to": 6}, algorithm="auto")
    house.clock.move(1)
    assert house.work()
    house.clock.move(3600)
    return house


@pytest.mark.both_databases
def test_every_reading_is_an_event_with_person_key_and_time(used: House) -> None:
    job = used.ada.get("/v1/jobs").json()["items"][0]["id"]
    for path, accept in (
        (RESULT, "application/json"),
        (RESULT, "text/csv"),
        (f"{RESULT}?k=2", "application/x-npy"),
        (f"/v1/jobs/{job}/sample", "text/csv"),
        (f"/v1/jobs/{job}/receipt", "application/json"),
        (f"/v1/jobs/{job}/transcript", "*/*"),
        ("/v1/datasets/flowers/ledger", "text/csv"),
    ):
        assert used.ada.get(path, headers={"Accept": accept}).status_code == 200
    assert words(used, "ada") == [
        f"read the result of job {job}",
        f"read the result of job {job} as csv",
        f"read the result of job {job} for k = 2 as npy",
        f"read made-up rows of job {job} as csv",
        f"read the receipt of job {job}",
        f"read the transcript of job {job}",
        "read the ledger as csv",
    ]
    event = accesses(used, actor="ada")[0]
    assert (event["actor"], event["dataset"], event["details"]["job"]) == ("ada", "flowers", job)
    known = {each["name"]: each["keys"] for each in used.carla.get("/v1/principals").json()["items"]}
    assert event["details"]["key"] == known["ada"][0]["id"]
    assert event["details"]["address"] == "127.0.0.1"
    report = used.carla.post("/v1/datasets/flowers/ledger/verify").json()
    assert report["ok"], report["faults"]


def test_owner_reads_reports_and_the_log_and_that_is_an_event_too(small_house: House) -> None:
    small_house.ready()
    small_house.carla.get("/v1/datasets/flowers")
    small_house.ada.get("/v1/datasets/flowers")  # which shows no report
    small_house.carla.get("/v1/audit?dataset=flowers")
    small_house.carla.get("/v1/datasets")
    assert {each["words"]: each["dataset"] for each in accesses(small_house)} == {
        "read the report on rows": "flowers",
        "read the audit log of flowers": None,
        "listed datasets with the reports on their rows": None,
    }


def test_sign_in_with_a_key_is_an_event_and_readings_name_the_session(small_house: House) -> None:
    small_house.ready()
    begun = small_house.ada.post("/v1/sessions", {})
    assert begun.status_code == 201
    cookie = begun.headers["set-cookie"].partition(";")[0]
    small_house.client.request("GET", "/v1/datasets/flowers/ledger", headers={"Cookie": cookie})
    written(small_house)
    with small_house.database.read() as session:
        found = session.execute(text("SELECT action, details FROM audit_events ORDER BY id DESC LIMIT 2"))
        ledger, sign_in = [(row.action, json.loads(row.details)) for row in found]
    assert (sign_in[0], ledger[0]) == ("start-session", "read-ledger")
    assert ledger[1]["session_id"] == begun.json()["id"]
    assert ledger[1]["key"] == sign_in[1]["key"]


def test_record_of_access_is_for_owner_auditor_and_operator(small_house: House) -> None:
    """An analyst sees nothing of it, nor a curator of others' datasets and sign-ins."""
    small_house.ready()
    small_house.ada.post("/v1/sessions", {})
    small_house.ada.get("/v1/datasets/flowers/ledger")
    cleo, iris, otto = (
        Person(small_house.client, name, first_key(small_house, name, role))
        for name, role in (("cleo", "curator"), ("iris", "auditor"), ("otto", "operator"))
    )
    of_ada = {"actor": "ada"}
    seen = {
        who.name: [each["action"] for each in accesses(small_house, who, **of_ada)]
        for who in (small_house.carla, cleo, iris, otto)
    }
    assert seen == {
        "carla": ["read-ledger"],
        "cleo": [],
        "iris": ["start-session", "read-ledger"],
        "otto": ["start-session"],
    }
    assert small_house.ada.get("/v1/audit?record=access").status_code == 403
    acts = small_house.carla.get("/v1/audit", params={"limit": 500}).json()["items"]
    assert not {each["action"] for each in acts} & {"read-ledger", "start-session"}


def test_refusals_are_events_of_the_dataset_that_was_asked_for(small_house: House) -> None:
    small_house.ready()
    job = small_house.submit().json()["id"]
    small_house.ben.get("/v1/datasets/flowers")
    small_house.ben.get(f"/v1/jobs/{job}/result")
    small_house.ben.post("/v1/jobs", {"dataset": "flowers", "k": 2, "epsilon": "0.1"})
    small_house.ben.get("/v1/datasets/flowers/grants")  # by role, before anything is looked for
    small_house.ben.get("/v1/datasets/nothing-of-this-name")
    assert words(small_house, "ben") == [
        "was refused: get dataset (404)",
        f"was refused: get result (404), job {job}",
        "was refused: submit job (404)",
        "was refused: list grants (403)",
    ]
    iris = Person(small_house.client, "iris", first_key(small_house, "iris", "auditor"))
    assert "nothing-of-this-name" not in json.dumps(accesses(small_house, iris))


def test_nobody_floods_the_log_with_refusals(small_house: House) -> None:
    small_house.ready()
    for _ in range(REFUSALS_A_MINUTE + 7):
        small_house.ben.get("/v1/datasets/flowers")
    small_house.app.state.context.audit_batches.end_minute()
    small_house.ben.get("/v1/datasets/flowers")  # the next minute
    iris = Person(small_house.client, "iris", first_key(small_house, "iris", "auditor"))
    found = [each["words"] for each in accesses(small_house, iris, actor="ben")]
    refused = "was refused: get dataset (404)"
    more = "was refused 7 more times within a minute"
    assert sorted(found) == sorted([*[refused] * REFUSALS_A_MINUTE, more, refused])  # in two chains


def test_refusals_that_no_route_has_seen_are_events(sqlite_url: str, tmp_path: Path) -> None:
    """Of a key for reading, and of somebody who asks too much; those of unknown callers are counted."""
    limits: dict[str, Any] = {"caller_rate": 0.001, "caller_burst": 60}
    with closing(House(sqlite_url, tmp_path, **limits)) as house:
        body = {"read_only": True}
        reading = Person(house.client, "ada", house.carla.post("/v1/principals/ada/keys", body).json()["key"])
        assert reading.post("/v1/jobs", {}).status_code == 403
        assert house.ben.get("/v1/jobs", params={"limit": 500}).status_code == 200
        assert house.ben.get("/v1/jobs").status_code == 429
        for _ in range(3):
            assert Person(house.client, "", "cairn_00000000_x").get("/v1/datasets").status_code == 401
        house.app.state.context.audit_batches.end_minute()
        iris = Person(house.client, "iris", first_key(house, "iris", "auditor"))
        found = [f"{each['actor']} {each['words']}" for each in accesses(house, iris, limit=20)]
    assert found == [
        "ada was refused: POST /v1/jobs (403)",
        "ben was refused: GET /v1/jobs (429)",
        "(unknown) was refused 3 times within a minute, without a valid key, session or token",
    ]


@pytest.mark.both_databases
def test_events_are_written_within_a_second_and_at_the_end(house: House) -> None:
    house.ready()

    def count() -> int:
        with house.database.read() as session:
            return session.scalar(text("SELECT count(*) FROM audit_events WHERE action = 'read-ledger'")) or 0

    async def run() -> tuple[int, int]:
        async with house.app.router.lifespan_context(house.app):
            await asyncio.to_thread(house.ada.get, "/v1/datasets/flowers/ledger")
            for _ in range(100):
                await asyncio.sleep(0.05)
                if meanwhile := await asyncio.to_thread(count):
                    break
            for _ in range(600):
                await asyncio.to_thread(house.ada.get, "/v1/datasets/flowers/ledger")
        return meanwhile, count()

    assert asyncio.run(run()) == (1, 601)


def test_nothing_is_lost_while_the_log_cannot_be_written_and_then_requests_are_refused(
    small_house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    small_house.ready()
    small_house.ada.get("/v1/datasets/flowers/ledger")
    with small_house.database.write() as session:
        session.execute(text("ALTER TABLE audit_chains RENAME TO gone"))
    with pytest.raises(SQLAlchemyError):
        written(small_house)
    monkeypatch.setattr(audit_batches, "_MOST_WAITING", 1)
    assert small_house.ada.get("/v1/datasets/flowers/ledger").status_code == 503
    with small_house.database.write() as session:
        session.execute(text("ALTER TABLE gone RENAME TO audit_chains"))
    written(small_house)
    assert small_house.ada.get("/v1/datasets/flowers/ledger").status_code == 200
    monkeypatch.undo()
    assert words(small_house, "ada") == ["read the ledger"] * 2


def test_an_event_of_reading_that_was_removed_is_found(small_house: House) -> None:
    small_house.ready()
    small_house.ada.get("/v1/datasets/flowers/ledger")
    small_house.ada.get("/v1/datasets/flowers/ledger?limit=1")
    written(small_house)
    with small_house.database.write() as session:
        first = "SELECT min(id) FROM audit_events WHERE action = 'read-ledger'"
        session.execute(text(f"DELETE FROM audit_events WHERE id = ({first})"))
    (fault,) = small_house.carla.post("/v1/datasets/flowers/ledger/verify").json()["faults"][:1]
    assert "is missing" in fault


def test_operators_read_the_log_as_lines_of_json(small_house: House) -> None:
    small_house.ready()
    begin = small_house.clock.now()
    small_house.ada.get("/v1/datasets/flowers/ledger")
    written(small_house)
    printed = subprocess.run(
        [sys.executable, "-m", "service.cli", "export-audit", "--dataset", "flowers"],
        env={**os.environ, **small_house.settings.as_environment()},
        capture_output=True,
        text=True,
        check=True,
    )
    events = [json.loads(line) for line in printed.stdout.splitlines()]
    assert [each["sequence"] for each in events] == list(range(1, len(events) + 1))
    assert (events[0]["action"], events[-1]["words"]) == ("create-dataset", "read the ledger")
    later = list(maintenance.audit_lines(small_house.database, None, begin))
    assert json.loads(later[-1]) == events[-1]
