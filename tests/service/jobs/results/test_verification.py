"""Results, receipts and charges name each other: what was exchanged or rewritten is found."""

from __future__ import annotations

import hashlib

import pytest
from sqlalchemy import text

from service import maintenance
from service.ledger.entries import hash_of
from service.operations import signing
from service.operations.tables import Account, LedgerEntry
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
    execute(
        used,
        "UPDATE results SET receipt = json_remove(json_set(receipt, '$.format', 1), '$.signature')",
    )
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
