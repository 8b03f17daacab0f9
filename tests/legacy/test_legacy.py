"""A database of an earlier version migrates, verifies, gives out what it gave out, and runs jobs."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

import migrations
from benchmarks.harness.postgres import Server
from tests.legacy.snapshot import KINDS, Stored, folders, lost, snapshot
from tests.support.service import House

#: False once the format of plans has been raised: queued jobs of the old format then end void.
OLD_PLANS_RUN = False


@pytest.fixture(params=product(folders(), KINDS), ids="-".join)
def stored(request: pytest.FixtureRequest) -> Stored:
    return Stored(*request.param)


@pytest.fixture
def url(stored: Stored, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The address of a copy of the kept database."""
    if stored.kind == "sqlite":
        (tmp_path / "cairn.sqlite3").write_bytes(stored.database)
        yield f"sqlite:///{tmp_path / 'cairn.sqlite3'}"
        return
    server: Server = request.getfixturevalue("postgres")
    name = server.create()
    with psycopg.connect(server.dsn(name), autocommit=True) as connection:
        connection.execute(stored.database)
    yield server.url(name)
    server.drop(name)


@pytest.fixture
def legacy(stored: Stored, url: str, tmp_path: Path) -> Iterator[House]:
    """A service on that copy, migrated, at the moment the database was kept."""
    house = House(url, tmp_path, keys=stored.keys, rehearsal_rows=500)
    house.clock.moment = stored.moment
    migrations.upgrade(house.database.engine)
    yield house
    house.close()


def test_the_kept_database_holds_every_kind_of_dataset_job_and_entry(stored: Stored) -> None:
    kept = stored.snapshot
    datasets = [each["facts"] for each in kept["datasets"].values()]
    jobs = [each["facts"] for each in kept["jobs"].values()]
    entries = [entry for each in kept["datasets"].values() for entry in each["ledger"]]
    sites = [each for dataset in kept["datasets"].values() for each in dataset["sites"]]
    assert {d["state"] for d in datasets} == {"draft", "sealed", "retired"}
    assert {next(iter(d["bounds"])) for d in datasets} == {"box", "ball", "sparse", "ids"}
    assert {d["accountant"] for d in datasets} == {"sum", "zcdp"}
    assert {d["privacy_unit"] for d in datasets} == {"row", "person"}
    assert {s["kind"] for s in sites} == {"coordinates", "great-circle", "distances"}
    assert {j["state"] for j in jobs} == {"queued", "running", "succeeded", "failed", "cancelled"}
    assert {j["rehearsal"] for j in jobs} == {True, False}
    assert len({j["algorithm"] for j in jobs if j["state"] == "succeeded"}) == 10
    assert {e["kind"] for e in entries} == {"open", "raise", "cap", "reserve", "charge", "void"}


def test_ledgers_results_and_receipts_survive_to_the_letter(legacy: House, stored: Stored) -> None:
    assert list(lost(stored.snapshot, snapshot(legacy.carla))) == []


def test_unfinished_and_new_jobs_run(legacy: House, stored: Stored) -> None:
    legacy.clock.move(60)
    before = {job: each["facts"] for job, each in stored.snapshot["jobs"].items()}
    unfinished = [job for job, facts in before.items() if facts["state"] in ("queued", "running")]
    again = legacy.submit("1", key="again", delta="0.000001")
    assert again.headers["Idempotency-Replayed"] == "true"
    assert again.json()["id"] in unfinished
    fresh = [_submit(legacy, name) for name in _sealed(stored)]
    for _ in [*unfinished, *fresh]:
        legacy.work()
        legacy.clock.move(60)
    now = snapshot(legacy.carla)
    states = {job: now["jobs"][job]["facts"]["state"] for job in [*unfinished, *fresh]}
    if OLD_PLANS_RUN:
        assert set(states.values()) == {"succeeded"}
    else:
        assert {states[job] for job in fresh} == {"succeeded"}
        entries = [entry for each in now["datasets"].values() for entry in each["ledger"]]
        settled = {entry["job"]: entry["kind"] for entry in entries if entry["kind"] in ("charge", "void")}
        charged = {job for job in unfinished if before[job]["state"] == "running"}
        assert {job for job in unfinished if settled.get(job) == "charge"} == charged


def _sealed(stored: Stored) -> list[str]:
    datasets = stored.snapshot["datasets"].items()
    return [name for name, each in datasets if each["facts"]["state"] == "sealed"]


def _submit(house: House, name: str) -> str:
    """Submit a job on a dataset as ada: among its sites if it has any."""
    sites = {"clinics": "hospitals", "network": "stations"}.get(name)
    among: dict[str, Any] = {"algorithm": "gupta", "objective": "medians", "sites": sites} if sites else {}
    answer = house.submit("0.5", dataset=name, delta="0.000001", **among)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])
