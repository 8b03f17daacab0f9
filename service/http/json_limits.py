"""Limits on JSON bodies: routes that refuse what Python's parser would accept."""

import json
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from anyio import to_thread
from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.errors import InvalidRequest, ServiceError
from service.http.problems import respond
from service.operations.settings import KIB

_MOST_LEVELS, _MOST_VALUES = 32, 100_000
_RULES = f"UTF-8, no NaN or Infinity, no key twice, at most {_MOST_LEVELS} levels and {_MOST_VALUES} values"
#: Larger bodies are parsed by a thread, so that other requests go on.
_PARSED_AT_ONCE = 8 * KIB


class _StrictRequest(Request):
    """A request whose JSON body is parsed once, under the limits."""

    async def json(self) -> Any:
        if not hasattr(self, "_parsed"):
            body = await self.body()
            parse = partial(strict_json, body)
            self._parsed = parse() if len(body) <= _PARSED_AT_ONCE else await to_thread.run_sync(parse)
        return self._parsed


class StrictRoute(APIRoute):
    """A route whose JSON body must keep the limits."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            strict = _StrictRequest(request.scope, request.receive)
            # Only where a body is expected: an upload announced as JSON must not be read into memory.
            if self.body_field is not None and _is_json(request):
                try:
                    await strict.json()  # here: FastAPI would replace our error by its own
                except ServiceError as error:
                    return respond(error)
            return await handle(strict)

        return strictly


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    return has_body and (kind == "application/json" or kind.endswith("+json"))


def strict_json(text: bytes) -> Any:
    """Parse JSON; refuse NaN, infinities, duplicate keys, lone surrogates, NUL, deep nesting, many values."""
    try:
        if sum(text.count(mark) for mark in (b",", b"[", b"{")) > _MOST_VALUES:
            raise ValueError("too many values")
        value = json.loads(text, parse_constant=_refuse, object_pairs_hook=_no_double_keys)
        _check(value, 0)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest("the body is not valid JSON: " + _RULES) from error
    return value


def _refuse(name: str) -> None:
    raise ValueError(name)


def _no_double_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _check(value: Any, level: int) -> None:
    if level > _MOST_LEVELS:
        raise ValueError("too deep")
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("zero character")
        value.encode("utf-8")
    elif isinstance(value, float):
        if value in (float("inf"), float("-inf")):
            raise ValueError("infinite")
    elif isinstance(value, dict):
        for name, each in value.items():
            _check(name, level + 1)
            _check(each, level + 1)
    elif isinstance(value, list):
        for each in value:
            _check(each, level + 1)
