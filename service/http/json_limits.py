"""Routes that read JSON strictly: what Python's parser would let pass is refused here."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute

from service.errors import ServiceError
from service.http.problems import respond, strict_json

__all__ = ["StrictRoute"]


class _StrictRequest(Request):
    """A request whose body is parsed once, strictly."""

    async def json(self) -> Any:
        if not hasattr(self, "_parsed"):
            self._parsed = strict_json(await self.body())
        return self._parsed


class StrictRoute(APIRoute):
    """A route whose JSON body follows the strict rules."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def strictly(request: Request) -> Response:
            strict = _StrictRequest(request.scope, request.receive)
            # Only where a body is expected: an upload that says it is JSON must not be read into memory.
            if self.body_field is not None and _is_json(request):
                try:
                    await strict.json()  # here, because FastAPI would turn our error into its own
                except ServiceError as error:
                    return respond(error)
            return await handle(strict)

        return strictly


def _is_json(request: Request) -> bool:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    return has_body and (kind == "application/json" or kind.endswith("+json"))
