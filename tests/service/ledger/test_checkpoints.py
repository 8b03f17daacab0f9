"""Ledgers are verified from signed checkpoints, against jobs and results, and every break is found."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from service.ledger.entries import hash_of
from service.operations import signing
from service.operations.tables import LedgerEntry
from tests.support.service import House


@pytest.fixture
def used(house: House) -> House:
    """Two jobs with results, one cancelled, one rehearsal, one that waits: ten entries."""
    house.ready(planned_release=False)
    for body in ({}, {"delta": "0"}, {"rehearsal": True}):
        assert house.submit("0.1", **body).status_code == 202
        assert house.work()
    cancelled = house.submit("0.1", delta="0").json()["id"]
    assert house.ada.delete(f"/v1/jobs/{cancelled}").status_code == 200
    assert house.submit("0.1", delta="0").status_code == 202
    return house


def verify(house: House, **query: Any) -> dict[str, Any]:
    answer = house.carla.call("POST", "/v1/datasets/flowers/ledger/verify", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def tamper(house: House, *statements: str) -> None:
    """What an intruder with the database's superuser password would do: switch the triggers off first."""
    with house.database.engine.begin() as connection:
        if house.database.is_sqlite:
            connection.execute(text("DROP TRIGGER IF EXISTS ledger_entries_no_update"))
            connection.execute(text("DROP TRIGGER IF EXISTS ledger_entries_no_delete"))
        else:
            connection.execute(text("ALTER TABLE ledger_entries DISABLE TRIGGER ALL"))
        for statement in statements:
            connection.execute(text(statement))


def cut_the_tail(house: House, kept: int) -> None:
    """Delete the newest entries, and adjust the accounts to what is left of the ledger."""
    with house.database.read() as session:
        left = session.query(LedgerEntry).filter(LedgerEntry.sequence <= kept).order_by(LedgerEntry.sequence)
        entries = list(left)
    open_jobs = {entry.job_id: entry for entry in entries if entry.kind == "reserve"}
    for entry in entries:
        if entry.kind in ("charge", "void"):
            del open_jobs[entry.job_id]
    spent = [entry for entry in entries if entry.kind == "charge"]
    amounts = {
        "loss_reserved": sum(entry.loss_units for entry in open_jobs.values()),
        "delta_reserved": sum(entry.delta_units for entry in open_jobs.values()),
        "loss_spent": sum(entry.loss_units for entry in spent),
        "delta_spent": sum(entry.delta_units for entry in spent),
    }
    tamper(
        house,
        f"DELETE FROM ledger_entries WHERE sequence > {kept}",
        "UPDATE accounts SET " + ", ".join(f"{name} = {value}" for name, value in amounts.items()),
        f"UPDATE accounts SET entries = {kept}, head = '{entries[-1].hash}' WHERE grant_id IS NULL",
    )


@pytest.mark.both_databases
def test_a_second_verification_reads_the_new_entries_alone(used: House) -> None:
    first = verify(used)
    assert (first["ok"], first["entries"], first["since"]) == (True, 9, 0)
    assert used.work()
    second = verify(used)
    assert (second["ok"], second["entries"], second["since"]) == (True, 10, 9)
    assert verify(used)["since"] == 10
    whole = verify(used, whole="true")
    assert (whole["ok"], whole["since"]) == (True, 0)


def test_a_verification_from_a_checkpoint_knows_what_was_open_and_spent(used: House) -> None:
    verify(used)
    assert used.work()
    tamper(used, "UPDATE accounts SET loss_spent = loss_spent - 1, loss_reserved = loss_reserved + 1")
    found = verify(used)
    assert found["since"] == 9
    assert any("differs from what its entries add up to" in fault for fault in found["faults"])


@pytest.mark.parametrize("kept", [3, 4, 5])
def test_cutting_the_tail_and_adjusting_the_accounts_no_longer_verifies(used: House, kept: int) -> None:
    cut_the_tail(used, kept)
    found = verify(used)
    assert not found["ok"]
    assert any("should have a charge and has none" in fault for fault in found["faults"])
    assert verify(used)["since"] == 0  # nothing was signed


@pytest.mark.both_databases
def test_a_tail_cut_behind_a_checkpoint_is_noticed_with_its_jobs_deleted_too(used: House) -> None:
    verify(used)
    cut_the_tail(used, 8)
    tamper(used, "DELETE FROM jobs WHERE state = 'queued'")
    found = verify(used)
    assert found["faults"] == ["entries that a checkpoint covers are missing or altered"]


@pytest.mark.parametrize(
    ("statements", "finding"),
    [
        (["UPDATE jobs SET loss_units = 1 WHERE state = 'succeeded'"], "planned at another amount"),
        (["UPDATE jobs SET rehearsal = (0 = 0)"], "should have no settlement and has charge"),
        (["UPDATE jobs SET state = 'cancelled' WHERE state = 'queued'"], "should have a void and has none"),
        (["UPDATE jobs SET claimed_at = NULL, state = 'queued' WHERE state = 'cancelled'"], "has void"),
        (["DELETE FROM jobs WHERE state = 'queued'"], "entry 9 is of a job that does not exist"),
    ],
)
def test_jobs_and_entries_that_disagree_are_named(used: House, statements: list[str], finding: str) -> None:
    tamper(used, *statements)
    assert any(finding in fault for fault in verify(used)["faults"])


def test_a_result_without_a_charge_is_named_even_if_its_job_says_it_never_ran(used: House) -> None:
    tamper(used, "UPDATE jobs SET claimed_at = NULL, state = 'cancelled' WHERE state = 'succeeded'")
    assert verify(used)["ok"]  # the charges are there
    cut_the_tail(used, 3)
    assert any("should have a charge" in fault for fault in verify(used)["faults"])


@pytest.mark.parametrize("what", ["state", "signature", "other key"])
def test_a_checkpoint_that_the_service_did_not_sign_is_a_fault(used: House, what: str) -> None:
    verify(used)
    if what == "state":
        change = "state = '{\"entries\": 0}'"
    elif what == "signature":
        change = 'signature = \'{"key": "x", "value": ""}\''
    else:  # of this service, for another purpose
        forged = used.app.state.context.signing_keys.sign("receipt", "x")
        change = f'signature = \'{{"key": "{forged["key"]}", "value": "{forged["value"]}"}}\''
    tamper(used, f"UPDATE ledger_checkpoints SET {change}")
    found = verify(used)
    assert found["since"] == 0
    assert any("not signed by this service" in fault for fault in found["faults"])


def test_an_old_entry_altered_behind_a_checkpoint_is_found_by_a_whole_verification(used: House) -> None:
    verify(used)
    tamper(used, "UPDATE ledger_entries SET actor = 'nobody' WHERE sequence = 4")
    assert verify(used)["ok"]
    found = verify(used, whole="true")
    assert found["faults"] == ["entry 4 was altered: its hash does not match its content"]


@pytest.mark.both_databases
def test_checkpoints_hold_after_the_key_was_rotated(used: House) -> None:
    verify(used)
    context = used.app.state.context
    signing.rotate(context.settings.signing_key_path())
    signing.open_keys.cache_clear()
    assert used.work()
    assert verify(used)["since"] == 9
    assert verify(used)["since"] == 10


@pytest.mark.both_databases
def test_rows_and_objects_of_entries_have_the_same_hash(used: House) -> None:
    with used.database.read() as session:
        for entry in session.query(LedgerEntry):
            assert hash_of(entry) == entry.hash
    assert verify(used, whole="true")["ok"]
