"""Events of access: who read what, when, from where and by which key or session; who was refused what.

A route declares its event by `openapi_extra=recorded(...)`. It is noted as the answer begins, before
anything that was released leaves the process.
"""

import re
from typing import Any
from urllib.parse import parse_qs

from fastapi.routing import APIRoute
from starlette.types import Message, Scope

from service.http.context import Context
from service.http.wire import JOB_PATTERN, NAME_PATTERN
from service.operations.audit_batches import AccessEvent
from service.operations.states import Role
from service.people.authentication import Caller, Reached

#: Field of the OpenAPI description with the event of a call.
DECLARED = "x-audit-event"
_DONE = (200, 201)
_REFUSED = (403, 404, 409, 429)
#: Status of a request without a valid key, session or token.
_UNKNOWN = 401
#: Where refusals are recorded.
_GUARDED = ("/v1/datasets", "/v1/jobs", "/v1/plans", "/v1/requests")
_MEDIA_TYPE = re.compile(r"[a-z]+/(?:x-)?([a-z-]+)")
_LONGEST_ADDRESS = 64


def recorded(action: str, *parameters: str, only: Role | None = None) -> dict[str, Any]:
    """Declare the event of a route's answers, with these parameters of the query; `only`: to this role."""
    return {DECLARED: {"action": action, "parameters": list(parameters), **({"only": only} if only else {})}}


class AccessEvents:
    """Notes what each answer is evidence of."""

    def __init__(self, context: Context):
        self._context = context

    def require_room(self) -> None:
        """Raise Unavailable while no further event can be kept."""
        self._context.audit_batches.require_room()

    def note(self, scope: Scope, head: Message) -> None:
        """Keep the event of an answer, by its head; most answers have none."""
        caller = scope.get("state", {}).get("caller")
        if caller is None:
            if head["status"] == _UNKNOWN:
                self._context.audit_batches.count_unknown()
            return
        declared = (getattr(scope.get("route"), "openapi_extra", None) or {}).get(DECLARED)
        if head["status"] in _DONE and declared and declared.get("only") in (None, caller.role):
            details = {**_asked(scope, declared["parameters"]), **_form(head)}
            for reached in dict.fromkeys(caller.reached) or [Reached()]:
                event = self._event(declared["action"], caller, reached, scope, details)
                self._context.audit_batches.add(event)
        elif head["status"] in _REFUSED and (call := _guarded(scope)):
            details = {"call": call, "status": head["status"]}
            reached = next(reversed(caller.reached), None) or _named(scope)
            event = self._event("refuse", caller, reached, scope, details)
            self._context.audit_batches.add_refusal(event)

    def _event(
        self, action: str, caller: Caller, reached: Reached, scope: Scope, details: dict[str, Any]
    ) -> AccessEvent:
        return AccessEvent(
            action,
            caller.name,
            self._context.clock.now(),
            reached.dataset_id,
            reached.dataset,
            reached.job,
            caller.key_id,
            {**details, **_origin(caller, scope)},
        )


def _guarded(scope: Scope) -> str | None:
    """Return the call of a request whose refusal is recorded; of one that no route has seen, its area."""
    route = scope.get("route")
    if isinstance(route, APIRoute):
        return route.name.replace("_", " ") if route.path.startswith(_GUARDED) else None
    area = next((each for each in _GUARDED if scope["path"].startswith(each)), None)
    return area and f"{scope['method']} {area}"


def _asked(scope: Scope, parameters: list[str]) -> dict[str, str]:
    """Return these parameters of a query that the route has accepted."""
    if not parameters or not scope["query_string"]:
        return {}
    query = parse_qs(scope["query_string"].decode("latin-1"))
    return {name: query[name][-1] for name in parameters if name in query}


def _form(head: Message) -> dict[str, str]:
    """Return the form of what is sent, unless it is JSON."""
    sent = next((value for name, value in head["headers"] if name == b"content-type"), b"").decode("latin-1")
    found = _MEDIA_TYPE.match(sent)
    return {"form": found[1]} if found and found[1] != "json" else {}


def _origin(caller: Caller, scope: Scope) -> dict[str, str]:
    """Return the session and the address that a request came from."""
    client = scope.get("client")
    address = client[0][:_LONGEST_ADDRESS] if client else ""
    found = {"session_id": caller.session or "", "address": address if address.isprintable() else ""}
    return {name: value for name, value in found.items() if value}


def _named(scope: Scope) -> Reached:
    """Return what the address of a refused request names, if it could exist."""
    path = scope.get("path_params", {})
    dataset, job = str(path.get("name", "")), str(path.get("job_id", ""))
    return Reached(
        dataset=dataset if re.fullmatch(NAME_PATTERN, dataset) else None,
        job=job if re.fullmatch(JOB_PATTERN, job) else None,
    )
