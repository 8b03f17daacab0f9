"""Middleware around every route: limits on bodies, security headers, request ids, the access log."""

import asyncio
import time
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, Protocol

import structlog
from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, HTTPConnection
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from service.errors import InvalidRequest, RateLimited, ServiceError, SignInRefused, TooLarge, Unauthorized
from service.http.admission import Allowances, Caller, price_of_list
from service.http.pacing import PacingByAddress
from service.http.problems import failure, mistake, respond
from service.http.route_limits import RouteLimits, declared_limits
from service.operations import metrics, tracing
from service.operations.logs import redact
from service.operations.settings import Settings

log = structlog.get_logger()

#: Addresses that need a key.
_WITH_KEY = "/v1/"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}
#: The same as bytes; no route sets any of these headers.
_ALWAYS = [(name.encode(), value.encode()) for name, value in _HEADERS.items()]
#: Polled every few seconds by monitoring; only failures are logged.
_PROBES = {"/healthz", "/readyz"}
_LONGEST_HEAD = 16 << 10
#: Refusals of requests without a valid key, for each address.
_REFUSALS_PER_SECOND = 20.0
#: Seconds of the keyless rate that may be used at once: opening the console takes about seventy requests.
_SAVED_SECONDS = 6.0
#: Longest that a request to an address without a key waits; a probe should not fail for it.
_LONGEST_KEYLESS_SECONDS = 2.0
_API_POLICY = "default-src 'none'; frame-ancestors 'none'"
_PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
)


#: Headers of every response of the API.
API_HEADERS = {**_HEADERS, "content-security-policy": _API_POLICY, "cache-control": "no-store"}


class Pace:
    """Minimum pace of a body: a longest pause, and an average speed."""

    def __init__(self, settings: Settings):
        self._idle = settings.body_idle_seconds
        self._speed = settings.body_bytes_per_second
        self._started = time.monotonic()
        self._received = 0

    async def next(self, receive: Receive) -> Message:
        """Receive the next message of a body; InvalidRequest (408) when it comes too slowly."""
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


class _Exchange:
    """One request and its response: counts bytes, and gives up on callers that send or read too slowly."""

    def __init__(self, receive: Receive, send: Send, settings: Settings, on_head: Callable[[Message], None]):
        self._receive, self._send = receive, send
        self._settings = settings
        self._on_head = on_head
        self._body: bytes | None = None
        self.status = self.received = self.sent = 0

    async def read_body(self, limit: int) -> None:
        """Read the whole body, which `receive` then passes on; TooLarge as soon as it is longer."""
        body, pace, more = bytearray(), Pace(self._settings), True
        while more:
            message = await pace.next(self.receive)
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > limit:
                raise TooLarge(f"the body may have at most {limit} bytes", limit=limit)
            more = message.get("more_body", False)
        self._body = bytes(body)

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        message = await self._receive()
        self.received += len(message.get("body", b""))
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self._on_head(message)
        size = len(message.get("body", b""))
        self.sent += size
        settings = self._settings
        try:
            async with asyncio.timeout(settings.body_idle_seconds + size / settings.body_bytes_per_second):
                await self._send(message)
        except TimeoutError:
            log.info("client reads too slowly")
            raise ClientDisconnect from None


class AccessEvents(Protocol):
    """What keeps a record of who read what."""

    def require_room(self) -> None: ...

    def note(self, scope: Scope, head: Message) -> None: ...


async def _refuse(error: ServiceError, scope: Scope, exchange: _Exchange) -> None:
    """Respond without reading what is left of the body."""
    error.headers["Connection"] = "close"
    await respond(error)(scope, exchange.receive, exchange.send)


class RequestLimits:
    """ASGI middleware around the whole app.

    `authenticate` finds the caller of a request by its headers, or raises. Everything below `/v1/` needs a
    caller, and nothing of a body is read before there is one; outside of it no route takes a body.
    `limits_of` finds what the route of a request declares. `access_events` are told of each answer's head.
    """

    def __init__(
        self,
        app: ASGIApp,
        settings: Settings,
        authenticate: Callable[[HTTPConnection], Caller],
        limits_of: Callable[[Scope], RouteLimits],
        access_events: AccessEvents,
    ):
        self._app = app
        self._limits_of = limits_of
        self._access_events = access_events
        self._settings = settings
        self._authenticate = authenticate
        self._allowances = Allowances(settings)
        self._strangers = PacingByAddress(_REFUSALS_PER_SECOND)
        self._keyless = PacingByAddress(
            settings.keyless_rate, saved=_SAVED_SECONDS, longest_seconds=_LONGEST_KEYLESS_SECONDS
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = uuid.uuid4().hex
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(request=request_id)
        started = time.perf_counter()
        exchange = _Exchange(receive, send, self._settings, partial(self._begin, scope, request_id))
        with _traced(scope, request_id) as span:
            try:
                await self._answer(scope, exchange)
            finally:
                _record(scope, exchange.status, time.perf_counter() - started)
                if span is not None:
                    _describe(span, scope, exchange.status)

    def _begin(self, scope: Scope, request_id: str, head: Message) -> None:
        """Begin to answer: nothing has been sent yet."""
        self._access_events.note(scope, head)
        _add_headers(scope, request_id, head)

    async def _answer(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            if _head_bytes(scope) > _LONGEST_HEAD:
                raise InvalidRequest(
                    f"the head of a request may have at most {_LONGEST_HEAD} bytes", status=431
                )
            if not scope["path"].startswith(_WITH_KEY):
                await asyncio.sleep(self._keyless.wait(scope))
                await self._run(scope, exchange)
                return
            self._access_events.require_room()
            limits = self._limits_of(scope)
            caller = await self._identify(scope, limits)
        except ServiceError as error:
            await _refuse(error, scope, exchange)
            return
        except Exception as error:  # of authentication: the database may be away
            await failure(error)(scope, exchange.receive, exchange.send)
            return
        try:
            await self._admit(scope, exchange, limits)
        finally:
            self._allowances.leave(caller.id, limits.price_of_bytes(exchange.received, exchange.sent))

    async def _identify(self, scope: Scope, limits: RouteLimits) -> Caller:
        """Return the caller, counted in; refusals are raised when their turn has come."""
        try:
            caller = await to_thread.run_sync(self._authenticate, HTTPConnection(scope))
        except (Unauthorized, SignInRefused):
            await asyncio.sleep(self._strangers.wait(scope))
            raise
        state = scope.setdefault("state", {})
        state.update(caller=caller, use_allowance=partial(self._allowances.use, caller.id))
        try:
            self._allowances.enter(caller.id, limits.price + price_of_list(scope))
        except RateLimited:
            await asyncio.sleep(self._allowances.pause(caller.id))
            raise
        return caller

    async def _admit(self, scope: Scope, exchange: _Exchange, limits: RouteLimits) -> None:
        """Read a body up to its limit and pass it on; an upload's body is left to its route."""
        limit = limits.longest_body(self._settings)
        headers = Headers(scope=scope)
        announced = headers.get("content-length", "")
        try:
            if announced and "transfer-encoding" in headers:
                raise InvalidRequest(
                    "the request has Content-Length and Transfer-Encoding, which contradict each other",
                    status=400,
                    next_step="Send one of the two.",
                )
            if announced.isdecimal() and int(announced) > limit:
                raise TooLarge(f"the body may have at most {limit} bytes", limit=limit)
            if not limits.streams_body:
                await exchange.read_body(limit)
        except ServiceError as error:
            await _refuse(error, scope, exchange)
            return
        await self._run(scope, exchange)

    async def _run(self, scope: Scope, exchange: _Exchange) -> None:
        try:
            await self._app(scope, exchange.receive, exchange.send)
        except ClientDisconnect:
            log.info("client disconnected")
        except Exception as error:
            # Handled here: the framework would respond outside this middleware, without its headers.
            if exchange.status:
                raise
            await mistake(error)(scope, exchange.receive, exchange.send)


def _traced(scope: Scope, request_id: str) -> AbstractContextManager[Any]:
    """Return the span of a request; none for probes."""
    return nullcontext() if scope["path"] in _PROBES else tracing.span("request", request=request_id)


def _describe(span: Any, scope: Scope, status: int) -> None:
    """Name the span of a request by its route, which says nothing that a caller can make up."""
    route = getattr(scope.get("route"), "path", None)
    if route is not None:
        span.update_name(f"{scope['method']} {route}")
        span.set_attributes({"http.request.method": scope["method"], "http.route": route})
    span.set_attribute("http.response.status_code", status)


def _record(scope: Scope, status: int, seconds: float) -> None:
    """Log a request with its caller and address, and count it; probes are worth a line when they fail."""
    probe = scope["path"] in _PROBES
    if not probe:
        metrics.request_served(_area(scope), status, seconds)
    caller = scope.get("state", {}).get("caller")
    client = scope.get("client")
    (log.debug if probe and status == 200 else log.info)(
        "request",
        method=scope["method"],
        path=redact(scope["path"])[:200],  # redacted before it is cut
        status=status,
        milliseconds=round(seconds * 1000, 1),
        caller=caller.name if caller else None,
        address=client[0] if client else None,
    )


def _area(scope: Scope) -> str:
    """Return the area of the API that a request is counted under, by its route: callers send any path."""
    route = scope.get("route")
    limits = declared_limits(route)
    if limits and limits.streams_body:
        return "uploads"
    template = getattr(route, "path", "")
    return template.removeprefix(_WITH_KEY).strip("/").split("/")[0] or "other"


def _add_headers(scope: Scope, request_id: str, message: Message) -> None:
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
