"""Events of access on their way into the audit log: kept in memory for at most a second, written in batches.

Readings are too many for a transaction each. What a process has not yet written is lost if it is killed; an
orderly stop loses nothing.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from anyio import to_thread
from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from service.errors import Unavailable
from service.operations import audit
from service.operations.clock import Clock
from service.operations.database import Database
from service.operations.tables import ApiKey, Dataset, Job

log = structlog.get_logger()

#: Longest that an event waits in memory while the database answers.
_SECONDS = 1.0
#: Events of one transaction; as many are written without waiting any longer.
_BATCH = 500
#: Events that may wait for a database that takes none. Then requests are refused.
_MOST_WAITING = 20_000
#: Refusals of one person that are events of their own, in a minute and process; the others are counted.
REFUSALS_A_MINUTE = 20
_MINUTE = timedelta(minutes=1)
#: Who sent requests without a valid key, session or token; no name of a person.
_NOBODY = "(unknown)"


@dataclass(frozen=True)
class AccessEvent:
    """A reading, a sign-in or a refusal."""

    action: str
    actor: str
    at: datetime
    #: The dataset, if it is known by number; else its name or the job's id leads to it.
    dataset_id: int | None = None
    dataset: str | None = None
    job: str | None = None
    key_id: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


class AuditBatches:
    """The events of access of one process that are not written yet."""

    def __init__(self, database: Database, clock: Clock):
        self._database, self._clock = database, clock
        self._lock = threading.Lock()
        self._waiting: list[AccessEvent] = []
        self._refusals: Counter[str] = Counter()
        self._unknown = 0
        self._counted_since = clock.now()
        self._enough = asyncio.Event()
        self._stopping = False

    def require_room(self) -> None:
        """Raise Unavailable while so many events wait that a further one might get lost."""
        if len(self._waiting) >= _MOST_WAITING:
            raise Unavailable("the audit log cannot be written, and nothing is read unrecorded")

    def add(self, event: AccessEvent) -> None:
        """Keep an event until it is written; called by the event loop."""
        with self._lock:
            self._waiting.append(event)
        if len(self._waiting) >= _BATCH:
            self._enough.set()

    def add_refusal(self, event: AccessEvent) -> None:
        """Keep a refusal; only count it when the person was refused often in this minute."""
        self._refusals[event.actor] += 1
        if self._refusals[event.actor] <= REFUSALS_A_MINUTE:
            self.add(event)

    def count_unknown(self) -> None:
        """Count a request of somebody unknown: nobody without a key fills the audit log."""
        self._unknown += 1

    def end_minute(self) -> None:
        """Keep an event for each person who was refused more often, and one for those who are unknown."""
        now = self._clock.now()
        for actor, times in self._refusals.items():
            if times > REFUSALS_A_MINUTE:
                more = {"times": times - REFUSALS_A_MINUTE}
                self.add(AccessEvent("refuse-more", actor, now, details=more))
        if self._unknown:
            self.add(AccessEvent("refuse-unknown", _NOBODY, now, details={"times": self._unknown}))
        self._refusals.clear()
        self._unknown, self._counted_since = 0, now

    def write(self) -> None:
        """Write what waits, in transactions of a batch each; what one fails to write waits again."""
        while taken := self._take():
            try:
                with self._database.write() as session:
                    _record(session, taken)
            except BaseException:
                with self._lock:
                    self._waiting[:0] = taken
                raise

    def _take(self) -> list[AccessEvent]:
        with self._lock:
            taken, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
        return taken

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[None]:
        """Write events every second, when there are many, and at the end."""
        task = asyncio.create_task(self._keep_writing())
        try:
            yield
        finally:
            self._stopping = True
            self._enough.set()
            await task  # not cancelled: it may be in the middle of a transaction
            self.end_minute()
            await self._try_to_write()
            if self._waiting:
                log.error("audit events are lost", events=len(self._waiting))

    async def _keep_writing(self) -> None:
        while not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SECONDS):
                    await self._enough.wait()
            self._enough.clear()
            if self._clock.now() - self._counted_since >= _MINUTE:
                self.end_minute()
            await self._try_to_write()

    async def _try_to_write(self) -> None:
        try:
            await to_thread.run_sync(self.write)
        except SQLAlchemyError as error:
            log.warning("audit events cannot be written", error=type(error).__name__)


def _record(session: Session, events: list[AccessEvent]) -> None:
    """Record events, each in the chain of its dataset, with the ids of keys as people know them."""
    unknown = [each for each in events if each.dataset_id is None]
    of_jobs = _known(session, Job.id, Job.dataset_id, (each.job for each in unknown))
    of_names = _known(session, Dataset.name, Dataset.id, (each.dataset for each in unknown))
    keys = _known(session, ApiKey.id, ApiKey.handle, (each.key_id for each in events))
    for each in events:
        # What does not exist is not named.
        dataset_id = each.dataset_id or of_jobs.get(each.job) or of_names.get(each.dataset)
        details = dict(each.details)
        if each.job is not None and dataset_id is not None:
            details["job"] = each.job
        if each.key_id is not None:
            details["key"] = keys[each.key_id]
        audit.record(
            session,
            each.action,
            actor=each.actor,
            at=each.at,
            dataset_id=dataset_id,
            changes_facts=False,
            **details,
        )


def _known(session: Session, column: Any, other: Any, wanted: Iterable[Any]) -> dict[Any, Any]:
    """Return the other column of the rows that have a wanted value in the first."""
    values = set(wanted) - {None}
    if not values:
        return {}
    return {row[0]: row[1] for row in session.execute(select(column, other).where(column.in_(values)))}
