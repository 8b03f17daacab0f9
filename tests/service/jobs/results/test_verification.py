"""Results, receipts and charges name each other: what was exchanged or rewritten is found."""

from __future__ import annotations

import hashlib
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text

from service import maintenance
from service.ledger.entries import hash_of
from service.operations import progress, signing
from service.operations.progress import Progress
from service.operations.tables import Account, LedgerEntry, Result
from service.workers import execution
from tests.support.service import House


@pytest.fixture
def used(house: House) -> House:
    """Two jobs with results; entries 4 and 6 charge them."""
    house.ready(planned_release=False)
    for _ in range(2):
        assert house.submit("0.1", delta="0").status_code == 202
        assert house.work()
    assert faults(house) == []
    return house


def faults(house: House) -> list[str]:
    return list(maintenance.faults(house.database, signing.open_keys(house.settings)))


def execute(house: House, *statements: str) -> None:
    with house.database.engine.begin() as connection:
        for statement in statements:
            connection.execute(text(statement))


def rewrite_charge(house: House) -> None:
    """Halve what the first job cost, in every place, and compute all hashes again."""
    with house.database.write() as session:
        if house.database.is_sqlite:
            session.execute(text("DROP TRIGGER ledger_entries_no_update"))
        else:
            session.execute(text("ALTER TABLE ledger_entries DISABLE TRIGGER ALL"))
        previous = None
        for entry in session.query(LedgerEntry).order_by(LedgerEntry.sequence):
            if entry.sequence in (3, 4):
                entry.loss_units //= 2
                saved = entry.loss_units
            entry.previous = previous or entry.previous
            entry.hash = previous = hash_of(entry)
        for account in session.query(Account):
            account.loss_spent -= saved
            account.head = entry.hash if account.grant_id is None else account.head
        session.execute(text(f"UPDATE jobs SET loss_units = {saved} WHERE number = 1"))


@pytest.mark.both_databases
def test_a_charge_that_is_rewritten_with_its_chain_contradicts_the_receipts(used: House) -> None:
    rewrite_charge(used)
    assert used.carla.post("/v1/datasets/flowers/ledger/verify").json()["faults"] == []
    found = faults(used)
    assert len(found) == 2
    assert all("names another charge" in each for each in found)


def test_a_result_in_the_place_of_another_is_found(used: House) -> None:
    execute(used, "UPDATE results SET body = (SELECT body FROM results ORDER BY created_at LIMIT 1)")
    last = used.carla.get("/v1/jobs").json()["items"][0]["id"]
    assert faults(used) == [f"flowers: the receipt of job {last} names another result"]


def test_an_unsigned_receipt_in_the_place_of_a_signed_one_is_found(used: House) -> None:
    """Receipts of the first version had no signature; a job that was charged since must have one."""
    with used.database.write() as session:
        for result in session.scalars(select(Result)):
            unsigned = {name: value for name, value in result.receipt.items() if name != "signature"}
            result.receipt = {**unsigned, "format": 1}
    assert all("is not signed by a key of this service" in fault for fault in faults(used))
    assert len(faults(used)) == 2


def test_a_receipt_names_the_charge_of_its_job_and_the_result_as_it_is_sent(used: House) -> None:
    job = used.carla.get("/v1/jobs").json()["items"][0]["id"]
    receipt = used.ada.get(f"/v1/jobs/{job}/receipt").json()
    entries = used.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    (charge,) = [each for each in entries if each["job"] == job and each["kind"] == "charge"]
    assert receipt["charge"] == {"sequence": charge["sequence"], "hash": charge["hash"]}
    sent = used.ada.get(f"/v1/jobs/{job}/result").content
    assert receipt["released"]["result"] == hashlib.sha256(sent).hexdigest()


def test_a_result_that_is_deleted_with_its_state_edited_is_missed_by_the_audit_log(used: House) -> None:
    """Whatever state is given to a charged job without a result; those that really failed are recorded."""
    job = used.carla.get("/v1/jobs").json()["items"][0]["id"]
    tables = ("answers", "transcript_parts", "results")
    execute(used, *(f"DELETE FROM {table} WHERE job_id = '{job}'" for table in tables))
    for edit, expected in (
        ("state = 'failed', reason = 'error'", "failed, and the audit log does not say so"),
        ("state = 'cancelled', reason = 'cancelled'", "was charged and is cancelled"),
        ("state = 'running', reason = '', finished_at = NULL", "is running on no worker"),
        ("state = 'queued', reason = '', claimed_at = NULL", "was charged and is queued"),
    ):
        execute(used, f"UPDATE jobs SET {edit} WHERE id = '{job}'")
        assert f"flowers: job {job} {expected}" in faults(used)


def test_a_job_that_failed_is_recorded(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    house.ready()
    job = house.submit("0.1", delta="0").json()["id"]

    def fail(*_: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(execution, "execute", fail)
    assert house.work()
    events = house.carla.get("/v1/audit").json()["items"]
    assert [event["words"] for event in events if event["action"] == "fail-job"] == [
        f"recorded that the job {job} failed after it was charged"
    ]
    assert faults(house) == []


def test_moments_that_have_not_come_yet_are_faults(used: House) -> None:
    def found(now: datetime) -> list[str]:
        return list(maintenance.faults(used.database, signing.open_keys(used.settings), now=now))

    assert found(used.clock.now()) == []
    before = found(used.clock.now() - timedelta(days=1))
    for name in ("queued_at", "claimed_at", "finished_at", "an entry of a ledger", "an audit event"):
        assert any(name in fault and "in the future" in fault for fault in before)


def test_a_verification_goes_on_where_it_was_interrupted(
    used: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_REPORT_SECONDS", -1.0)
    path, keys = tmp_path / "verification.json", signing.open_keys(used.settings)
    first, last = [each["id"] for each in used.carla.get("/v1/jobs").json()["items"]][::-1]
    execute(used, "UPDATE results SET created_at = created_at + 1")
    said: list[str] = []
    interrupted = maintenance.faults(used.database, keys, progress=Progress(path, said.append))
    expected = "flowers: the result of job {} was stored at another time than the job ended"
    assert next(interrupted) == expected.format(first)
    assert next(interrupted) == expected.format(last)  # so that the step before it is kept
    assert said[0].startswith("jobs of flowers: 1 of 2 verified, ")
    execute(used, "UPDATE results SET created_at = created_at - 1")
    resumed = Progress(path, resume=True)
    assert list(maintenance.faults(used.database, keys, progress=resumed)) == [expected.format(first)]
    resumed.end()
    assert list(maintenance.faults(used.database, keys, progress=Progress(path, resume=True))) == []
