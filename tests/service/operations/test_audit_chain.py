"""Audit events in chains: what was removed, changed or put in another order is found."""

from __future__ import annotations

import threading

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from sqlalchemy import text
from sqlalchemy.exc import IntegrityError

from service.operations import audit, audit_chain
from service.operations.audit_chain import SERVICE, ChainEnd
from service.operations.database import Database
from service.operations.signing import SigningKeys
from tests.support.service import START, House

COUNT = 5
KEYS = SigningKeys(Ed25519PrivateKey.generate())


def record(database: Database, count: int = 1) -> None:
    with database.write() as session:
        for number in range(count):
            audit.record(session, "retire", actor="carla", at=START, withdrawn_jobs=number)


def verify(database: Database, since: ChainEnd | None = None) -> list[str]:
    with database.read() as session:
        return audit_chain.verify(session, SERVICE, KEYS, since or ChainEnd())[1]


def execute(database: Database, statement: str) -> None:
    with database.write() as session:
        session.execute(text(statement))


@pytest.mark.both_databases
def test_events_of_several_transactions_form_a_chain(database: Database) -> None:
    record(database, 2)
    record(database, 3)
    with database.read() as session:
        found, faults = audit_chain.verify(session, SERVICE, KEYS, ChainEnd())
    assert (found.events, faults) == (5, [])


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("DELETE FROM audit_events WHERE sequence = 3", "audit event 3 is missing: the next has number 4"),
        ("DELETE FROM audit_events WHERE sequence = 5", "the newest audit events are missing"),
        ("DELETE FROM audit_events", "the newest audit events are missing"),
        ("UPDATE audit_events SET actor = 'ada' WHERE sequence = 2", "audit event 2 was altered"),
        ("UPDATE audit_events SET details = '{}' WHERE sequence = 2", "audit event 2 was altered"),
        ("UPDATE audit_events SET at = at + 1 WHERE sequence = 2", "audit event 2 was altered"),
        (
            "UPDATE audit_events SET sequence = 5 - sequence WHERE sequence IN (2, 3)",
            "audit event 2 does not follow the one before it",
        ),
    ],
)
def test_every_edit_of_events_is_found(database: Database, edit: str, fault: str) -> None:
    record(database, COUNT)
    execute(database, edit)
    assert any(each.startswith(fault) for each in verify(database))


def test_verification_continues_from_an_earlier_end(database: Database) -> None:
    record(database, 2)
    with database.read() as session:
        earlier = audit_chain.verify(session, SERVICE, KEYS, ChainEnd())[0]
    record(database, 1)
    execute(database, "UPDATE audit_events SET actor = 'ada' WHERE sequence = 1")
    assert verify(database, earlier) == []
    assert verify(database) != []


def record_and_fail(database: Database) -> None:
    with database.write() as session:
        audit.record(session, "retire", actor="carla", at=START)
        session.execute(text("INSERT INTO audit_chains (id, events) VALUES (7, NULL)"))


def test_a_transaction_that_fails_leaves_no_event(database: Database) -> None:
    with pytest.raises(IntegrityError):
        record_and_fail(database)
    record(database)
    assert verify(database) == []


def test_events_of_an_earlier_version_are_chained_with_the_next_one(database: Database) -> None:
    record(database, 2)
    execute(
        database,
        "INSERT INTO audit_events (at, actor, action, details) VALUES (1, 'carla', 'retire', '{}')",
    )
    assert verify(database) == []
    record(database)
    execute(database, "DELETE FROM audit_events WHERE at = 1")
    assert verify(database)[0] == "audit event 3 is missing: the next has number 4"


@pytest.mark.postgresql
def test_transactions_at_the_same_time_append_without_gaps(house: House) -> None:
    """Two chains get events at once from four threads; in each, the numbers have no gap."""
    house.create()

    def append() -> None:
        for _ in range(COUNT):
            with house.database.write() as session:
                audit.record(session, "retire", actor="carla", at=START)
                audit.record(session, "retire", actor="carla", at=START, dataset_id=1)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with house.database.read() as session:
        for chain in (SERVICE, 1):
            found, faults = audit_chain.verify(session, chain, KEYS, ChainEnd())
            assert faults == []
            assert found.events >= 4 * COUNT


def test_a_dataset_is_verified_with_its_audit_events(house: House) -> None:
    house.ready()
    assert house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]
    execute(house.database, "DELETE FROM audit_events WHERE action = 'grant'")
    report = house.carla.post("/v1/datasets/flowers/ledger/verify?whole=true").json()
    assert any("audit event" in fault for fault in report["faults"])
