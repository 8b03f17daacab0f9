"""There is always a curator who can act: nobody disables the last one, and operators can recover one."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from assurance.chaos import curators
from service.operations.database import Database
from tests.support.service import House, Person


@pytest.mark.both_databases
def test_of_two_curators_who_disable_each_other_or_themselves_at_once_one_is_left(database: Database) -> None:
    """`make chaos` races a thousand times."""
    assert curators.race(database, 20) == []


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
