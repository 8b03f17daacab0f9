"""How many jobs a second can be submitted, beside a bare insert: `python -m benchmarks throughput`.

Ours is `POST /v1/jobs` with everything on: keys, plans, row locks, CHECKs, the chain of hashes, idempotency.
Beside it stands a FastAPI endpoint that does one INSERT and COMMIT and nothing else. Both run with the same
server, as many processes, the same pool of connections, the same durable PostgreSQL and the same clients,
in turns; the clients speak bare HTTP, so that they take little of the cores that they share with the servers.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import psutil
import psycopg
import typer

from benchmarks.bars import draw_ratios
from benchmarks.harness.postgres import Server
from benchmarks.harness.processes import ROOT, free_port, server
from benchmarks.measuring import RESULTS, print_table, write_csv

__all__ = ["main"]

_DATASET = "people"
_BARE = "benchmarks.bare:create"


@dataclass(frozen=True)
class Target:
    """Something that takes requests: an address, and what each client sends."""

    name: str
    address: str
    keys: list[str]
    path: str
    body: Callable[[], bytes]
    expected: bytes


@dataclass
class Side:
    """What was measured of a target: turns by the clock, requests, and seconds of all cores."""

    rates: list[float] = field(default_factory=list)
    taken: list[float] = field(default_factory=list)
    cores: float = 0.0


async def _client(target: Target, number: int, until: float, taken: list[float]) -> None:
    """One client: a connection of its own, one request after the other."""
    place = urlsplit(target.address)
    reader, writer = await asyncio.open_connection(place.hostname, place.port)
    try:
        while time.perf_counter() < until:
            body = target.body()
            head = (
                f"POST {target.path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n"
                f"Authorization: Bearer {target.keys[number]}\r\nIdempotency-Key: {uuid.uuid4().hex}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            ).encode()
            begun = time.perf_counter()
            writer.write(head + body)
            answer = await reader.readuntil(b"\r\n\r\n")
            headers = answer.lower()
            start = headers.index(b"content-length:") + 15
            content = await reader.readexactly(int(headers[start : headers.index(b"\r\n", start)]))
            taken.append(time.perf_counter() - begun)
            assert answer.startswith(b"HTTP/1.1 " + target.expected), answer + content[:300]
    finally:
        writer.close()


async def _load(target: Target, clients: int, seconds: float) -> tuple[float, list[float]]:
    """Requests a second, and the seconds each took."""
    taken: list[float] = []
    begun = time.perf_counter()
    tasks = (_client(target, number, begun + seconds, taken) for number in range(clients))
    await asyncio.gather(*tasks)
    return len(taken) / (time.perf_counter() - begun), taken


def _set_up(address: str, curator: str, clients: int) -> list[str]:
    """A sealed dataset that as many analysts may use without end; returns their keys."""
    with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {curator}"}) as call:
        facts = {
            "name": _DATASET,
            "dimension": 20,
            "bounds": {"box": {"low": -1, "high": 1}},
            "reading": {"header": False},
            "size": 10_000_000,
            "budget": {"epsilon": "1000", "delta": "0.01"},
        }
        call.post("/v1/datasets", json=facts).raise_for_status()
        row = ",".join(["0.5"] * 20)
        call.put(f"/v1/datasets/{_DATASET}/data", content=f"{row}\n{row}\n".encode()).raise_for_status()
        call.post(f"/v1/datasets/{_DATASET}/seal", json={"confirm": ["size"]}).raise_for_status()
        keys = []
        for number in range(clients):
            name = f"analyst-{number}"
            made = call.post("/v1/principals", json={"name": name, "role": "analyst"}).raise_for_status()
            keys.append(made.json()["first_key"]["key"])
            cap = {"epsilon": "1000", "delta": "0.01"}
            call.put(f"/v1/datasets/{_DATASET}/grants/{name}", json=cap).raise_for_status()
    return keys


def _job(distinct: int) -> Callable[[], bytes]:
    """Bodies that ask for so many different amounts in turn; the plans of the latest ones are remembered."""
    numbers = itertools.count()

    def body() -> bytes:
        epsilon = f"0.01{next(numbers) % distinct:06d}"
        return json.dumps({"dataset": _DATASET, "k": 8, "epsilon": epsilon, "delta": "0.000000001"}).encode()

    return body


@contextmanager
def _bare_server(url: str, dsn: str, processes: int, pool: int) -> Iterator[tuple[str, int]]:
    """The endpoint beside which ours is measured, started as ours is."""
    with psycopg.connect(dsn) as connection:
        connection.execute(
            "CREATE TABLE submitted "
            "(id bigserial PRIMARY KEY, key text NOT NULL, body jsonb NOT NULL, at bigint NOT NULL)"
        )
    port = free_port()
    environment = {**os.environ, "BARE_DATABASE_URL": url, "BARE_POOL": str(pool)}
    command = [sys.executable, "-m", "uvicorn", _BARE, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--workers", str(processes), "--log-level", "warning", "--no-access-log", "--factory"]
    process = subprocess.Popen(command, cwd=ROOT, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                httpx.get(f"{address}/ready", timeout=5).raise_for_status()
                break
            except httpx.TransportError:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise
                time.sleep(0.1)  # waiting for another program, which offers nothing to wait on
        yield address, process.pid
    finally:
        process.terminate()
        process.wait(timeout=30)


def _cores(*roots: int) -> float:
    """Seconds that these processes and their children have had on all cores."""
    used = 0.0
    for root in roots:
        above = psutil.Process(root)
        for each in [above, *above.children(recursive=True)]:
            try:
                times = each.cpu_times()
            except psutil.NoSuchProcess:
                continue
            used += times.user + times.system
    return used


def _line(name: str, side: Side, bare: Side) -> dict[str, object]:
    taken, rates = side.taken, side.rates
    cuts = statistics.quantiles(taken, n=100)
    return {
        "what": name,
        "requests": len(taken),
        "per_second": round(max(rates), 1),
        "p50_ms": round(cuts[49] * 1000, 2),
        "p99_ms": round(cuts[98] * 1000, 2),
        "p99_over_p50": round(cuts[98] / cuts[49], 2),
        "ratio": round(max(rates) / max(bare.rates), 3),
        "cores_ms": round(side.cores / len(taken) * 1000, 2),
        "cores_ratio": round(bare.cores / len(bare.taken) * len(taken) / side.cores, 3),
    }


def main(
    clients: Annotated[int, typer.Option(help="Clients, each with one request under way.")] = 32,
    seconds: Annotated[float, typer.Option(help="How long one turn of one side lasts.")] = 5.0,
    repeats: Annotated[int, typer.Option(help="Turns of each side, of which the fastest counts.")] = 3,
    processes: Annotated[int, typer.Option(help="Processes of each server.")] = 2,
    results: Annotated[Path, typer.Option(help="Folder of the CSV file.")] = RESULTS,
) -> None:
    """Measure submissions against bare inserts; prints a table and keeps it as CSV."""
    postgres = Server(durable=True)
    pool = 10
    try:
        with tempfile.TemporaryDirectory(prefix="cairn-throughput-") as folder:
            database, other = postgres.create(), postgres.create()
            settings = {
                "api_processes": str(processes),
                "database_pool": str(pool),
                "max_queued_jobs": str(10**9),
                "caller_rate": "1e9",
                "log_level": "warning",
            }
            with (
                server(
                    postgres.url(database), Path(folder), command=("serve", "--workers", "0"), **settings
                ) as running,
                _bare_server(postgres.url(other), postgres.dsn(other), processes, pool) as (
                    address,
                    bare_process,
                ),
            ):
                keys = _set_up(running.address, running.bootstrap_key(), clients)
                targets = [
                    Target("bare INSERT and COMMIT", address, keys, "/submit", _job(8), b"202"),
                    Target(
                        "submit, 8 different requests", running.address, keys, "/v1/jobs", _job(8), b"202"
                    ),
                    Target(
                        "submit, every request different",
                        running.address,
                        keys,
                        "/v1/jobs",
                        _job(10**6),
                        b"202",
                    ),
                ]
                sides = [Side() for _ in targets]
                watched = (running.process.pid, bare_process, postgres.pid)
                for _ in range(repeats):
                    for side, target in zip(sides, targets, strict=True):
                        before = _cores(*watched)
                        rate, times = asyncio.run(_load(target, clients, seconds))
                        side.cores += _cores(*watched) - before
                        side.rates.append(rate)
                        side.taken += times
    finally:
        postgres.close()
    table = [_line(target.name, side, sides[0]) for side, target in zip(sides, targets, strict=True)]
    write_csv(results / "throughput.csv", table)
    draw_ratios(
        results / "throughput.png",
        f"submissions a second beside bare inserts, {clients} clients",
        [(str(line["what"]), float(str(line["ratio"])), 0.5) for line in table[1:]],
    )
    print_table(f"submissions a second, {clients} clients, {processes} processes, PostgreSQL", table)
