"""Exported ledgers and the verification of a whole database, as after a restore."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from sqlalchemy import text

from service import maintenance
from service.operations import signing
from tests.support.service import House


def faults(house: House, exported: Path | None = None) -> list[str]:
    signing.make(house.settings.signing_key_path())  # unless it is there
    keys = signing.load(house.settings.signing_key_path())
    return list(maintenance.faults(house.database, keys, exported))


@pytest.mark.both_databases
def test_an_exported_ledger_has_every_entry_with_its_hash(house: House, tmp_path: Path) -> None:
    house.ready()
    house.submit("0.1", delta="0")
    house.work()
    assert maintenance.export_ledgers(house.database, tmp_path / "ledgers") == 1
    (path,) = (tmp_path / "ledgers").iterdir()
    assert path.name == "flowers.csv"
    with path.open(newline="") as file:
        exported = list(csv.DictReader(file))
    shown = house.carla.get("/v1/datasets/flowers/ledger").json()["items"]
    assert [(row["kind"], row["hash"]) for row in exported] == [(e["kind"], e["hash"]) for e in shown]


def test_what_the_service_made_verifies(small_house: House, tmp_path: Path) -> None:
    small_house.ready()
    small_house.submit("0.1", delta="0")
    small_house.work()
    maintenance.export_ledgers(small_house.database, tmp_path / "ledgers")
    assert faults(small_house, tmp_path / "ledgers") == []


def test_receipts_and_checkpoints_of_another_key_are_faults(small_house: House) -> None:
    small_house.ready()
    job = small_house.submit("0.1", delta="0").json()["id"]
    small_house.work()
    assert small_house.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]
    small_house.settings.signing_key_path().unlink()
    signing.make(small_house.settings.signing_key_path())
    assert faults(small_house) == [
        "flowers: the checkpoint is not signed by this service; every entry was read instead",
        "flowers: the rows are not those that were uploaded: chunks were changed, added or removed",
        f"flowers: the receipt of job {job} is not signed by a key of this service",
    ]


def test_entries_that_a_restored_back_up_lacks_are_named(small_house: House, tmp_path: Path) -> None:
    small_house.ready()
    with small_house.database.engine.connect() as connection:
        before = connection.execute(text("SELECT count(*) FROM ledger_entries")).scalar_one()
    maintenance.export_ledgers(small_house.database, tmp_path / "ledgers")
    with (tmp_path / "ledgers" / "flowers.csv").open("a") as file:
        file.write(f"{before + 1},,reserve,ada,,1,0,,{'0' * 64}\n{before + 2},,charge,ada,,1,0,,{'1' * 64}\n")
    assert faults(small_house, tmp_path / "ledgers") == [
        f"flowers: entries {before + 1} to {before + 2} of the exported ledger are not in the database; "
        "what they spent is available again"
    ]
