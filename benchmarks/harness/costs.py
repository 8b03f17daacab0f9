"""What requests cost the event loop of an API process: every described call, made in this process."""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlencode

from fastapi import FastAPI

from service.http.route_limits import LimitsOfRoutes
from service.operations.settings import MIB, Settings

#: As many values as a body may have, beside those of its example.
_MOST_VALUES = 49_000
_LARGE_FILE = 4 * MIB
_READING = ("get", "head")
#: Seconds between two turns of the event loop while it is measured how long it is kept from them.
_TURN_SECONDS = 0.001


@dataclass(frozen=True)
class Call:
    """A request to a described call."""

    verb: str
    route: str
    path: str
    query: Mapping[str, Any] = field(default_factory=dict)
    accept: str = "*/*"
    content_type: str = ""
    body: bytes = b""
    #: What is large about it.
    what: str = ""

    @property
    def changes_something(self) -> bool:
        """True for a request that may change the database."""
        return self.verb not in _READING


@dataclass(frozen=True)
class Cost:
    """What one request took."""

    call: Call
    status: int
    sent_bytes: int
    #: Processor time of the event loop's thread, and of the whole process.
    loop_seconds: float
    process_seconds: float
    #: Functions that were called on the event loop.
    calls: int = 0
    #: The most that was allocated at once.
    bytes_at_once: int = 0
    #: The longest time for which the event loop had no turn, by the clock: a thread kept the interpreter.
    held_seconds: float = 0.0


async def answer(app: FastAPI, call: Call, key: str) -> tuple[int, int]:
    """Make a request to an app in this process; return the status, and how many bytes the answer has."""
    headers = {"host": "localhost", "accept": call.accept, "authorization": f"Bearer {key}"}
    if call.body:
        headers |= {"content-type": call.content_type, "content-length": str(len(call.body))}
    scope = {
        "type": "http",
        "http_version": "1.1",
        "method": call.verb.upper(),
        "scheme": "http",
        "path": call.path,
        "raw_path": call.path.encode(),
        "query_string": urlencode(call.query).encode(),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("localhost", 80),
    }
    messages = iter([{"type": "http.request", "body": call.body, "more_body": False}])
    status = sent = 0

    async def receive() -> Any:
        found = next(messages, None)
        if found is None:
            await asyncio.Event().wait()
        return found

    async def send(message: Any) -> None:
        nonlocal status, sent
        status = message.get("status", status)
        sent += len(message.get("body", b""))

    await app(scope, receive, send)
    return status, sent


class Meter:
    """Makes requests to an app on an event loop of its own, one at a time."""

    def __init__(self, app: FastAPI):
        self.app = app
        self._runner = asyncio.Runner()

    def __enter__(self) -> Meter:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def request(self, call: Call, key: str) -> Cost:
        """Make a request and return what it cost in processor time."""
        processes, threads = time.process_time(), time.thread_time()
        status, sent = self._runner.run(answer(self.app, call, key))
        return Cost(call, status, sent, time.thread_time() - threads, time.process_time() - processes)

    def calls(self, call: Call, key: str) -> int:
        """Return the number of functions that a request calls on the event loop: the same each time."""
        made = itertools.count()
        sys.setprofile(lambda _frame, event, _argument: next(made) if event in ("call", "c_call") else None)
        try:
            self._runner.run(answer(self.app, call, key))
        finally:
            sys.setprofile(None)
        return next(made)

    def bytes_at_once(self, call: Call, key: str) -> int:
        """Return the most bytes that a request allocates at once, in all threads."""
        tracemalloc.start()
        try:
            self._runner.run(answer(self.app, call, key))
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    def held(self, call: Call, key: str) -> float:
        """Return the longest time for which the event loop had no turn while a request was answered."""
        return self._runner.run(self._longest_pause(call, key))

    async def _longest_pause(self, call: Call, key: str) -> float:
        longest, answering = 0.0, asyncio.create_task(answer(self.app, call, key))
        while not answering.done():
            begun = time.perf_counter()
            await asyncio.sleep(_TURN_SECONDS)
            longest = max(longest, time.perf_counter() - begun - _TURN_SECONDS)
        await answering
        return longest


def described_calls(app: FastAPI, settings: Settings, values: Mapping[str, Any]) -> Iterator[Call]:
    """Yield requests to every described call, with the largest query, each format and the longest bodies.

    `values` are those of path and query parameters, by name; an integer that has a maximum needs none.
    """
    limits_of = LimitsOfRoutes(app.routes)
    openapi = app.openapi()
    for route, verbs in openapi["paths"].items():
        for verb, described in verbs.items():
            parameters = described.get("parameters", ())
            inside = {each["name"]: str(values.get(each["name"], "x")) for each in _in(parameters, "path")}
            path = route.format(**inside)
            formats = described["responses"].get("200", {}).get("content") or {"*/*": {}}
            for query in _queries(parameters, values):
                for accept in formats:
                    call = Call(verb, f"{verb.upper()} {route}", path, query, accept)
                    scope = {"type": "http", "method": verb.upper(), "path": path}
                    longest = limits_of(scope).longest_body(settings)
                    yield from _with_bodies(call, described, openapi, longest)


def _in(parameters: Sequence[Mapping[str, Any]], place: str) -> list[Mapping[str, Any]]:
    return [each for each in parameters if each["in"] == place]


def _queries(parameters: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the query without parameters, and the one with the largest of each."""
    largest = {}
    for each in _in(parameters, "query"):
        schemas = each["schema"].get("anyOf", [each["schema"]])
        most = next((schema["maximum"] for schema in schemas if "maximum" in schema), None)
        if (value := values.get(each["name"], most)) is not None:
            largest[each["name"]] = value
    return [{}, largest] if largest else [{}]


def _with_bodies(
    call: Call, described: Mapping[str, Any], openapi: Mapping[str, Any], longest: int
) -> Iterator[Call]:
    """Yield a call with its example as a body, and with a long one of each type."""
    contents = described.get("requestBody", {}).get("content", {})
    if not contents:
        yield call
    facts: dict[str, Any] = {"verb": call.verb, "route": call.route, "path": call.path, "query": call.query}
    for content_type, media in contents.items():
        if content_type == "application/json":
            example = _example(media, openapi)
            for what, body in {"example": example, **_long(example, media, openapi, longest)}.items():
                text = json.dumps(body, separators=(",", ":")).encode()
                yield Call(**facts, content_type=content_type, body=text, what=what)
        elif content_type == "text/csv":
            lines = min(longest, _LARGE_FILE) // 8
            yield Call(**facts, content_type=content_type, body=b"a,b\n" + b"0.5,0.5\n" * lines, what="file")


def _example(media: Mapping[str, Any], openapi: Mapping[str, Any]) -> Any:
    for named in media.get("examples", {}).values():
        return named["value"]
    return next(iter(_schema(media.get("schema", {}), openapi).get("examples", ({},))))


def _schema(schema: Mapping[str, Any], openapi: Mapping[str, Any]) -> Mapping[str, Any]:
    name = schema.get("$ref", "").rsplit("/", 1)[-1]
    found: Mapping[str, Any] = openapi["components"]["schemas"][name] if name else schema
    return found


def _long(example: Any, media: Mapping[str, Any], openapi: Mapping[str, Any], longest: int) -> dict[str, Any]:
    """Return bodies with as many values as a body may have: in each list in turn, all of them wrong."""
    count = min(_MOST_VALUES, longest // 4)
    properties = _schema(media.get("schema", {}), openapi).get("properties", {})
    lists = [
        name
        for name, schema in properties.items()
        if any(each.get("type") == "array" for each in schema.get("anyOf", (schema,)))
    ]
    return {f"long {name}": {**example, name: [[]] * count} for name in [*lists, "unknown"]}


def walk(
    meter: Meter,
    settings: Settings,
    values: Mapping[str, Any],
    keys: Sequence[str],
    restore: Callable[[], None],
    *,
    more: Sequence[Call] = (),
    repeats: int = 3,
) -> Iterator[Cost]:
    """Yield the cost of each described call, for whom it costs most; `restore` undoes what calls change.

    `more`: calls that are not made from the description.
    """
    for call in (*described_calls(meter.app, settings, values), *more):
        found = []
        for key in keys:
            for _ in range(1 if call.changes_something else repeats):
                if call.changes_something:
                    restore()
                found.append((meter.request(call, key), key))
        best = {
            key: min((cost for cost, by in found if by == key), key=lambda each: each.loop_seconds)
            for key in keys
        }
        key, cost = max(best.items(), key=lambda each: (each[1].status < 300, each[1].loop_seconds))
        held = []
        for _ in range(repeats):
            if call.changes_something:
                restore()
            held.append(meter.held(call, key))
        restore()
        at_once = meter.bytes_at_once(call, key)
        yield replace(cost, bytes_at_once=at_once, held_seconds=min(held))
