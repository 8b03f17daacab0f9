"""A service as a user starts it: real processes, reached over HTTP alone."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ROOT = Path(__file__).parent.parent.parent
_START_SECONDS = 120
_WAIT_SECONDS = 180


def outside() -> dict[str, str]:
    """The environment variables of this process, without those that would lead Python to the checkout."""
    return {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(
    url: str,
    folder: Path,
    *,
    command: tuple[str, ...] = ("serve", "--workers", "2"),
    program: str = "",
    **settings: str,
) -> Iterator[RunningService]:
    """`cairn-server serve` with two workers, stopped by SIGTERM at the end.

    It is that of the checkout, or an installed `program`, which runs away from the checkout, in `folder`.
    """
    port = int(settings.get("port") or free_port())
    environment = {
        **(outside() if program else os.environ),
        "CAIRN_DATABASE_URL": url,
        "CAIRN_PORT": str(port),
        "CAIRN_CACHE_DIRECTORY": str(folder / "cache"),
        "CAIRN_SIGNING_KEY_FILE": str(folder / "signing-key.pem"),
        "CAIRN_POLL_SECONDS": "0.05",
        "CAIRN_POLL_MOST_SECONDS": "0.2",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        **{f"CAIRN_{name.upper()}": value for name, value in settings.items()},
    }
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [program, *command] if program else [sys.executable, "-m", "service.cli", *command],
            env=environment,
            cwd=folder if program else ROOT,
            stdout=output,
            stderr=output,
        )
    running = RunningService(process, f"http://127.0.0.1:{port}", log)
    try:
        running.wait_until_ready()
        yield running
    finally:
        running.stop()


class RunningService:
    """A started service."""

    def __init__(self, process: subprocess.Popen[bytes], address: str, log: Path):
        self.process, self.address, self.log = process, address, log
        self._people: list[RemotePerson] = []

    def wait_until_ready(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                if httpx.get(f"{self.address}/readyz", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError("the service did not start:\n" + self.log.read_text())
            time.sleep(0.1)  # waiting for another program, which offers nothing to wait on

    def bootstrap_key(self) -> str:
        """The key that the first start prints once."""
        return next(word for word in self.log.read_text().split() if word.startswith("cairn_"))

    def stop(self) -> int:
        """Stop as an operator would."""
        for person in self._people:
            person.close()
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def person(self, key: str) -> RemotePerson:
        self._people.append(RemotePerson(self.address, key))
        return self._people[-1]


class RemotePerson:
    """Somebody with a key, somewhere on the network."""

    def __init__(self, address: str, key: str):
        self.key = key
        self._client = httpx.Client(base_url=address, headers={"Authorization": f"Bearer {key}"}, timeout=120)

    def call(self, verb: str, path: str, *, expect: int | None = None, **options: Any) -> httpx.Response:
        answer = self._client.request(verb, path, **options)
        if expect is not None:
            assert answer.status_code == expect, f"{verb} {path}: {answer.status_code} {answer.text}"
        return answer

    def wait(self, job: str) -> dict[str, Any]:
        """Poll a job as `Retry-After` says until it ends."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while time.monotonic() < deadline:
            answer = self.call("GET", f"/v1/jobs/{job}", expect=200)
            facts: dict[str, Any] = answer.json()
            if facts["state"] not in ("queued", "running"):
                return facts
            time.sleep(min(1.0, float(answer.headers["retry-after"])))  # as the service asks clients to
        raise AssertionError(f"job {job} did not end")

    def close(self) -> None:
        self._client.close()
