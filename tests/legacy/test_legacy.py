"""A database of an earlier version migrates, verifies, gives out what it gave out, and runs jobs."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import psycopg
import pytest

import migrations
from benchmarks.harness.postgres import Server
from service import maintenance
from service.operations import signing
from tests.legacy.snapshot import KINDS, Stored, folders, lost, snapshot
from tests.support.service import DOUBTS, House, table

#: The algorithms that had been written when the first database was kept.
ALGORITHMS = {
    *("balcan", "balcan-median", "balcan-sparse", "chaturvedi", "grid", "gupta", "jones", "jones-euclidean"),
    *("sulq", "summit"),
}
#: The questions that could be asked when the second database was kept.
QUESTIONS = {"profile", "explain", "compare", "table", "quantiles", "summary"}


#: Those that hold a bit of everything there was.
WHOLE = ("revision-0003", "revision-0018")
#: Holds what came later.
PERIODS = "revision-0036"


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
    if stored.signing_key is not None:
        (tmp_path / "signing-key.pem").write_text(stored.signing_key)
    house = House(url, tmp_path, keys=stored.keys, rehearsal_rows=500)
    house.clock.moment = stored.moment
    migrations.upgrade(house.database.engine)
    yield house
    house.close()


@pytest.mark.parametrize(("folder", "kind"), list(product(WHOLE, KINDS)))
def test_a_whole_database_holds_every_kind_of_dataset_job_and_entry(folder: str, kind: str) -> None:
    kept = Stored(folder, kind).snapshot
    datasets = [each["facts"] for each in kept["datasets"].values()]
    jobs = [each["facts"] for each in kept["jobs"].values()]
    entries = [entry for each in kept["datasets"].values() for entry in each["ledger"]]
    sites = [each for dataset in kept["datasets"].values() for each in dataset["sites"]]
    assert {d["state"] for d in datasets} == {"draft", "sealed", "retired"}
    assert {kind for d in datasets for kind in d["bounds"]} == {"box", "ball", "sparse", "ids"}
    assert {d["accountant"] for d in datasets} == {"sum", "zcdp"}
    assert {d["privacy_unit"] for d in datasets} == {"row", "person"}
    assert {s["kind"] for s in sites} == {"coordinates", "great-circle", "distances"}
    assert {j["state"] for j in jobs} == {"queued", "running", "succeeded", "failed", "cancelled"}
    assert {j["rehearsal"] for j in jobs} == {True, False}
    assert {j["algorithm"] for j in jobs if j["state"] == "succeeded"} >= ALGORITHMS
    assert {e["kind"] for e in entries} == {"open", "raise", "cap", "reserve", "charge", "void"}


def test_the_later_database_holds_tables_questions_and_what_else_came_with_them() -> None:
    kept = Stored("revision-0018", "sqlite").snapshot
    datasets = {name: each["facts"] for name, each in kept["datasets"].items()}
    jobs = [each["facts"] for each in kept["jobs"].values()]
    done = [job for job in jobs if job["state"] == "succeeded"]
    assert {job["request"].get("kind", "cluster") for job in done} == {"cluster", *QUESTIONS}
    assert {job["analyst"] for job in done} == {"ada", "carla"}
    assert {type(job["request"].get("k")) for job in done} == {int, dict, type(None)}
    assert {job["name"] for job in jobs} == {"", "baseline"}
    assert [name for name, facts in datasets.items() if facts["working_bounds"]] == ["patients"]
    assert [name for name, facts in datasets.items() if facts["public_rows"]] == ["digits"]
    assert datasets["half"]["state"] == "draft"
    confirmed = {column.get("confirmed_from_rows", [None])[0] for column in datasets["patients"]["table"]}
    assert confirmed == {None, "high"}
    receipts = [json.loads(each["receipt"]) for each in kept["jobs"].values() if "receipt" in each]
    assert {name for receipt in receipts for name in receipt["inputs"]} >= {"public_rows", "partitions"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_database_holds_periods_versions_and_jobs_on_them(kind: str) -> None:
    kept = Stored(PERIODS, kind).snapshot
    datasets = {name: each["facts"] for name, each in kept["datasets"].items()}
    assert {name: facts["unit"] for name, facts in datasets.items()} == {
        "flowers": "record",
        "visits": "person",
        "corrected": None,
    }
    versions = [each["version"] for each in kept["datasets"]["flowers"]["periods"]]
    assert (versions, datasets["corrected"]["version"]) == ([1, 2, 1], 2)
    jobs = [each["facts"] for each in kept["jobs"].values()]
    assert {job["state"] for job in jobs} == {"queued", "running", "succeeded"}
    assert {len(job["periods"] or ()) for job in jobs} == {0, 2, 3}


def test_ledgers_results_and_receipts_survive_to_the_letter(legacy: House, stored: Stored) -> None:
    now = snapshot(legacy.carla)
    for name, each in now["datasets"].items():  # what nobody said when the first of these files were read
        warnings = each["facts"]["warnings"]
        new = [words for words in warnings if words.startswith("the file was read by an earlier version")]
        inferred = "reading" not in stored.snapshot["datasets"][name]["facts"]
        assert len(new) == (inferred and each["facts"]["state"] != "draft")
        each["facts"]["warnings"] = [words for words in warnings if words not in new]
    for job, each in now["jobs"].items():  # results have all digits as JSON; lines show those above the noise
        asked = each["facts"]["request"]
        if (asked.get("kind", "cluster") != "cluster" or isinstance(asked["k"], dict)) and "csv" in each:
            before = stored.snapshot["jobs"][job]["csv"]
            each["csv"] = (
                before if len(before.splitlines()) == len(each["csv"].splitlines()) else "other lines"
            )
    assert list(lost(stored.snapshot, now)) == []


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
    assert {now["jobs"][job]["facts"]["state"] for job in fresh} == {"succeeded"}
    # A plan of an earlier version runs, or its job ends; only what had begun is charged without a result.
    entries = [entry for each in now["datasets"].values() for entry in each["ledger"]]
    settled = {entry["job"]: entry["kind"] for entry in entries if entry["kind"] in ("charge", "void")}
    for job in unfinished:
        facts = now["jobs"][job]["facts"]
        charged = before[job]["state"] == "running" or facts["state"] == "succeeded"
        assert facts["state"] in ("succeeded", "failed")
        assert facts["rehearsal"] or settled[job] == ("charge" if charged else "void")
    _correct(legacy)
    assert legacy.carla.post("/v1/datasets/flowers/ledger/verify").json()["ok"]


def _correct(house: House) -> None:
    """Replace rows of `flowers`, and run a job on them."""
    unit = house.carla.get("/v1/datasets/flowers").json()["unit"]
    place = "/v1/datasets/flowers" if unit is None else "/v1/datasets/flowers/periods/2026-01"
    assert house.carla.post(f"{place}/correction").status_code == 201
    assert house.carla.call("PUT", f"{place}/data", content=table(90)).status_code == 200
    sealed = house.carla.post(f"{place}/seal", {"confirm": list(DOUBTS)}).json()
    assert (sealed["version"], sealed["upload"]["rows"]) == (2, 90)
    job = _submit(house, "flowers")
    assert house.work()
    receipt = house.ada.get(f"/v1/jobs/{job}/receipt").json()
    assert receipt.get("version", 2) == 2
    assert all(each["version"] == 2 for each in (receipt.get("periods") or ())[:1])


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


def test_what_an_earlier_version_left_verifies_but_for_lost_signing_keys(legacy: House) -> None:
    """The files of the keys that signed are not kept with the first databases."""
    keys = signing.open_keys(legacy.settings)
    unsigned = ("is not signed by a key of this service", "the checkpoint is not signed by this service")
    found = [
        each for each in maintenance.faults(legacy.database, keys) if not any(w in each for w in unsigned)
    ]
    assert found == []
