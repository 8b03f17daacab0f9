"""Claimed jobs as values: what a worker knows of the job that it holds, and what it hands back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from pydantic_core import to_json

from core.data import Stored, domain_from_json
from core.plan import Plan
from service.datasets.periods.selection import PeriodsRead
from service.jobs import release
from service.ledger import ChargeEntry
from service.ledger.units import Cost


class JobLost(Exception):
    """The job is no longer this worker's: a curator ended it, or another worker took it over."""


@dataclass(frozen=True)
class StoredPlan:
    """The plan of a job and its domain as they are stored, and read once."""

    text: Mapping[str, Any]
    domain_text: dict[str, Any]

    @cached_property
    def domain(self) -> Stored:
        """The domain, in declared or in working bounds."""
        return domain_from_json(self.domain_text)

    @cached_property
    def plan(self) -> Plan:
        """The plan, with the facts of its public inputs; raises whatever this version cannot read."""
        return Plan.from_json(self.text, self.domain)


@dataclass(frozen=True)
class Claim:
    """A worker's hold on a job; `lease` fences off earlier holders."""

    job_id: str
    lease: str
    dataset_id: int
    #: Who asked.
    principal_id: int
    rehearsal: bool
    request: dict[str, Any]
    cost: Cost
    queued_at: datetime
    claimed_at: datetime
    #: Time after the claim at which the end of the job is shown, unless its run takes longer.
    planned: timedelta
    #: Whether the end of the job is held back until then.
    held: bool
    stored: StoredPlan
    #: The entry that charged it; None for a rehearsal.
    charge: ChargeEntry | None
    #: The periods that it reads, as they are now; None: a dataset without periods, in its first version.
    periods: PeriodsRead | None = None

    def released_at(self, ended_at: datetime) -> datetime:
        """Return when an end of the job is shown, and its worker free for the next one."""
        return release.release_time(self.claimed_at, self.planned, ended_at) if self.held else ended_at


@dataclass(frozen=True)
class Outcome:
    """The result of a run, its receipt, the parts of its transcript, and the answers for every k."""

    body: dict[str, Any]
    receipt: dict[str, Any]
    transcript: Sequence[bytes] = ()
    answers: Mapping[int, bytes] = field(default_factory=dict)

    @property
    def stored_bytes(self) -> int:
        """The bytes that it takes in the database, without the receipt."""
        return len(to_json(self.body)) + sum(map(len, (*self.transcript, *self.answers.values())))
