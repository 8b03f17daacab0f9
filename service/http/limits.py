"""What stands before every route: size and pace of bodies, security headers, request ids, the access log."""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable

import structlog
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InvalidRequest, ServiceError, TooLarge
from service.http.problems import mistake, respond
from service.operations.logs import redact
from service.operations.settings import Settings

__all__ = ["API_HEADERS", "Pace", "RequestLimits"]

log = structlog.get_logger()

_UPLOAD = re.compile(r"/v1/datasets/[^/]+/data")
_SITES = re.compile(r"/v1/datasets/[^/]+/sites/[^/]+")
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
#: The same as bytes; no route sets any of them.
_ALWAYS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
#: Asked every few seconds by whoever watches the service; only their failures are worth a line.
_PROBES = {"/healthz", "/readyz"}
_LONGEST_HEAD = 16 << 10
_API_POLICY = "default-src 'none'; frame-ancestors 'none'"
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


#: What every answer of the API carries.
API_HEADERS = {**_HEADERS, "content-security-policy": _API_POLICY, "cache-control": "no-store"}


class Pace:
    """How slowly a body may arrive: no pause may be long, and all of it must come at some speed."""

    def __init__(self, settings: Settings):
        self._idle = settings.body_idle_seconds
        self._speed = settings.body_bytes_per_second
        self._started = time.monotonic()
        self._received = 0

    async def next(self, receive: Receive) -> Message:
        """The next message of a body; a caller who is too slow is given up."""
        due = self._started + self._idle + self._received / self._speed
        patience = min(self._idle, due - time.monotonic())
        try:
            async with asyncio.timeout(max(0.0, patience)):  # unlike `wait_for`, it starts no task
                message = await receive()
        except TimeoutError:
            raise InvalidRequest("the body did not arrive in time; send it again", status=408) from None
        self._received += len(message.get("body", b""))
        return message


def _head_bytes(scope: Scope) -> int:
    named = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    return named + len(scope.get("raw_path") or b"") + len(scope["query_string"])


class RequestLimits:
    """ASGI middleware around the whole app."""

    def __init__(self, app: ASGIApp, settings: Settings):
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request=request_id)
        started = time.perf_counter()
        status = 0

        async def guarded(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(scope, message, request_id)
            await send(message)

        try:
            await self._admit(scope, receive, guarded, lambda: status != 0)
        finally:
            probe = scope["path"] in _PROBES and status == 200
            (log.debug if probe else log.info)(
                "request",
                method=scope["method"],
                path=redact(scope["path"])[:200],  # cut afterwards: half a key is no longer recognised
                status=status,
                milliseconds=round((time.perf_counter() - started) * 1000, 1),
            )

    async def _admit(self, scope: Scope, receive: Receive, send: Send, answered: Callable[[], bool]) -> None:
        try:
            received = await self._read(scope, receive)
        except ServiceError as error:
            error.headers["Connection"] = "close"
            await respond(error)(scope, receive, send)
            return
        try:
            await self._app(scope, received, send)
        except ClientDisconnect:
            log.info("the caller went away")
        except Exception as error:
            # Here and not by the framework, which would answer outside of this middleware: without headers.
            if answered():
                raise
            await mistake(error)(scope, receive, send)

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """Read a body up to its limit, and hand it on; an upload's body is left to its route."""
        path = scope["path"]
        if _head_bytes(scope) > _LONGEST_HEAD:
            raise InvalidRequest(f"the head of a request may have at most {_LONGEST_HEAD} bytes", status=431)
        upload = scope["method"] == "PUT" and _UPLOAD.fullmatch(path) is not None
        limit = self._settings.max_body_bytes
        if upload:
            limit = self._settings.max_upload_bytes
        elif _SITES.fullmatch(path):
            limit = self._settings.max_sites_bytes
        announced = Headers(scope=scope).get("content-length", "")
        if announced.isdecimal() and int(announced) > limit:
            raise TooLarge(f"the body may have at most {limit} bytes", limit=limit)
        if upload:
            return receive
        body, pace = bytearray(), Pace(self._settings)
        while True:
            message = await pace.next(receive)
            if message["type"] == "http.disconnect":
                return receive
            body += message.get("body", b"")
            if len(body) > limit:
                raise TooLarge(f"the body may have at most {limit} bytes", limit=limit)
            if not message.get("more_body", False):
                break
        whole: Message | None = {"type": "http.request", "body": bytes(body), "more_body": False}

        async def replay() -> Message:
            nonlocal whole
            if whole is not None:
                message, whole = whole, None
                return message
            return await receive()

        return replay

    def _add_headers(self, scope: Scope, message: Message, request_id: str) -> None:
        present = dict(message["headers"])
        page = present.get(b"content-type", b"").startswith(b"text/html")
        added = [*_ALWAYS, (b"x-request-id", request_id.encode())]
        if b"content-security-policy" not in present:
            added.append((b"content-security-policy", (_PAGE_POLICY if page else _API_POLICY).encode()))
        if b"cache-control" not in present:
            added.append((b"cache-control", b"no-store"))
        if scope.get("scheme") == "https":
            added.append((b"strict-transport-security", b"max-age=31536000"))
        message["headers"] = [*message["headers"], *added]
