"""The parts of a running API process, wired once and handed to every route."""

import math
import time
from dataclasses import dataclass, field
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request

from service.operations import workforce
from service.operations.audit_batches import AuditBatches
from service.operations.clock import Clock, SystemClock
from service.operations.database import Database
from service.operations.helper import Helper
from service.operations.openid.providers import load
from service.operations.openid.published import Published
from service.operations.settings import Settings
from service.operations.signing import SigningKeys, open_keys

#: Each may use a core and a connection to the database.
_UPLOADS_AT_ONCE = 4
_SUBMISSIONS_AT_ONCE = 2
_DOWNLOADS_AT_ONCE = 1

_SIGN_INS_AT_ONCE = 4


@dataclass
class Context:
    """The parts of a running API process."""

    settings: Settings
    database: Database
    clock: Clock = field(default_factory=SystemClock)
    #: Threads that encode and store uploads, apart from those that serve requests.
    uploads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_UPLOADS_AT_ONCE))
    #: Threads that submit jobs. A few: the one that has an account's lock must not wait for the interpreter.
    submissions: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_SUBMISSIONS_AT_ONCE))
    #: The thread that writes long tables, piece by piece: several would keep the interpreter from everybody.
    downloads: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_DOWNLOADS_AT_ONCE))

    #: The process that makes long conversions.
    helper: Helper = field(default_factory=Helper)

    #: Threads that ask providers when people sign in: a slow provider keeps no others.
    sign_ins: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(_SIGN_INS_AT_ONCE))
    #: What the providers publish, by their names.
    providers: dict[str, Published] = field(default_factory=dict)
    #: Events of access that wait to be written.
    audit_batches: AuditBatches = field(init=False)

    def __post_init__(self) -> None:
        self.audit_batches = AuditBatches(self.database, self.clock)
        self.providers |= {each.name: Published(each) for each in load(self.settings.providers_file)}

    _plan_bytes: tuple[float, int | None] = (-math.inf, None)

    def plan_bytes(self) -> int | None:
        """Return the most memory that a plan may need to run on every worker at work; None without workers.

        Asked for with every plan and job, so it may be some seconds old.
        """
        asked_at, known = self._plan_bytes
        if time.monotonic() - asked_at > workforce.ANNOUNCE_SECONDS:
            with self.database.read() as session:
                known = workforce.plan_bytes(session, self.clock.now())
            self._plan_bytes = time.monotonic(), known
        return known

    @property
    def signing_keys(self) -> SigningKeys:
        """The keys that sign receipts and checkpoints."""
        return open_keys(self.settings)


async def _services(request: Request) -> Context:
    context: Context = request.app.state.context
    return context


Services = Annotated[Context, Depends(_services)]
