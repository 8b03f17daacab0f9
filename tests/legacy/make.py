"""Make a SQLite file and a PostgreSQL dump with a bit of everything, by the service of this tree.

`python -m tests.legacy.make revision-0004` writes a folder of that name. What is there stays as it is: make
another folder when a change of tables or formats adds something that the older ones cannot hold.
"""

from __future__ import annotations

import io
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sqlalchemy import create_engine, text

import migrations
from benchmarks.harness.postgres import Server
from tests.legacy.snapshot import Stored, folders
from tests.support.service import House, Person, table

TEN = {"epsilon": "10", "delta": "0.00001"}


def main(target: str) -> None:
    if not target.startswith("revision-") or target in folders():
        sys.exit("name a new folder, such as revision-0004: kept databases are never written anew")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/cairn.sqlite3"
        _make(target, "sqlite", url, Path(folder), lambda: _sqlite_file(folder))
    server = Server()
    try:
        name = server.create()
        with tempfile.TemporaryDirectory() as folder:
            dump = partial(_postgresql_dump, server, name)
            _make(target, "postgresql", server.url(name), Path(folder), dump)
    finally:
        server.close()


def _make(target: str, kind: str, url: str, folder: Path, dump: Callable[[], bytes]) -> None:
    engine = create_engine(url)
    migrations.upgrade(engine)
    engine.dispose()
    house = House(url, folder, chunk_bytes=4096)
    fill(house)
    Stored.write(target, kind, dump(), house)
    house.close()
    sys.stdout.write(f"{kind} written\n")


def _sqlite_file(folder: str) -> bytes:
    copy = Path(folder) / "copy"
    with sqlite3.connect(f"{folder}/cairn.sqlite3") as connection:
        connection.execute("VACUUM INTO ?", (str(copy),))
    return copy.read_bytes()


def _postgresql_dump(server: Server, name: str) -> bytes:
    """Plain SQL with INSERT statements, which any client can execute."""
    command = [str(server.bin / "pg_dump"), "--no-owner", "--no-privileges", "--inserts", server.dsn(name)]
    dump = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    # Newer versions of pg_dump write commands for psql, which are no SQL.
    return "".join(line for line in dump.splitlines(True) if not line.startswith("\\")).encode()


# --- contents ---------------------------------------------------------------------------------------------


def fill(house: House) -> None:
    """Every kind of dataset, entry of the ledger, job and end of a job."""
    _people(house)
    _datasets(house)
    _finished_jobs(house)
    _ended_otherwise(house)
    _retired(house)
    _unfinished_jobs(house)


def _people(house: House) -> None:
    _done(house.carla.post("/v1/principals", {"name": "cy", "role": "analyst"}), 201)
    _done(house.carla.post("/v1/principals/cy/keys", {"label": "lab", "expires_in_days": 9}), 201)
    _done(house.carla.delete("/v1/principals/cy"), 204)


def _datasets(house: House) -> None:
    _dataset(house, "flowers", table(1500), description="two chunks, summed")
    centre = {"ball": {"radius": 5.0, "centre": [1.0, 2.0]}}
    _dataset(house, "marbles", _npy(), kind="application/x-npy", bounds=centre, accountant="zcdp")
    sparse: dict[str, Any] = {"bounds": {"sparse": {"radius": 2.0}}, "columns": None, "dimension": 30}
    _dataset(house, "words", _npz(), kind="application/x-npz", accountant="zcdp", **sparse)
    person: dict[str, Any] = {
        "id_column": "who",
        "rows_per_person": 3,
        "scaling": "none",
        "release_ticks": False,
    }
    _dataset(house, "visits", _visits(), **person)
    degrees = {"box": {"low": [40, -10], "high": [60, 30]}}
    _dataset(house, "clinics", _places(), columns=["latitude", "longitude"], bounds=degrees)
    _dataset(house, "network", _ids(), columns=None, bounds={"ids": {"count": 6}})
    _done(house.create("draft", budget={"epsilon": "1", "delta": "0"}, bounds=centre), 201)
    for name, sites, kind, lines in (
        ("flowers", "shops", "coordinates", "1,1\n3,2\n5,0\n9,4\n"),
        ("clinics", "hospitals", "great-circle", "52.5,13.4\n48.1,11.6\n41.4,2.2\n59.3,18.1\n"),
        ("network", "stations", "distances", _matrix()),
    ):
        path = f"/v1/datasets/{name}/sites/{sites}"
        _done(house.carla.call("PUT", path, params={"kind": kind}, content=lines.encode()), 200)
    _done(house.carla.post("/v1/datasets/flowers/budget", {"epsilon": "20", "delta": "0.00002"}), 200)
    _done(house.grant("ada", "flowers", "15", "0.00002"), 200)
    _done(house.grant("ben", "flowers", "2", "0.00001"), 200)


def _finished_jobs(house: House) -> None:
    inline = {"kind": "coordinates", "points": [[1, 1], [5, 2], [9, 3]]}
    for body in (
        {"dataset": "flowers", "algorithm": "auto", "k": 3},
        {"dataset": "flowers", "algorithm": "sulq", "delta": "0", "options": {"rounds": 2}, "key": "once"},
        {"dataset": "flowers", "algorithm": "grid", "delta": "0"},
        {"dataset": "flowers", "algorithm": "gupta", "objective": "medians", "options": {"sites": inline}},
        {"dataset": "flowers", "algorithm": "jones", "sites": "shops"},
        {"dataset": "flowers", "algorithm": "balcan-median", "objective": "medians"},
        {"dataset": "flowers", "algorithm": "summit", "rehearsal": True},
        {"dataset": "marbles", "algorithm": "balcan"},
        {"dataset": "marbles", "algorithm": "chaturvedi"},
        {"dataset": "words", "algorithm": "balcan-sparse", "options": {"nonzeros": 3}},
        {"dataset": "words", "algorithm": "jones-euclidean"},
        {"dataset": "visits", "algorithm": "summit", "objective": "medians", "epsilon": "3"},
        {"dataset": "clinics", "algorithm": "gupta", "objective": "medians", "sites": "hospitals"},
        {"dataset": "network", "algorithm": "jones", "objective": "medians", "sites": "stations"},
    ):
        _submit(house, **body)
        house.clock.move(1)
    while house.work():
        house.clock.move(5)


def _ended_otherwise(house: House) -> None:
    job = _submit(house, dataset="flowers")
    _done(house.ada.delete(f"/v1/jobs/{job}"), 200)
    _submit(house, who=house.ben, dataset="flowers")
    _done(house.carla.delete("/v1/datasets/flowers/grants/ben"), 204)
    # Lost: claimed by workers that are never heard of again.
    _submit(house, dataset="flowers")
    while house.worker.claim() is not None:
        house.clock.move(60)
    # Cannot run: a plan that no version reads.
    job = _submit(house, dataset="marbles")
    with house.database.engine.begin() as connection:
        plan = connection.execute(text("SELECT plan FROM jobs WHERE id = :id"), {"id": job}).scalar_one()
        known = json.loads(plan) if isinstance(plan, str) else plan
        change = text("UPDATE jobs SET plan = :plan WHERE id = :id")
        connection.execute(change, {"plan": json.dumps({**known, "format": 0}), "id": job})
    assert house.worker.claim() is None
    # An error after the charge: the rows cannot be read.
    _submit(house, dataset="clinics", algorithm="sulq")
    with house.database.engine.begin() as connection:
        chunk = "(SELECT max(id) FROM dataset_chunks WHERE dataset_id ="
        chunk += " (SELECT id FROM datasets WHERE name = 'clinics'))"
        good = connection.execute(text(f"SELECT payload FROM dataset_chunks WHERE id = {chunk}")).scalar_one()
        restore = text(f"UPDATE dataset_chunks SET payload = :payload WHERE id = {chunk}")
        connection.execute(restore, {"payload": b"damaged"})
    _forget_chunks(house)
    house.work()
    with house.database.engine.begin() as connection:
        connection.execute(restore, {"payload": good})
    house.clock.move(5)


def _forget_chunks(house: House) -> None:
    for path in sorted(house.settings.cache_directory.rglob("*")):
        if path.is_file():
            path.unlink()


def _retired(house: House) -> None:
    _dataset(house, "old", table(60))
    _submit(house, dataset="old")
    house.work()
    house.clock.move(5)
    _submit(house, dataset="old")
    _done(house.carla.post("/v1/datasets/old/retire"), 200)


def _unfinished_jobs(house: House) -> None:
    _submit(house, dataset="flowers", algorithm="grid", delta="0")
    assert house.worker.claim() is not None
    _submit(house, dataset="flowers", key="again")
    _submit(house, dataset="words", algorithm="sulq")
    _submit(house, dataset="clinics", algorithm="gupta", objective="medians", sites="hospitals")
    _submit(house, dataset="network", algorithm="gupta", objective="medians", sites="stations")
    _submit(house, dataset="visits", algorithm="sulq", rehearsal=True)
    house.clock.move(1)


def _dataset(house: House, name: str, content: bytes, kind: str = "text/csv", **changes: Any) -> None:
    _done(house.create(name, **{"budget": TEN, **changes}), 201)
    _done(house.upload(content, name, kind), 200)
    _done(house.grant("ada", name, "8", "0.00001"), 200)


def _submit(house: House, *, who: Person | None = None, **body: Any) -> str:
    answer = house.submit(**{"epsilon": "1", "delta": "0.000001", **body}, who=who)
    return str(_done(answer, 202)["id"])


def _done(answer: Any, status: int) -> Any:
    assert answer.status_code == status, answer.text
    return answer.json() if answer.content else None


def _npy() -> bytes:
    file = io.BytesIO()
    np.save(file, np.array([[i % 4, i % 3] for i in range(120)], dtype=np.float64))
    return file.getvalue()


def _npz() -> bytes:
    file = io.BytesIO()
    rows = np.repeat(np.arange(80), 2)
    columns = rows % 3 * 9 + np.tile([0, 1], 80)
    sp.save_npz(file, sp.csr_array((np.full(160, 0.5), (rows, columns)), shape=(80, 30)))
    return file.getvalue()


def _visits() -> bytes:
    lines = [f"p{i % 40},{i % 10},{i % 4}" for i in range(150)]
    return ("who,a,b\n" + "\n".join(lines) + "\n").encode()


def _places() -> bytes:
    lines = [f"{40 + i % 21},{-10 + (7 * i) % 41}" for i in range(90)]
    return ("latitude,longitude\n" + "\n".join(lines) + "\n").encode()


def _ids() -> bytes:
    return ("site\n" + "\n".join(str(i * i % 6) for i in range(90)) + "\n").encode()


def _matrix() -> str:
    return "\n".join(",".join(str(abs(i - j)) for j in range(6)) for i in range(6)) + "\n"


if __name__ == "__main__":
    main(*sys.argv[1:2] or [""])
