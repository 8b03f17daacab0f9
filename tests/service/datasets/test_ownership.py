"""Datasets are handed over, and stop while their owner's account is disabled."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from service import maintenance
from service.cli import app
from service.operations import signing
from service.people import principals
from tests.support.service import House, Person


@pytest.fixture
def cleo(house: House) -> Person:
    """Another curator, beside carla, who owns the dataset `flowers`."""
    house.ready(planned_release=False)
    made = house.carla.post("/v1/principals", {"name": "cleo", "role": "curator"})
    return Person(house.client, "cleo", made.json()["first_key"]["key"])


def owner_of(house: House) -> str:
    return str(house.ada.get("/v1/datasets/flowers").json()["owner"])


def disable_carla(house: House) -> None:
    with house.database.write() as session:
        principals.disable(session, principals.find(session, "carla"), by="cleo", at=house.clock.now())


@pytest.mark.both_databases
def test_the_new_owner_sees_the_jobs_of_analysts_and_the_former_one_nothing(
    house: House, cleo: Person
) -> None:
    analysts = house.submit("0.1", delta="0").json()["id"]
    own = house.submit("0.1", delta="0", who=house.carla).json()["id"]
    assert house.work()
    assert house.carla.post("/v1/datasets/flowers/owner", {"curator": "cleo"}).status_code == 204
    assert owner_of(house) == "cleo"
    assert cleo.get(f"/v1/jobs/{analysts}/result").status_code == 200
    assert cleo.put("/v1/datasets/flowers/grants/ben", {"epsilon": "0.1", "delta": "0"}).status_code == 200
    assert house.carla.get("/v1/datasets/flowers").status_code == 404
    assert house.carla.get(f"/v1/jobs/{analysts}").status_code == 404
    assert house.carla.get(f"/v1/jobs/{own}").json()["state"] == "cancelled"  # withdrawn, not charged
    assert cleo.get("/v1/audit").json()["items"][1]["words"] == "handed the dataset over from carla to cleo"
    assert list(maintenance.faults(house.database, signing.open_keys(house.settings))) == []


@pytest.mark.parametrize("name", ["ada", "nobody"])
def test_only_a_curator_can_become_the_owner(house: House, cleo: Person, name: str) -> None:
    answer = house.carla.post("/v1/datasets/flowers/owner", {"curator": name})
    assert answer.status_code == 422
    assert "not the name of a curator" in answer.json()["detail"]
    assert owner_of(house) == "carla"


@pytest.mark.both_databases
def test_no_job_runs_while_the_owner_is_disabled_until_somebody_takes_over(
    house: House, cleo: Person
) -> None:
    queued = house.submit("0.1", delta="0").json()["id"]
    disable_carla(house)
    refused = house.submit("0.1", delta="0")
    assert refused.status_code == 403
    assert "the account of carla, who owns flowers, is disabled" in refused.json()["detail"]
    assert not house.work()
    assert house.ada.get(f"/v1/jobs/{queued}").json()["state"] == "cancelled"
    command = ["hand-over", "flowers", "cleo"]
    done = CliRunner().invoke(app, command, env={"CAIRN_DATABASE_URL": house.settings.database_url})
    assert (done.exit_code, done.stdout) == (0, "cleo owns flowers now.\n")
    assert house.submit("0.1", delta="0").status_code == 202
    assert house.work()
