"""Journals of running jobs: what a job released, in the database before the job uses it.

The worker that takes over a job whose worker was lost goes on from there: it measures only what is left.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Iterable
from io import BytesIO
from typing import Self

import numpy as np
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from core.arrays import Integers
from core.coverage.loop import CoverageLoop
from core.plan import Step
from core.statistics.base import Statistic
from service.jobs import queue
from service.jobs.claims import Claim
from service.operations import faults
from service.operations.database import Database
from service.operations.tables import JournalEntry

# Built once: every measurement waits for it. An earlier try may have stored the entry unconfirmed.
_KEEP = text(
    "INSERT INTO journal_entries (job_id, ordinal, digest, payload)"
    " VALUES (:job, :ordinal, :digest, :payload) ON CONFLICT DO NOTHING"
)


class CannotGoOn(Exception):
    """Another worker measured a part of this job that is too long to keep, or that this version would not."""


class StoredJournal:
    """The journal of a claimed job; see `core.probe.Journal`.

    Every entry is kept in a transaction that checks that the job is still this worker's. So two workers never
    write to one journal, and a value that is not in it was used by nobody.
    """

    def __init__(self, database: Database, claim: Claim, most_bytes: int, entries: Iterable[JournalEntry]):
        """`most_bytes`: what a journal may hold; beyond, the job goes on, but no other worker can."""
        self._database = database
        self._claim = claim
        self._stored = deque(entries)
        self._next = len(self._stored)
        self._room = most_bytes - sum(len(entry.payload or b"") for entry in self._stored)

    @classmethod
    def open(cls, database: Database, claim: Claim, most_bytes: int) -> Self:
        """The journal as the last worker left it: empty at the first attempt."""
        stored = (
            select(JournalEntry).where(JournalEntry.job_id == claim.job_id).order_by(JournalEntry.ordinal)
        )
        entries = database.patiently(lambda session: session.scalars(stored).all())
        return cls(database, claim, most_bytes, entries)

    def release(
        self, step: Step, statistic: Statistic | CoverageLoop, measure: Callable[[], Integers]
    ) -> Integers:
        asked = f"measure {step.name} {statistic.kind} {statistic.digest}"

        def measured() -> bytes:
            values = measure()
            faults.reach("execute.drawn")
            return _packed(values)

        return _unpacked(self._once(asked, measured))

    def seed(self, name: str, draw: Callable[[], bytes]) -> bytes:
        return self._once(f"draw {name}", draw)

    def require_used_up(self) -> None:
        """Raise CannotGoOn when the run ended before it asked for everything that was kept."""
        if self._stored:
            raise CannotGoOn("the job measured more than this version asks for")

    def _once(self, asked: str, make: Callable[[], bytes]) -> bytes:
        digest = hashlib.sha256(asked.encode()).hexdigest()
        if self._stored:
            entry = self._stored.popleft()
            if entry.payload is None:
                raise CannotGoOn("what the job released was too long to keep")
            if entry.digest != digest:
                raise CannotGoOn("the job measured something else than this version asks for")
            return entry.payload
        made = make()
        self._keep(digest, made)
        return made

    def _keep(self, digest: str, made: bytes) -> None:
        """Store an entry; one that is too long, and all after it, without what it holds."""
        self._room = self._room - len(made) if len(made) <= self._room else -1
        entry = {
            "job": self._claim.job_id,
            "ordinal": self._next,
            "digest": digest,
            "payload": made if self._room >= 0 else None,
        }

        def keep(session: Session) -> None:
            queue.require_held(session, self._claim)
            session.connection().execute(_KEEP, entry)
            faults.reach("execute.kept")

        self._database.patiently(keep, write=True)
        self._next += 1


def _packed(values: Integers) -> bytes:
    """An array with its shape; equally long for all values of one shape."""
    packed = BytesIO()
    np.save(packed, values.astype("<i8"), allow_pickle=False)
    return packed.getvalue()


def _unpacked(payload: bytes) -> Integers:
    values: Integers = np.load(BytesIO(payload), allow_pickle=False)
    return values
