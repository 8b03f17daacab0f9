"""A real service in its own processes, for the console's tests and pictures."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil

from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.states import Role
from service.people import keys, principals

ROOT = Path(__file__).parent.parent.parent
_PATIENCE = 120.0


class Service:
    """API and worker processes on an SQLite file, with a curator; speaks HTTP for setting scenes."""

    def __init__(self, database: Path, *, port: int | None = None, settings: Mapping[str, str] | None = None):
        """`settings` of the service, by the names of their variables."""
        self.address = f"http://127.0.0.1:{port or free_port()}"
        self._folder = database.parent
        self._environment = {
            **os.environ,
            "CAIRN_DATABASE_URL": f"sqlite:///{database}",
            "CAIRN_CACHE_DIRECTORY": str(self._folder / "cache"),
            "CAIRN_SIGNING_KEY_FILE": str(self._folder / "signing-key.pem"),
            "CAIRN_PORT": self.address.rsplit(":", 1)[1],
            "CAIRN_LOG_LEVEL": "warning",
            "CAIRN_POLL_MOST_SECONDS": "0.2",
            "CAIRN_CALLER_RATE": "1000000",
            "CAIRN_CALLER_BURST": "1000000",
            "CAIRN_KEYLESS_RATE": "1000000",
            "CAIRN_REHEARSALS_PER_MINUTE": "100000",
            **(settings or {}),
        }
        self.curator_key = _first_curator(database)
        self._log = (self._folder / "service.log").open("wb")
        self._api = self._start("serve", "--workers", "0", "--no-migrate")
        self._worker = self._start("worker", "--processes", "1")
        self._client = httpx.Client(base_url=self.address, timeout=60)
        self._await()

    def _start(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "service.cli", *arguments]
        return subprocess.Popen(
            command,
            cwd=ROOT,
            env=self._environment,
            stdout=self._log,
            stderr=self._log,
        )

    def _await(self) -> None:
        limit = time.monotonic() + _PATIENCE
        while time.monotonic() < limit and self._api.poll() is None:
            try:
                if self._client.get("/readyz").status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.1)
        self.close()
        raise RuntimeError(f"the service did not start:\n{(self._folder / 'service.log').read_text()}")

    def close(self) -> None:
        self._client.close()
        for process in (self._worker, self._api):
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in (self._worker, self._api):
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._log.close()

    @contextmanager
    def resting_worker(self) -> Iterator[None]:
        """While this lasts, no job is taken: what is submitted stays queued."""
        workers = psutil.Process(self._worker.pid).children()
        assert workers, "the worker process has gone"
        while True:
            for each in workers:
                each.suspend()
            if self._can_write():
                break
            for each in workers:  # it was stopped in the middle of a transaction: let it finish that
                each.resume()
        try:
            yield
        finally:
            for each in workers:
                each.resume()

    def _can_write(self) -> bool:
        with closing(sqlite3.connect(self._folder / "cairn.sqlite3", timeout=0)) as connection:
            try:
                connection.execute("BEGIN IMMEDIATE")
            except sqlite3.OperationalError:
                return False
            connection.rollback()
            return True

    def call(self, verb: str, path: str, *, key: str | None = None, **options: Any) -> Any:
        """One request as the curator, or with another key; the answer's JSON."""
        headers = {"Authorization": f"Bearer {key or self.curator_key}", **options.pop("headers", {})}
        answer = self._client.request(verb, path, headers=headers, **options)
        assert answer.is_success, f"{verb} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def analyst(self, name: str) -> str:
        """A new analyst's key."""
        made = self.call("POST", "/v1/principals", json={"name": name, "role": "analyst"})
        return str(made["first_key"]["key"])

    def dataset(
        self,
        name: str,
        rows: bytes,
        columns: dict[str, tuple[float, float]],
        *,
        description: str = "",
        budget: tuple[str, str] = ("3", "0.00001"),
        size: int = 4000,
        caps: dict[str, tuple[str, str]] | None = None,
    ) -> None:
        """A sealed dataset with grants."""
        body = {
            "name": name,
            "description": description,
            "columns": list(columns),
            "bounds": {
                "box": {
                    "low": [low for low, _ in columns.values()],
                    "high": [high for _, high in columns.values()],
                }
            },
            "size": size,
            "budget": {"epsilon": budget[0], "delta": budget[1]},
        }
        self.call("POST", "/v1/datasets", json=body)
        self.call("PUT", f"/v1/datasets/{name}/data", content=rows, headers={"Content-Type": "text/csv"})
        self.call("POST", f"/v1/datasets/{name}/seal", json={"confirm": ["clipped", "size"]})
        for analyst, (epsilon, delta) in (caps or {}).items():
            cap = {"epsilon": epsilon, "delta": delta}
            self.call("PUT", f"/v1/datasets/{name}/grants/{analyst}", json=cap)


def _first_curator(path: Path) -> str:
    database = Database(f"sqlite:///{path}")
    now = SystemClock().now()
    with database.write() as session:
        curator = principals.create(session, "carla", Role.CURATOR, by=None, at=now)
        key = keys.issue(session, curator, by="carla", at=now).text
    database.dispose()
    return key


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
