"""How long list pages take after years of use: `python -m benchmarks pages`.

Fills a database of each kind with a million jobs and two million ledger entries, copied from a few real ones
by the database itself. Every list is timed over HTTP with a few jobs and with all of them: the first page,
one from the middle, and those of people whose only job is the oldest of all.
"""

from __future__ import annotations

import base64
import json
import statistics
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from sqlalchemy import Connection, Engine, create_engine, text

from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import RemotePerson, RunningService, server
from benchmarks.measuring import RESULTS, print_table, write_csv

__all__ = ["fill", "main", "small_dataset"]

_BUDGET = {"epsilon": "1000", "delta": "0.001"}
#: Of a hundred jobs, how many are on the first dataset by the first analyst, and so on.
_SHARES = (("busy", "ada", 60), ("busy", "ben", 30), ("other", "ada", 10))
#: A dataset, and an analyst, whose only jobs are older than all the others.
_OLD = ("quiet", "zoe")
_FEW = 2000


def _person(carla: RemotePerson, running: RunningService, name: str, role: str) -> RemotePerson:
    made = carla.call("POST", "/v1/principals", json={"name": name, "role": role}, expect=201)
    return running.person(made.json()["first_key"]["key"])


def small_dataset(
    owner: RemotePerson,
    name: str,
    *analysts: str,
    jobs_per_hour: int = 1000,
    columns: Sequence[str] = ("a", "b"),
) -> None:
    """Make a sealed dataset of nine rows that these analysts may use."""
    box = {"bounds": {"box": {"low": 0, "high": 1}}, "columns": columns, "size": 10_000}
    facts = {"name": name, **box, "budget": _BUDGET, "jobs_per_hour": jobs_per_hour}
    owner.call("POST", "/v1/datasets", json=facts, expect=201)
    csv = {"Content-Type": "text/csv"}
    lines = [",".join(columns), *[",".join(["0.5"] * len(columns))] * 9]
    content = "\n".join([*lines, ""]).encode()
    owner.call("PUT", f"/v1/datasets/{name}/data", content=content, headers=csv, expect=200)
    owner.call("POST", f"/v1/datasets/{name}/seal", json={"confirm": ["size"]}, expect=200)
    for analyst in analysts:
        owner.call("PUT", f"/v1/datasets/{name}/grants/{analyst}", json=_BUDGET, expect=200)


def _cancelled(analyst: RemotePerson, dataset: str) -> str:
    """Submit a job and cancel it; return its id."""
    body = {"dataset": dataset, "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0"}
    job: str = analyst.call("POST", "/v1/jobs", json=body, expect=202).json()["id"]
    analyst.call("DELETE", f"/v1/jobs/{job}", expect=200)
    return job


def _copy(connection: Connection, table: str, where: str, copies: range, changes: dict[str, str]) -> None:
    """Copy the rows of a table that meet a condition many times; `n` counts the copies in `changes`."""
    found = connection.execute(text(f"SELECT * FROM {table} LIMIT 0"))
    values = {name: changes.get(name, f"source.{name}") for name in found.keys()}  # noqa: SIM118 no dictionary
    values = {name: value for name, value in values.items() if value}
    connection.execute(
        text(
            f"WITH RECURSIVE numbers(n) AS (SELECT {copies.start} UNION ALL "
            f"SELECT n + 1 FROM numbers WHERE n < {copies.stop - 1}) "
            f"INSERT INTO {table} ({', '.join(values)}) "
            f"SELECT {', '.join(values.values())} FROM numbers, {table} AS source WHERE {where} "
            "ORDER BY n"
        )
    )


def fill(engine: Engine, templates: dict[str, int], jobs: range) -> None:
    """Copy each template job, and its two entries, as often as its share of so many jobs."""
    with engine.begin() as connection:
        for number, (job, share) in enumerate(templates.items()):
            copies = range(jobs.start * share // 100 + 1, jobs.stop * share // 100 + 1)
            digits = (
                "lpad(to_hex(n), 12, '0')" if engine.dialect.name == "postgresql" else "printf('%012x', n)"
            )
            name = f"'{number:08x}-0000-4000-8000-' || {digits}"
            long_ago = "source.queued_at - 86400000000"  # in microseconds; recent jobs count against a limit
            changes = {"number": "", "id": name, "queued_at": long_ago}
            _copy(connection, "jobs", f"source.id = '{job}'", copies, changes)
            entry = connection.execute(
                text("SELECT dataset_id, sequence FROM ledger_entries WHERE job_id = :job"), {"job": job}
            ).first()
            assert entry is not None
            last = connection.execute(
                text("SELECT max(sequence) FROM ledger_entries WHERE dataset_id = :id"), {"id": entry[0]}
            ).scalar_one()
            sequence = (
                f"{last} + 2 * (n - {copies.start - 1}) - (CASE source.kind WHEN 'reserve' THEN 1 ELSE 0 END)"
            )
            changes = {"id": "", "job_id": name, "sequence": sequence}
            _copy(connection, "ledger_entries", f"source.job_id = '{job}'", copies, changes)
        connection.execute(
            text(
                "UPDATE accounts SET entries = (SELECT max(sequence) FROM ledger_entries "
                "WHERE dataset_id = accounts.dataset_id) WHERE grant_id IS NULL"
            )
        )
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))


def _cursor(place: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode().rstrip("=")


def _pages(
    people: dict[str, RemotePerson], middle: str, entries: int
) -> Iterator[tuple[str, RemotePerson, str]]:
    carla, cato, ada, zoe = (people[name] for name in ("carla", "cato", "ada", "zoe"))
    deep = f"cursor={_cursor(middle)}"
    yield "an analyst's jobs", ada, "/v1/jobs"
    yield "an analyst's jobs, 500 from the middle", ada, f"/v1/jobs?limit=500&{deep}"
    yield "an analyst's jobs on one dataset", ada, "/v1/jobs?dataset=other"
    yield "an analyst's newest job", ada, "/v1/jobs/latest"
    yield "an analyst's only job, the oldest of all", zoe, "/v1/jobs"
    yield "a curator's jobs", carla, "/v1/jobs"
    yield "a curator's jobs, from the middle", carla, f"/v1/jobs?{deep}"
    yield "a curator's jobs on one dataset", carla, "/v1/jobs?dataset=other"
    yield "a curator's newest job", carla, "/v1/jobs/latest"
    yield "a curator's only job, the oldest of all", cato, "/v1/jobs"
    yield "a curator's newest job, the oldest of all", cato, "/v1/jobs/latest"
    yield "ledger", carla, "/v1/datasets/busy/ledger"
    yield "ledger, from the middle", carla, f"/v1/datasets/busy/ledger?cursor={_cursor(entries)}"
    yield "ledger of one analyst", ada, "/v1/datasets/busy/ledger"
    yield "ledger of one analyst, from the middle", ada, f"/v1/datasets/busy/ledger?cursor={_cursor(entries)}"
    yield "datasets", carla, "/v1/datasets"
    yield "grants", carla, "/v1/datasets/busy/grants"
    yield "people", carla, "/v1/principals"
    yield "audit log", carla, "/v1/audit"
    yield "metrics (no list)", carla, "/metrics"


def _milliseconds(person: RemotePerson, path: str, times: int) -> float:
    taken = []
    for _ in range(times + 1):
        begun = time.perf_counter()
        person.call("GET", path, expect=200)
        taken.append(time.perf_counter() - begun)
    return round(statistics.median(taken[1:]) * 1000, 1)


def _rehearsal(person: RemotePerson) -> float:
    body = {"dataset": "busy", "k": 2, "algorithm": "sulq", "epsilon": "0.1", "delta": "0", "rehearsal": True}
    taken = []
    for _ in range(4):
        begun = time.perf_counter()
        person.call("POST", "/v1/jobs", json=body, expect=202)
        taken.append(time.perf_counter() - begun)
    return round(statistics.median(taken) * 1000, 1)


def _cancellation(person: RemotePerson) -> float:
    taken = []
    for _ in range(5):
        begun = time.perf_counter()
        _cancelled(person, "busy")
        taken.append(time.perf_counter() - begun)
    return round(statistics.median(taken) * 1000, 1)


def _measure(url: str, folder: Path, jobs: int, times: int) -> list[dict[str, float]]:
    """Milliseconds of each page, and of what writers do, with a few jobs and with all of them."""
    with server(
        url, folder, command=("serve", "--workers", "0"), caller_rate="1e9", log_level="warning"
    ) as running:
        carla = running.person(running.bootstrap_key())
        people = {"carla": carla} | {
            name: _person(carla, running, name, "analyst") for name in ("ada", "ben", "zoe")
        }
        people["cato"] = _person(carla, running, "cato", "curator")
        small_dataset(people["cato"], _OLD[0], _OLD[1])
        small_dataset(carla, "busy", "ada", "ben")
        small_dataset(carla, "other", "ada")
        _cancelled(people[_OLD[1]], _OLD[0])
        templates = {_cancelled(people[analyst], name): share for name, analyst, share in _SHARES}
        engine = create_engine(url)
        found = []
        for each in (range(_FEW), range(_FEW, jobs)):
            fill(engine, templates, each)
            middle = f"00000000-0000-4000-8000-{each.stop * _SHARES[0][2] // 200:012x}"
            taken = {
                what: _milliseconds(person, path, times)
                for what, person, path in _pages(people, middle, each.stop)
            }
            taken["submit and cancel (no list)"] = _cancellation(people["ada"])
            taken["submit a rehearsal (no list)"] = _rehearsal(people["ada"])
            found.append(taken)
        engine.dispose()
        return found


def main(
    jobs: Annotated[int, typer.Option(help="Jobs in each database; ledgers have twice as many entries.")] = 10
    ** 6,
    repeats: Annotated[int, typer.Option(help="Requests of each page, of which the median counts.")] = 9,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Time every list with a million jobs on both databases; prints a table and keeps it as CSV."""
    with tempfile.TemporaryDirectory(prefix="cairn-pages-") as folder:
        sqlite = _measure(f"sqlite:///{folder}/pages.sqlite3", Path(folder), jobs, repeats)
    postgres = Server()
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-pages-") as folder:
            other = _measure(postgres.url(postgres.create()), Path(folder), jobs, repeats)
    finally:
        postgres.close()
    table: list[dict[str, object]] = [
        {
            "page": what,
            "sqlite_few_ms": sqlite[0][what],
            "sqlite_ms": sqlite[1][what],
            "postgresql_few_ms": other[0][what],
            "postgresql_ms": other[1][what],
        }
        for what in sqlite[0]
    ]
    write_csv(results / "pages.csv", table)
    print_table(f"milliseconds of list pages with {jobs:,} jobs", table)
