"""Accesses are deleted from the audit log after a time; the chain still verifies, and nothing else may go."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta

import pytest
from sqlalchemy import select, text

from service import maintenance
from service.operations import audit_chain, audit_retention, signing
from service.operations.audit_chain import DELETED_ACCESS
from service.operations.tables import AuditEvent
from tests.support.service import START, House

DAY = 24 * 3600.0


@pytest.fixture
def old_and_new(house: House) -> House:
    """A service whose ledger ada read on the first day, and again ten days later."""
    house.ready()
    for _ in range(2):
        house.ada.get("/v1/datasets/flowers/ledger")
        house.client.request(
            "POST", "/v1/sessions", headers={"Authorization": f"Bearer {house.ada.key}"}, json={}
        )
        house.app.state.context.audit_batches.write()
        house.clock.move(10 * DAY)
    return house


def delete(house: House, days: float = 5) -> int:
    keys = signing.open_keys(house.settings)
    before = START + timedelta(days=days)
    return audit_retention.delete_accesses(house.database, keys, before=before, now=house.clock.now())


def faults(house: House) -> list[str]:
    return list(maintenance.faults(house.database, signing.open_keys(house.settings)))


def execute(house: House, statement: str) -> None:
    with house.database.write() as session:
        session.execute(text(statement))


def actions(house: House) -> list[str]:
    with house.database.read() as session:
        return list(session.scalars(select(AuditEvent.action).order_by(AuditEvent.id)))


@pytest.mark.both_databases
def test_old_accesses_go_and_the_log_still_verifies(
    old_and_new: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_retention, "_BATCH", 1)
    before = actions(old_and_new)
    end = old_and_new.carla.post("/v1/datasets/flowers/ledger/verify").json()
    assert delete(old_and_new) == 2
    assert delete(old_and_new) == 0
    after = actions(old_and_new)
    assert [each for each in after if each != DELETED_ACCESS][: len(before) - 2] == [
        each for place, each in enumerate(before) if after[place] != DELETED_ACCESS
    ]
    assert (after.count("read-ledger"), after.count("start-session")) == (1, 1)
    assert after[-2:] == [audit_chain.DELETE_ACCESSES] * 2  # in the chain of the dataset and of the service
    assert faults(old_and_new) == []
    for whole in ("true", "false"):
        verified = old_and_new.carla.post(f"/v1/datasets/flowers/ledger/verify?whole={whole}").json()
        assert (verified["ok"], verified["head"]) == (True, end["head"])
    with old_and_new.database.read() as session:
        emptied = session.scalars(select(AuditEvent).where(AuditEvent.action == DELETED_ACCESS)).all()
    for event in emptied:
        assert (event.actor, event.salt, list(event.details)) == ("", None, ["access"])
    shown = old_and_new.carla.get("/v1/audit?dataset=flowers&record=access").json()["items"]
    assert [each["action"] for each in shown] == ["read-ledger"]


@pytest.mark.parametrize(
    ("edit", "fault"),
    [
        ("DELETE FROM audit_events WHERE action = 'deleted-access'", "is missing: the next has number"),
        ("UPDATE audit_events SET actor = 'ben' WHERE action = 'deleted-access'", "was altered"),
        ("UPDATE audit_events SET salt = 'x' WHERE action = 'deleted-access'", "was altered"),
        ("UPDATE audit_events SET at = at + 1 WHERE action = 'deleted-access'", "was altered"),
        ("UPDATE audit_events SET details = '{}' WHERE action = 'deleted-access'", "was altered"),
        ("UPDATE audit_events SET actor = 'ben' WHERE action = 'read-ledger'", "was altered"),
        ("DELETE FROM audit_events WHERE action = 'delete-accesses'", "audit events are missing"),
        (
            "UPDATE audit_events SET action = 'deleted-access', actor = '' WHERE action = 'grant'",
            "was altered",
        ),
    ],
)
def test_whatever_else_is_deleted_or_changed_is_found(old_and_new: House, edit: str, fault: str) -> None:
    delete(old_and_new)
    execute(old_and_new, edit)
    assert any(fault in each for each in faults(old_and_new))


def empty(house: House) -> None:
    """Delete every access as the service does, but without its signature."""
    with house.database.write() as session:
        for event in session.scalars(select(AuditEvent).where(AuditEvent.salt.is_not(None))):
            audit_chain.delete_access(event)


def test_accesses_that_no_signed_act_lets_go_are_missed(old_and_new: House) -> None:
    delete(old_and_new)
    empty(old_and_new)  # those of the second day are too new
    found = [each for each in faults(old_and_new) if "was deleted, and no act" in each]
    assert len(found) == 2


def test_act_that_somebody_else_signed_lets_nothing_go(old_and_new: House) -> None:
    ours, others = (
        old_and_new.settings,
        old_and_new.settings.model_copy(
            update={"signing_key_file": old_and_new.settings.signing_key_path().with_name("other.pem")}
        ),
    )
    now, before = old_and_new.clock.now(), START + timedelta(days=5)
    audit_retention.delete_accesses(old_and_new.database, signing.open_keys(others), before=before, now=now)
    assert any("no act that the service signed" in each for each in faults(old_and_new))
    audit_retention.delete_accesses(old_and_new.database, signing.open_keys(ours), before=before, now=now)


def test_a_deleted_access_cannot_be_guessed(small_house: House) -> None:
    """Two accesses that say the same have different digests."""
    small_house.ready()
    for _ in range(2):
        small_house.ada.get("/v1/datasets/flowers/ledger")
    small_house.app.state.context.audit_batches.write()
    empty(small_house)
    with small_house.database.read() as session:
        left = session.scalars(select(AuditEvent.details).where(AuditEvent.action == DELETED_ACCESS)).all()
    assert len({each["access"] for each in left}) == 2


def test_the_command_deletes_accesses_after_a_year(small_house: House) -> None:
    settings = small_house.settings.as_environment()
    command = [sys.executable, "-m", "service.cli", "prune"]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    assert "0 accesses of more than 365 days ago" in done.stdout
    settings["CAIRN_ACCESS_DAYS"] = "0"
    kept = subprocess.run(command, env=settings, capture_output=True, text=True, check=True)
    assert "accesses" not in kept.stdout
