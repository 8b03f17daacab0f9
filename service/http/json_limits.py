"""Strict routes: declared query parameters alone, and limits on JSON bodies that pydantic's parser lacks."""

import math
import re
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any

from anyio import CapacityLimiter, to_thread
from fastapi import Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic_core import from_json

from service.errors import InvalidRequest, ServiceError
from service.http.problems import respond
from service.operations.settings import KIB

#: Characters of an unknown parameter's name that a refusal repeats.
_LONGEST_NAME = 80
#: Levels of lists and objects within each other.
_MOST_LEVELS = 32
#: Values of a whole body.
_MOST_VALUES = 100_000
_RULES = f"UTF-8, no NaN or Infinity, no key twice, at most {_MOST_LEVELS} levels and {_MOST_VALUES} values"
#: Larger bodies are parsed by a thread, so that other requests go on; smaller ones take less than the thread.
_PARSED_AT_ONCE = 8 * KIB
#: One thread for all of them: others would wait for the interpreter, and keep everybody else from it.
_PARSER = CapacityLimiter(1)
#: A string of valid JSON. It never backtracks, so that its time is proportional to the text.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"')


class _StrictRequest(Request):
    """A request whose JSON body is parsed once, under the limits."""

    async def json(self) -> Any:
        if not hasattr(self, "_parsed"):
            body = await self.body()
            parse = partial(strict_json, body)
            short = len(body) <= _PARSED_AT_ONCE
            self._parsed = parse() if short else await to_thread.run_sync(parse, limiter=_PARSER)
        return self._parsed


class StrictRoute(APIRoute):
    """A route that takes the query parameters that it declares, and whose JSON body must keep the limits."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        declared = list(_query_parameters(self.dependant))

        async def strictly(request: Request) -> Response:
            if (unknown := _unknown_parameter(request, declared)) is not None:
                return respond(unknown)
            strict = _StrictRequest(request.scope, request.receive)
            # Only where a body is expected: an upload announced as JSON must not be read into memory.
            if self.body_field is not None and _is_json(request):
                try:
                    await strict.json()  # here: FastAPI would replace our error by its own
                except ServiceError as error:
                    return respond(error)
            return await handle(strict)

        return strictly


def _query_parameters(dependant: Dependant) -> Iterator[str]:
    """Yield the names that a route declares, itself or through what it depends on."""
    yield from (field.alias for field in dependant.query_params)
    for inner in dependant.dependencies:
        yield from _query_parameters(inner)


def _unknown_parameter(request: Request, declared: Sequence[str]) -> InvalidRequest | None:
    """Return the refusal of a request with a parameter that would have no effect, such as a misspelt one."""
    name = next((name[:_LONGEST_NAME] for name in request.query_params if name not in declared), None)
    if name is None:
        return None
    words = f"there is no query parameter {name!r}; this call takes {', '.join(declared) or 'none'}"
    return InvalidRequest(words, errors=[{"where": f"query.{name}", "problem": words}])


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    return has_body and (kind == "application/json" or kind.endswith("+json"))


def strict_json(text: bytes) -> Any:
    """Parse JSON; refuse NaN, infinities, duplicate keys, lone surrogates, NUL, deep nesting, many values."""
    try:
        if sum(text.count(mark) for mark in (b",", b"[", b"{")) > _MOST_VALUES:
            raise ValueError("too many values")
        value = from_json(text, allow_inf_nan=False, cache_strings="keys")
        keys = _count_keys(value)
        # The parser keeps the last of equal keys, so that fewer are left than colons outside of strings.
        if keys != text.count(b":") and keys != _STRING.sub(b"", text).count(b":"):
            raise ValueError("duplicate key")
    except ValueError as error:
        raise InvalidRequest("the body is not valid JSON: " + _RULES) from error
    return value


def _count_keys(value: Any) -> int:
    """Return the number of keys in a value and all it holds; ValueError for what no body may hold."""
    keys, layer = 0, [value]
    for _ in range(_MOST_LEVELS + 1):
        below: list[Any] = []
        for each in layer:
            kind = type(each)
            if kind is list:
                below += each
            elif kind is float:
                if math.isinf(each):  # of a number such as 1e999
                    raise ValueError("infinite")
            elif kind is str:
                if "\0" in each:
                    raise ValueError("zero character")
            elif kind is dict:
                keys += len(each)
                below += each
                below += each.values()
        if not below:
            return keys
        layer = below
    raise ValueError("too deep")
