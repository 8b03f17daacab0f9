"""Signed heads in a file: a chain that was cut off, with all that follows from its end, is behind them."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from service import maintenance
from service.operations import signing
from tests.support.service import House


@pytest.fixture
def signed(small_house: House) -> House:
    """A dataset whose heads were signed after its first grant, and another grant since."""
    small_house.ready()
    return small_house


def faults(house: House) -> list[str]:
    keys = signing.open_keys(house.settings)
    return list(maintenance.faults(house.database, keys, heads_file=house.settings.heads_path()))


def record(house: House) -> None:
    keys = signing.open_keys(house.settings)
    maintenance.record_heads(house.database, keys, house.settings.heads_path(), house.clock.now())


def forget_grants(house: House) -> None:
    """Put the database back to before the last grant, in every place."""
    with house.database.engine.begin() as connection:
        for statement in (
            "DROP TRIGGER ledger_entries_no_delete",
            "DELETE FROM ledger_entries WHERE kind = 'cap'",
            "DELETE FROM accounts WHERE grant_id IS NOT NULL",
            "DELETE FROM grants",
            "DELETE FROM audit_events WHERE action = 'grant'",
            "UPDATE accounts SET entries = 1, head = (SELECT hash FROM ledger_entries)",
            "UPDATE audit_chains SET events = events - 1, head = (SELECT hash FROM audit_events"
            " WHERE dataset_id = 1 ORDER BY sequence DESC LIMIT 1) WHERE id = 1",
        ):
            connection.execute(text(statement))


def test_a_chain_that_is_cut_off_everywhere_is_behind_its_signed_head(signed: House) -> None:
    forget_grants(signed)
    assert faults(signed) == []  # nothing in the database contradicts it


def test_a_chain_behind_its_signed_head_is_a_fault(signed: House) -> None:
    record(signed)
    assert faults(signed) == []
    forget_grants(signed)
    found = faults(signed)
    assert len(found) == 2
    assert found[0].startswith("the ledger of dataset 1 is behind number 2, which was signed at 2030-01-01")
    assert found[1].startswith("the audit of dataset 1 is behind number 4")


def test_a_line_that_no_key_of_the_service_signed_is_a_fault(signed: House) -> None:
    record(signed)
    path = signed.settings.heads_path()
    path.write_text(path.read_text().replace('"number":2', '"number":3', 1) + "not JSON\n")
    assert len([each for each in faults(signed) if "not signed by a key" in each]) == 2


def test_a_worker_signs_heads_at_the_end_of_a_job_but_not_of_each(signed: House) -> None:
    for _ in range(2):
        assert signed.submit("0.1", delta="0").status_code == 202
        assert signed.work()
        signed.clock.move(3600)
    assert len(signed.settings.heads_path().read_text().splitlines()) == 2  # of ledger and audit log
    assert faults(signed) == []


def test_a_whole_verification_leaves_one_line_for_each_chain(signed: House) -> None:
    for _ in range(3):
        record(signed)
    assert len(signed.settings.heads_path().read_text().splitlines()) == 3  # ledger, audit log, the service's
    assert faults(signed) == []
    forget_grants(signed)
    assert len(faults(signed)) == 2
