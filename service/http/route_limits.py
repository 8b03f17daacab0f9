"""Limits that a route declares: its longest body, and what a request to it uses of the caller's allowance.

`@limited(...)` below the decorator of a route declares them; the middleware reads them before the route
runs.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TypeVar

from starlette.requests import Request
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from service.operations.settings import KIB, Settings

Endpoint = TypeVar("Endpoint", bound=Callable[..., object])


@dataclass(frozen=True)
class RouteLimits:
    """Limits of a route. An allowance is counted in requests: what the cheapest request uses is 1."""

    #: The most bytes of a body, by the settings.
    longest_body: Callable[[Settings], int] = attrgetter("max_body_bytes")
    #: The route reads the body itself, piece by piece; its bytes use nothing of the allowance.
    streams_body: bool = False
    #: What a request uses before its bytes are counted.
    price: float = 1.0
    #: Bytes of a body that use as much as a request.
    received_per_request: int = 64 * KIB
    #: Bytes of a response that use as much as a request.
    sent_per_request: int = 64 * KIB

    def price_of_bytes(self, received: int, sent: int) -> float:
        """Return what the bytes of a request and of its response use."""
        free = self.streams_body
        return sent / self.sent_per_request + (0.0 if free else received / self.received_per_request)


#: Limits of a route that takes a body and declares nothing.
_WITH_BODY = RouteLimits()
#: Limits of a route without a body: some clients send an empty object.
_WITHOUT_BODY = RouteLimits(longest_body=lambda _: KIB)


def limited(limits: RouteLimits) -> Callable[[Endpoint], Endpoint]:
    """Declare the limits of a route."""

    def declare(endpoint: Endpoint) -> Endpoint:
        endpoint.limits = limits  # type: ignore[attr-defined]  # functions have no declared attributes
        return endpoint

    return declare


def declared_limits(route: object) -> RouteLimits | None:
    """Return what a route declares, if anything."""
    limits = getattr(getattr(route, "endpoint", None), "limits", None)
    return limits if isinstance(limits, RouteLimits) else None


def use_allowance(request: Request, price: float) -> None:
    """Use some more of the caller's allowance, before the work that it pays for begins."""
    request.state.use_allowance(price)


class LimitsOfRoutes:
    """The limits of each request, by the route that it is for."""

    def __init__(self, routes: Iterable[BaseRoute]):
        self._declared = [(route, limits) for route in routes if (limits := declared_limits(route))]

    def __call__(self, scope: Scope) -> RouteLimits:
        """Return the limits that the route of a request declares, or those of its method."""
        for route, limits in self._declared:
            if route.matches(scope)[0] is Match.FULL:
                return limits
        return _WITH_BODY if scope["method"] in ("POST", "PUT", "PATCH") else _WITHOUT_BODY
