"""The parts of a running API process, wired once and handed to every route."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request

from service.errors import RateLimited
from service.operations.clock import Clock, SystemClock
from service.operations.database import Database
from service.operations.settings import Settings

__all__ = ["Context", "PlanLimiter", "Services"]

_MINUTE = timedelta(minutes=1)
#: Each may use a core and a connection to the database.
_UPLOADS_AT_ONCE = 4


class PlanLimiter:
    """Rate limit of plans per analyst, counted in this process."""

    def __init__(self, most: int):
        self._most = most
        self._recent: dict[int, deque[datetime]] = {}
        self._lock = Lock()

    def admit(self, principal_id: int, now: datetime) -> None:
        """Count one plan; RateLimited when it is one too many."""
        with self._lock:
            recent = self._recent.setdefault(principal_id, deque())
            while recent and recent[0] <= now - _MINUTE:
                recent.popleft()
            if len(recent) >= self._most:
                wait = int((recent[0] + _MINUTE - now).total_seconds()) + 1
                raise RateLimited(
                    f"at most {self._most} plans a minute; wait {wait} seconds",
                    headers={"Retry-After": str(wait)},
                    limit=self._most,
                )
            recent.append(now)


@dataclass
class Context:
    """The parts of a running API process."""

    settings: Settings
    database: Database
    clock: Clock = field(default_factory=SystemClock)
    #: Threads that encode and store uploads, apart from those that serve requests.
    uploads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_UPLOADS_AT_ONCE))
    plans: PlanLimiter = field(init=False)

    def __post_init__(self) -> None:
        self.plans = PlanLimiter(self.settings.plans_per_minute)


async def _services(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Services = Annotated[Context, Depends(_services)]
