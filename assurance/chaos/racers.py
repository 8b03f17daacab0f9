"""Those who race for a job: clients released together, and worker processes that wait for a word."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import time
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Self

import uvicorn

from assurance.chaos.scene import Scene
from assurance.chaos.stage import LaterClock, fork
from service.app import create_app
from service.jobs import queue
from service.jobs.claims import Claim, Outcome
from service.operations import faults
from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.settings import Settings
from service.workers.worker import Worker

__all__ = ["Answer", "Apis", "Clients", "Racer", "Request"]

#: Servers close what is idle for long; a connection that is older than this is opened anew.
_FRESH_SECONDS = 15.0
_RESULT = Outcome({"centres": []}, {"digest": ""}, [b"released"])


@dataclass(frozen=True)
class Request:
    """One request of one client."""

    verb: str
    path: str
    key: str
    body: bytes = b""
    kind: str = "application/json"
    idempotency_key: str = ""

    def wire(self) -> bytes:
        lines = [
            f"{self.verb} {self.path} HTTP/1.1",
            "Host: test",
            f"Authorization: Bearer {self.key}",
            f"Content-Type: {self.kind}",
            f"Content-Length: {len(self.body)}",
            *([f"Idempotency-Key: {self.idempotency_key}"] if self.idempotency_key else []),
        ]
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + self.body


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    body: dict[str, Any]

    @property
    def problem(self) -> str:
        return str(self.body.get("type", "")).removeprefix("/problems/")


class Clients:
    """Connections of their own. All but the last byte of every request is sent first; the last bytes are the
    barrier: they leave together, within microseconds.
    """

    def __init__(self, port: int):
        self._port = port
        self._sockets: list[tuple[socket.socket, float]] = []
        self.sent = 0

    def prepare(self, requests: list[Request]) -> None:
        now = time.monotonic()
        while len(self._sockets) < len(requests):
            self._sockets.append((self._connect(), now))
        for place, request in enumerate(requests):
            line, used = self._sockets[place]
            if now - used > _FRESH_SECONDS:
                line.close()
                line = self._connect()
            self._sockets[place] = (line, now)
            line.sendall(request.wire()[:-1])

    def release(self, requests: list[Request]) -> None:
        for (line, _), request in zip(self._sockets, requests, strict=False):
            line.sendall(request.wire()[-1:])

    def answers(self, requests: list[Request]) -> list[Answer]:
        self.sent += len(requests)
        return [self._read(place, each) for place, each in enumerate(requests)]

    def all_at_once(self, requests: list[Request]) -> list[Answer]:
        self.prepare(requests)
        self.release(requests)
        return self.answers(requests)

    def close(self) -> None:
        for line, _ in self._sockets:
            line.close()

    def _connect(self) -> socket.socket:
        line = socket.create_connection(("127.0.0.1", self._port), timeout=90)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return line

    def _read(self, place: int, request: Request) -> Answer:
        line, _ = self._sockets[place]
        answer = http.client.HTTPResponse(line, method=request.verb)
        answer.begin()
        content = answer.read()
        if answer.will_close:
            line.close()
            self._sockets[place] = (self._connect(), time.monotonic())
        return Answer(answer.status, json.loads(content) if content else {})


class Apis:
    """API processes that share one listening socket, as `CAIRN_API_PROCESSES` makes them."""

    def __init__(self, scene: Scene, processes: int, order: str = "", *, url: str | None = None):
        settings = scene.settings
        if url is not None:
            settings = settings.model_copy(update={"database_url": url})
        app = create_app(settings)  # before the fork, and before it has connected to anything
        listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port: int = listener.getsockname()[1]
        scene.database.dispose()

        def serve() -> None:
            faults.arm(order)
            config = uvicorn.Config(app, log_level="error", access_log=False, timeout_keep_alive=60)
            uvicorn.Server(config).run([listener])

        self.processes = [fork(serve) for _ in range(processes)]
        listener.close()

    def close(self) -> None:
        for process in self.processes:
            os.kill(process, signal.SIGKILL)
            os.waitpid(process, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Racer:
    """A worker process that claims and finishes on a word from the campaign."""

    def __init__(self, settings: Settings, name: str):
        down, self._word = os.pipe()
        self._report, up = os.pipe()
        self.process = fork(lambda: self._live(settings, name, down, up))
        os.close(down)
        os.close(up)

    def claim(self, ahead: int = 0) -> None:
        """Have it claim a job, by a clock so many seconds ahead."""
        os.write(self._word, b"c%03d" % ahead)

    def finish(self) -> None:
        """Have it store a result for the job it claimed last."""
        os.write(self._word, b"f000")

    def answer(self) -> str:
        """The job it claimed, `stored` or `refused`; `-` when there was nothing."""
        return os.read(self._report, 36).decode().strip()

    def close(self) -> None:
        os.kill(self.process, signal.SIGKILL)
        os.waitpid(self.process, 0)
        os.close(self._word)
        os.close(self._report)

    def _live(self, settings: Settings, name: str, down: int, up: int) -> None:
        database = Database(settings.database_address(), pool=3)
        held: Claim | None = None
        while word := os.read(down, 4):
            if word[:1] == b"c":
                worker = Worker(settings, database, LaterClock(float(word[1:])), name=name)
                held = worker.claim()
                said = held.job_id if held else "-"
            else:
                said = "-" if held is None else self._finish(database, held)
            os.write(up, said.ljust(36).encode())

    @staticmethod
    def _finish(database: Database, held: Claim) -> str:
        with database.write() as session:
            now = SystemClock().now() + timedelta(seconds=1)
            return "stored" if queue.finish(session, held, now=now, result=_RESULT) else "refused"
