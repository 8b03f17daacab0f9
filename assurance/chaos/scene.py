"""A stage for models and crashes: a database with people and sealed datasets, made by the service itself."""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

from core.data import Dense, Stored
from core.jobs import kinds
from core.plan import Plan, Request, Work
from core.privacy import Budget
from core.questions.base import Question
from service.datasets import access, drafts, grants, lifecycle
from service.datasets.decisions import Decision
from service.datasets.ingest.chunks import StoredChunk
from service.datasets.ingest.readers.batch import Expected
from service.datasets.periods import selection
from service.datasets.periods.wire import PeriodBody
from service.datasets.wire import Bounds, Box, DatasetBody
from service.http.wire import BudgetBody, JobKind
from service.jobs import submit
from service.jobs.limits import Limits
from service.jobs.planned import price
from service.jobs.wire import JobBody
from service.operations.clock import SystemClock
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.states import Role
from service.operations.tables import Dataset, Period
from service.people import keys, principals
from service.people.authentication import Caller

__all__ = ["DELTA", "DOMAIN", "PERIODS", "Accountant", "Scene", "body", "chunks", "plan"]

DOMAIN = Dense.box([0, 0], [10, 4], ["a", "b"], size=1000)
#: The delta of every job: small enough that the budgets' deltas never run out before their epsilons.
DELTA = "0.0000001"
#: How the costs of a dataset's jobs add up.
Accountant = Literal["sum", "zcdp"]
#: The sealed periods of a dataset that has periods.
PERIODS = ("2030-01", "2030-02")
_numbers = itertools.count()
LIMITS = Limits(Work(1e14, 2.0**40), 10**9, 10**9)


@cache
def plan(epsilon: str, kind: str = "cluster") -> Plan:
    """The plan of a small job: a clustering, or a question about the dataset."""
    budget = Budget.of(epsilon, DELTA)
    if kind != "cluster":
        return kinds.plan(DOMAIN, Question(kind, budget))
    return kinds.plan(DOMAIN, Request(k=2, budget=budget, algorithm="sulq"))


def body(dataset: str, epsilon: str, *, kind: JobKind = "cluster", rehearsal: bool = False) -> JobBody:
    """The request of a small job."""
    if kind != "cluster":
        asked = {"dataset": dataset, "kind": kind, "epsilon": epsilon, "delta": DELTA}
        return JobBody.model_validate({**asked, "rehearsal": rehearsal})
    return JobBody(
        dataset=dataset, k=2, algorithm="sulq", epsilon=epsilon, delta=DELTA, sites=None, rehearsal=rehearsal
    )


def chunks(domain: Stored, count: int = 3, rows: int = 43) -> list[StoredChunk]:
    """So many small chunks of rows."""
    assert isinstance(domain, Dense)
    stored = []
    for ordinal in range(count):
        first = ordinal * rows
        table = [[(7 * i) % 10, (3 * i) % 4] for i in range(first, first + rows)]
        payload = domain.encode(table).astype("<i2").tobytes()
        digest = hashlib.sha256(payload).hexdigest()
        stored.append(StoredChunk(ordinal, first, rows, digest, payload))
    return stored


class Scene:
    """A curator, two analysts, and datasets of their own for each act."""

    def __init__(self, url: str, folder: Path, **settings: Any):
        self.url = url
        plenty = {"caller_rate": 1e6, "caller_burst": 1e6, "caller_requests_at_once": 1000}
        self.settings = Settings(
            database_url=url,
            cache_directory=folder / "cache",
            signing_key_file=folder / "signing-key.pem",
            **(plenty | settings),
        )
        self.database = Database(url)
        now = SystemClock().now()
        with self.database.write() as session:
            people = [
                principals.create(session, f"{name}-{_unique()}", role, by=None, at=now)
                for name, role in (("carla", Role.CURATOR), ("ada", Role.ANALYST), ("ben", Role.ANALYST))
            ]
            self.keys = [keys.issue(session, each, by="test", at=now).text for each in people]
        self.carla, self.ada, self.ben = (Caller(each.id, each.name, each.role) for each in people)
        self.analysts = (self.ada, self.ben)

    def close(self) -> None:
        self.database.dispose()

    def dataset(
        self,
        accountant: Accountant,
        epsilon: str,
        *,
        delta: str = "0.01",
        caps: tuple[str, ...] = (),
        seal: bool = True,
        rows: bool = False,
        periods: bool = False,
        at: datetime | None = None,
    ) -> str:
        """A dataset without release ticks; sealed, with rows, and granted with these caps, if so wished.

        With `periods` it has two of them, sealed.
        """
        now = at or SystemClock().now()
        name = f"d-{_unique()}"
        facts = DatasetBody(
            name=name,
            columns=["a", "b"],
            bounds=Bounds(box=Box(low=[0, 0], high=[10, 4])),
            size=1000,
            budget=BudgetBody(epsilon=epsilon, delta=delta),
            accountant=accountant,
            planned_release=False,
            least_epsilon="0",
            jobs_per_hour=10**9,
            unit="record" if periods else None,
        )
        with self.database.write() as session:
            made = lifecycle.create(session, facts, owner=self.carla, at=now)
            if periods:
                for label in PERIODS:
                    self.seal(session, made, self.add_period(session, made, label, at=now), at=now)
            elif seal:
                self.seal(session, made, at=now)
            elif rows:
                self.store(session, made, at=now)
            for analyst, cap in zip(self.analysts, caps, strict=False):
                person = principals.find(session, analyst.name)
                budget = Budget.of(cap, delta)
                grants.grant(
                    session, made, person, budget, terms={"kinds": kinds.names()}, by=Decision("carla", now)
                )
        return name

    def add_period(self, session: Any, dataset: Dataset, label: str, *, at: datetime) -> Period:
        """A period without rows; two of them are planned for as a dataset without periods is."""
        facts = PeriodBody(label=label, size=DOMAIN.size // len(PERIODS))
        return drafts.add_period(session, dataset, facts, by=Decision("carla", at))

    def seal(self, session: Any, dataset: Dataset, period: Period | None = None, *, at: datetime) -> None:
        """Upload a few rows and seal them."""
        self.store(session, dataset, period, at=at)
        drafts.seal(session, dataset, period, confirmed=("size",), actor="carla", at=at)

    def store(self, session: Any, dataset: Dataset, period: Period | None = None, *, at: datetime) -> None:
        """Upload a few rows."""
        stored = chunks(access.domain_of(dataset))
        report = {
            "format": "csv",
            "rows": sum(each.rows for each in stored),
            "clipped_rows": 0,
            "bad_rows": 0,
            "bad_row_lines": [],
            "columns": [],
            "rows_over_limit": 0,
            "ignored_columns": [],
            "bytes": 0,
            "sha256": "0" * 64,
            "warnings": [],
        }
        expected = Expected.of(dataset)
        place = drafts.Place.of(dataset, period)
        drafts.store_rows(session, place, expected, stored, report, actor="carla", at=at)

    def submit(
        self, session: Any, dataset: str, epsilon: str, *, who: Caller | None = None, **options: Any
    ) -> submit.Submission:
        """Submit a small job, by default ada's, inside a write session."""
        now = options.pop("at", None) or SystemClock().now()
        key = options.pop("key", None)
        request = body(dataset, epsilon, **options)
        caller = who or self.ada
        right = access.find(session, dataset, caller)
        periods = selection.choose(session, right.dataset, None)
        read = None if periods is None else replace(periods, bounds=DOMAIN.fingerprint)
        planned = price(session, right, request, plan(epsilon, request.kind), LIMITS, read)
        return submit.reserve_and_enqueue(session, planned, key=key, limits=LIMITS, now=now)

    def queued(
        self, dataset: str, epsilon: str = "0.1", *, who: Caller | None = None, kind: JobKind = "cluster"
    ) -> str:
        """The id of a new queued job."""
        with self.database.write() as session:
            return self.submit(session, dataset, epsilon, who=who, kind=kind).job.id


def _unique() -> str:
    return f"{os.getpid():x}-{next(_numbers)}-{os.urandom(3).hex()}"
