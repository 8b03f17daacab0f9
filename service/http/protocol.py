"""uvicorn's HTTP protocol with a time limit on request heads."""

import asyncio
import json
from contextlib import suppress
from http import HTTPStatus
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from service.errors import InvalidRequest
from service.http.limits import API_HEADERS

_MOST_AT_ONCE = 2 << 20


class PatientProtocol(H11Protocol):
    """Closes a connection on which a request's head is not complete in time.

    uvicorn counts the time between requests, but not that within a request's head, nor that of a body
    which goes on arriving after the answer.
    """

    _due: asyncio.TimerHandle | None = None

    def __init__(self, *args: Any, head_seconds: float, **options: Any):
        super().__init__(*args, **options)
        self._head_seconds = head_seconds

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(transport)
        # Read more from the socket at a time: uploads then arrive in fewer, larger pieces.
        with suppress(AttributeError):  # only asyncio's own transports have it
            transport.max_size = _MOST_AT_ONCE  # type: ignore[attr-defined]  # as above
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._forget()
        elif self._due is None and not self.transport.is_closing():
            self._expect_head()

    def on_response_complete(self) -> None:
        self._forget()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Respond to malformed HTTP and to long heads with a problem, as to every invalid request."""
        problem = InvalidRequest("this is not HTTP, or its head is longer than 16 KiB", status=400)
        headers = [(name.encode(), value.encode()) for name, value in API_HEADERS.items()]
        headers += [(b"content-type", b"application/problem+json"), (b"connection", b"close")]
        body = json.dumps(problem.body()).encode()
        for event in (
            h11.Response(status_code=400, headers=headers, reason=HTTPStatus.BAD_REQUEST.phrase.encode()),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _expect_head(self) -> None:
        self._due = self.loop.call_later(self._head_seconds, self._give_up)

    def _give_up(self) -> None:
        self._due = None
        if not self.transport.is_closing():
            self.transport.close()

    def _forget(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
