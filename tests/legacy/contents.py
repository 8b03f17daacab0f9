"""What kept databases hold: every kind of dataset, entry of the ledger, job and end of a job; periods."""

from __future__ import annotations

import io
import json
from typing import Any, get_args

import numpy as np
import scipy.sparse as sp
from sqlalchemy import text

from service.http.wire import JobKind
from tests.support.service import DOUBTS, House, Person, table

TEN = {"epsilon": "10", "delta": "0.00001"}

PATIENTS: list[dict[str, Any]] = [
    {"name": "person", "kind": "text", "role": "id"},
    {"name": "age", "kind": "number", "low": 0, "high": 97, "whole": True, "confirmed_from_rows": ["high"]},
    {"name": "cost", "kind": "number", "low": 1, "high": 100000, "log": True},
    {"name": "region", "kind": "category", "levels": ["north", "south"], "weight": 0.5},
    {"name": "smoker", "kind": "boolean", "missing": "drop"},
    {"name": "visited", "kind": "date", "low": "2024-01-01", "high": "2024-12-31"},
    {"name": "bmi", "kind": "number", "low": 10, "high": 60, "role": "keep"},
]


def fill(house: House) -> None:
    """Fill an empty service."""
    _people(house)
    _datasets(house)
    _tables_and_public_rows(house)
    _finished_jobs(house)
    _questions(house)
    _ended_otherwise(house)
    _retired(house)
    _unfinished_jobs(house)


def fill_periods(house: House) -> None:
    """Fill an empty service with periods, versions of their rows, and jobs that read them."""
    ids = {"id_column": "who", "rows_per_person": 2}
    for name, unit, changes in (("flowers", "record", {}), ("visits", "person", ids)):
        _done(house.create(name, unit=unit, budget=TEN, **changes), 201)
        for month in (1, 2, 3):
            _period(house, name, f"2026-{month:02}", table(60) if unit == "record" else _visits())
        _done(house.grant("ada", name, "8", "0.00001"), 200)
        _finish(house, dataset=name, periods=["2026-01", "2026-02"], delta="0")
    place = "/v1/datasets/flowers/periods/2026-02"
    _done(house.carla.post(f"{place}/correction"), 201)
    _seal(house, place, table(70))
    _finish(house, dataset="flowers", periods={"from": "2026-02"}, delta="0")
    _done(house.carla.post(f"{place}/budget", {"epsilon": "12", "delta": "0.00001"}), 200)
    _done(house.carla.post("/v1/datasets/flowers/periods/2026-01/correction"), 201)
    _dataset(house, "corrected", table(50))
    _done(house.carla.post("/v1/datasets/corrected/correction"), 201)
    _done(house.upload(table(55), "corrected"), 200)
    _finish(house, dataset="corrected")
    _submit(house, dataset="flowers", delta="0")
    assert house.worker.claim() is not None
    _submit(house, dataset="flowers", key="again")
    _submit(house, dataset="visits", delta="0")


def _period(house: House, dataset: str, label: str, content: bytes) -> None:
    _done(house.carla.post(f"/v1/datasets/{dataset}/periods", {"label": label}), 201)
    _seal(house, f"/v1/datasets/{dataset}/periods/{label}", content)


def _seal(house: House, place: str, content: bytes) -> None:
    _done(house.carla.call("PUT", f"{place}/data", content=content), 200)
    _done(house.carla.post(f"{place}/seal", {"confirm": list(DOUBTS)}), 200)


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
        "planned_release": False,
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


def _tables_and_public_rows(house: House) -> None:
    patients: dict[str, Any] = {"columns": None, "bounds": None, "table": PATIENTS, "rows_per_person": 2}
    _dataset(house, "patients", _patients(), **patients)
    asked = {"epsilon": "8", "delta": "0.00001", "kinds": list(get_args(JobKind))}
    _done(house.carla.put("/v1/datasets/patients/grants/ada", asked), 200)
    _done(house.create("half", **patients), 201)
    _done(house.check(_patients(), "half"), 200)
    box = {"columns": None, "dimension": 70, "bounds": {"box": {"low": -2, "high": 2}}}
    _dataset(house, "digits", _digits(0, 300), "application/x-npy", **box, size=100_000)
    public = {"content": _digits(1, 200), "params": {"public": "true"}}
    path, npy = "/v1/datasets/digits/public-rows", {"Content-Type": "application/x-npy"}
    _done(house.carla.call("PUT", path, headers=npy, **public), 200)


def _questions(house: House) -> None:
    """A clustering that leaves k open, a question of every kind about it, and a curator's own."""
    open_k = _finish(house, dataset="patients", algorithm="summit", k={"from": 1, "to": 4})
    _done(house.ada.put(f"/v1/jobs/{open_k}/note", {"name": "baseline", "note": "of revision 0018"}), 200)
    about = {"job": open_k, "k": 2}
    for kind, asked in (
        ("profile", {"columns": ["smoker", "bmi"], "clusterings": [about]}),
        ("explain", {"clusterings": [about], "options": {"picks": 1}}),
        ("table", {"columns": ["region", "smoker"]}),
        ("summary", {}),
        ("compare", {"clusterings": [about, {"job": open_k, "k": 3}]}),
    ):
        _ask(house, house.ada, kind, **asked)
    released = _ask(house, house.carla, "quantiles", columns=["bmi"], options={"levels": [0.1, 0.9]})
    narrower = [{"column": "bmi", "job": released}, {"column": "age", "low": 20, "high": 80}]
    _done(house.carla.put("/v1/datasets/patients/working-bounds", {"columns": narrower}), 200)
    columns = {"columns": ["age", "region"], "weights": {"region": 0.25}, "scaling": "private"}
    _finish(house, dataset="patients", **columns)
    _finish(house, dataset="digits", algorithm="summit")


def _ask(house: House, person: Person, kind: str, **asked: Any) -> str:
    body = {"dataset": "patients", "kind": kind, "epsilon": "0.5", **asked}
    job = str(_done(person.post("/v1/jobs", body), 202)["id"])
    house.work()
    house.clock.move(100)
    return job


def _finish(house: House, **body: Any) -> str:
    job = _submit(house, **body)
    house.work()
    house.clock.move(100)
    return job


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
    _submit(house, dataset="patients", algorithm="summit", k={"from": 2, "to": 3})
    _done(house.ada.post("/v1/jobs", {"dataset": "patients", "kind": "summary", "epsilon": "0.5"}), 202)
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
    return _npy_of(np.array([[i % 4, i % 3] for i in range(120)], dtype=np.float64))


def _npy_of(rows: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, rows)
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


def _patients() -> bytes:
    lines = ["person,age,cost,region,smoker,visited,bmi"]
    for i in range(600):
        old = i % 2
        cost, region, smoker = (9000, "south", "yes") if old else (150, "north", "" if i % 50 == 0 else "no")
        day = f"2024-{10 if old else 4:02}-{1 + i % 28:02}"
        bmi = "" if i % 20 == 0 else str(20 + i % 11)
        lines.append(f"p{i // 2},{(70 if old else 25) + i % 9},{cost + i},{region},{smoker},{day},{bmi}")
    return ("\n".join(lines) + "\n").encode()


def _digits(first: int, count: int) -> bytes:
    """Two groups that differ in ten of seventy columns."""
    i = first + np.arange(count)[:, None]
    middles = np.where(np.arange(70) < 10, np.where(i % 2, 1.0, -1.0), 0.0)
    return _npy_of(middles + (i * (np.arange(70) + 3) % 7 - 3) / 10)


def _places() -> bytes:
    lines = [f"{40 + i % 21},{-10 + (7 * i) % 41}" for i in range(90)]
    return ("latitude,longitude\n" + "\n".join(lines) + "\n").encode()


def _ids() -> bytes:
    return ("site\n" + "\n".join(str(i * i % 6) for i in range(90)) + "\n").encode()


def _matrix() -> str:
    return "\n".join(",".join(str(abs(i - j)) for j in range(6)) for i in range(6)) + "\n"
