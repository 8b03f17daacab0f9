"""A proxy before a real service that breaks connections where a test tells it to."""

from __future__ import annotations

import http.client
import json
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import urlsplit

__all__ = ["Fault", "Flaky", "flaky"]

#: `cut`: the request is lost; `lose`: it is carried out, but its answer is lost; `busy`: 503 for a moment;
#: `hold`: nothing is carried out or answered for as long as the proxy is there.
Fault = Literal["cut", "lose", "busy", "hold"]
_HOP = {"connection", "transfer-encoding", "keep-alive", "server", "date", "content-length"}


class Flaky:
    """What the proxy saw, and the faults it has yet to make, one per matching request."""

    def __init__(self, upstream: str):
        self.upstream = upstream
        self.url = ""
        self.closed = False
        self.over = threading.Event()
        #: Method, path and headers of each request that arrived.
        self.seen: list[tuple[str, str, dict[str, str]]] = []
        self._faults: deque[tuple[str, Fault]] = deque()
        self._watched: list[tuple[str, threading.Event]] = []

    def make(self, *faults: Fault, on: str) -> None:
        """Have the next requests that begin with `on` ("POST /v1/jobs") meet these faults."""
        self._faults.extend((on, fault) for fault in faults)

    def expect(self, beginning: str) -> threading.Event:
        """An event that is set once a request that begins so was answered, or is held."""
        event = threading.Event()
        self._watched.append((beginning, event))
        return event

    def times(self, beginning: str) -> int:
        """How often a request that begins so arrived."""
        return sum(f"{method} {path}".startswith(beginning) for method, path, _ in self.seen)

    def next_fault(self, line: str) -> Fault | None:
        if self._faults and line.startswith(self._faults[0][0]):
            return self._faults.popleft()[1]
        return None

    def answered(self, line: str) -> None:
        for beginning, event in self._watched:
            if line.startswith(beginning):
                event.set()


def _handler(state: Flaky) -> type[BaseHTTPRequestHandler]:
    place = urlsplit(state.upstream)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

        def _pass(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            line = f"{self.command} {self.path}"
            state.seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
            fault = "cut" if state.closed else state.next_fault(line)
            if fault == "cut":
                self.close_connection = True
                return
            if fault == "busy":
                problem = {"type": "/problems/unavailable", "title": "", "status": 503, "detail": "busy"}
                self._answer(503, {"Retry-After": "3", "Content-Type": "application/problem+json"}, problem)
                return
            if fault == "hold":
                state.answered(line)
                state.over.wait()
                self.close_connection = True
                return
            status, headers, answer = self._ask(body)
            if fault == "lose":
                self.close_connection = True
                return
            self._answer(status, headers, answer)
            state.answered(line)

        def _ask(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            assert place.hostname is not None
            connection = http.client.HTTPConnection(place.hostname, place.port, timeout=60)
            headers = {name: value for name, value in self.headers.items() if name.lower() not in _HOP}
            connection.request(self.command, self.path, body, headers)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            kept = {name: value for name, value in answer.getheaders() if name.lower() not in _HOP}
            return answer.status, kept, content

        def _answer(self, status: int, headers: dict[str, str], body: Any) -> None:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_DELETE = _pass  # noqa: N815  names that http.server looks for

    return Handler


@contextmanager
def flaky(upstream: str) -> Iterator[Flaky]:
    """A proxy to a service, for as long as a test needs it."""
    state = Flaky(upstream)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield state
    finally:
        state.closed = True  # connections that are still open are cut too
        state.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
