"""What stands before every route: size and pace of bodies, security headers, request ids, the access log."""

from __future__ import annotations

import asyncio
import re
import time
import uuid

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.api.problems import respond
from service.errors import InvalidRequest, ServiceError, TooLarge
from service.settings import Settings

__all__ = ["Shield", "within"]

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
_API_POLICY = "default-src 'none'; frame-ancestors 'none'"
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


async def within(receive: Receive, seconds: float) -> Message:
    """The next message of a body; a caller who pauses too long is given up."""
    try:
        return await asyncio.wait_for(receive(), seconds)
    except TimeoutError:
        raise InvalidRequest("the body did not arrive in time; send it again", status=408) from None


class Shield:
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
            await self._admit(scope, receive, guarded)
        finally:
            log.info(
                "request",
                method=scope["method"],
                path=scope["path"][:200],
                status=status,
                milliseconds=round((time.perf_counter() - started) * 1000, 1),
            )

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            received = await self._read(scope, receive)
        except ServiceError as error:
            error.headers["Connection"] = "close"
            await respond(error)(scope, receive, send)
            return
        await self._app(scope, received, send)

    async def _read(self, scope: Scope, receive: Receive) -> Receive:
        """Read a body up to its limit, and hand it on; an upload's body is left to its route."""
        path = scope["path"]
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
        body = bytearray()
        while True:
            message = await within(receive, self._settings.body_idle_seconds)
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
        headers = MutableHeaders(scope=message)
        for name, value in _HEADERS.items():
            headers[name] = value
        page = headers.get("content-type", "").startswith("text/html")
        headers.setdefault("content-security-policy", _PAGE_POLICY if page else _API_POLICY)
        headers.setdefault("cache-control", "no-store")
        headers["x-request-id"] = request_id
        if scope.get("scheme") == "https":
            headers["strict-transport-security"] = "max-age=31536000"
