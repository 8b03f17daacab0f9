"""Whether a large set of sites slows anybody else: `python -m benchmarks sites`.

One analyst submits jobs on a dataset with a distance matrix of many sites, one after the other. Another one
submits small jobs on a dataset of numbers, first alone and then at the same time, on both databases.
"""

from __future__ import annotations

import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from sqlalchemy import create_engine, text

from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import RemotePerson, server
from benchmarks.measuring import RESULTS, print_table, write_csv

__all__ = ["main"]

_BUDGET = {"epsilon": "1000", "delta": "0"}
_SMALL = {"dataset": "numbers", "k": 4, "algorithm": "sulq", "epsilon": "0.01", "delta": "0"}
_LARGE = {"dataset": "places", "k": 8, "algorithm": "jones", "epsilon": "0.01", "delta": "0", "sites": "all"}


def _matrix(count: int) -> bytes:
    """Distances between random points, as lines of numbers."""
    points = np.random.default_rng(1).uniform(size=(count, 2))
    distances = np.linalg.norm(points[:, None] - points[None], axis=2)
    return "\n".join(",".join(f"{d:.6f}" for d in row) for row in distances).encode()


def _set_up(carla: RemotePerson, count: int) -> list[str]:
    """Both datasets, and an analyst for each; returns their keys."""
    facts: dict[str, Any] = {"size": 10_000, "budget": _BUDGET}
    box = {"bounds": {"box": {"low": 0, "high": 1}}, "columns": ["a", "b"]}
    carla.call("POST", "/v1/datasets", json={"name": "numbers", **box, **facts}, expect=201)
    ids = {"bounds": {"ids": {"count": count}}}
    carla.call("POST", "/v1/datasets", json={"name": "places", **ids, **facts}, expect=201)
    for name, rows in (("numbers", b"a,b\n" + b"0.5,0.5\n" * 9), ("places", b"site\n" + b"1\n" * 9)):
        csv = {"Content-Type": "text/csv"}
        carla.call("PUT", f"/v1/datasets/{name}/data", content=rows, headers=csv, expect=200)
        carla.call("POST", f"/v1/datasets/{name}/seal", json={"confirm": ["size"]}, expect=200)
    path = "/v1/datasets/places/sites/all"
    carla.call("PUT", path, params={"kind": "distances"}, content=_matrix(count), expect=200)
    keys = []
    for name in ("numbers", "places"):
        made = carla.call(
            "POST", "/v1/principals", json={"name": f"of-{name}", "role": "analyst"}, expect=201
        )
        keys.append(made.json()["first_key"]["key"])
        carla.call("PUT", f"/v1/datasets/{name}/grants/of-{name}", json=_BUDGET, expect=200)
    return keys


def _seconds(person: RemotePerson, times: int) -> list[float]:
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        person.call("POST", "/v1/jobs", json=_SMALL, expect=202)
        taken.append(time.perf_counter() - begun)
    return taken


@contextmanager
def _submitting(person: RemotePerson) -> Iterator[list[int]]:
    """Submit jobs on the many sites, one after the other, until the block ends; yields a count of them."""
    stop, made = threading.Event(), [0]

    def work() -> None:
        while not stop.is_set():
            person.call("POST", "/v1/jobs", json=_LARGE, expect=202)
            made[0] += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


def _row_bytes(url: str) -> int:
    """Bytes of the plan and the request of a job on the many sites."""
    with create_engine(url).connect() as connection:
        query = "SELECT max(length(CAST(plan AS TEXT)) + length(CAST(request AS TEXT))) FROM jobs"
        return int(connection.execute(text(query)).scalar_one())


def _measure(kind: str, url: str, folder: Path, count: int, times: int) -> dict[str, object]:
    with server(url, folder, max_queued_jobs=str(10**9), caller_rate="1e9", log_level="warning") as running:
        small, large = (
            running.person(key) for key in _set_up(running.person(running.bootstrap_key()), count)
        )
        _seconds(small, 5)
        large.call("POST", "/v1/jobs", json=_LARGE, expect=202)
        alone = _seconds(small, times)
        with _submitting(large) as made:
            beside = _seconds(small, times)
    return {
        "database": kind,
        "sites": count,
        "alone_ms": round(statistics.median(alone) * 1000, 1),
        "beside_ms": round(statistics.median(beside) * 1000, 1),
        "ratio": round(statistics.median(beside) / statistics.median(alone), 2),
        "large_jobs": made[0],
        "job_row_bytes": _row_bytes(url),
    }


def main(
    count: Annotated[int, typer.Option(help="Sites in the matrix.")] = 1500,
    times: Annotated[int, typer.Option(help="Small submissions that are timed, alone and beside.")] = 100,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure another analyst's submissions while one uses many sites; prints a table and keeps it as CSV."""
    table = []
    with tempfile.TemporaryDirectory(prefix="cairn-sites-") as folder:
        url = f"sqlite:///{folder}/cairn.sqlite3"
        table.append(_measure("SQLite", url, Path(folder), count, times))
    postgres = Server(durable=True)
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-sites-") as folder:
            url = postgres.url(postgres.create())
            table.append(_measure("PostgreSQL", url, Path(folder), count, times))
    finally:
        postgres.close()
    write_csv(results / "sites.csv", table)
    print_table(f"submissions beside jobs on {count} sites", table)
