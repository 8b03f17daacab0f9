"""There is always a curator who can act: nobody disables the last one, and operators can recover one."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from threading import Barrier, Thread

import pytest
from sqlalchemy import select

from service.errors import InvalidRequest
from service.operations.database import Database
from service.operations.states import Role
from service.operations.tables import Principal
from service.people import principals
from tests.support.service import START, House, Person


def _disable(database: Database, name: str, barrier: Barrier) -> None:
    barrier.wait()
    with suppress(InvalidRequest), database.write() as session:
        principals.disable(session, principals.find(session, name), by="somebody", at=START)


@pytest.mark.both_databases
def test_two_curators_who_disable_each_other_at_once_leave_one(database: Database) -> None:
    for turn in range(20):
        names = [f"cleo{turn}", f"cora{turn}"]
        with database.write() as session:
            for principal in session.scalars(select(Principal)):
                principal.disabled_at = START
            for name in names:
                principals.create(session, name, Role.CURATOR, by=None, at=START)
        barrier = Barrier(2)
        racers = [Thread(target=_disable, args=(database, name, barrier)) for name in names]
        for racer in racers:
            racer.start()
        for racer in racers:
            racer.join()
        with database.read() as session:
            active = session.scalars(select(Principal.name).where(Principal.disabled_at.is_(None))).all()
        assert len(active) == 1


def _recover(house: House, name: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "CAIRN_DATABASE_URL": house.settings.database_url}
    command = [sys.executable, "-m", "service.cli", "recover-curator", name]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_an_operator_gives_a_disabled_curator_a_key_again(small_house: House) -> None:
    small_house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"})
    assert small_house.carla.delete("/v1/principals/carla").status_code == 204
    recovered = Person(small_house.client, "carla", _recover(small_house, "carla").stdout.strip())
    assert recovered.get("/v1/whoami").json()["name"] == "carla"
    events = recovered.get("/v1/audit").json()["items"]
    assert ("recover-curator", "operator") in [(event["action"], event["actor"]) for event in events]


def test_an_analyst_cannot_be_recovered_as_a_curator(small_house: House) -> None:
    refused = _recover(small_house, "ada")
    assert refused.returncode == 1
    assert "ada is not a curator" in refused.stderr
