"""Races for the last budget of periods: threads reserve on overlapping ranges, then charge or give back.

Every round has a dataset of its own. Its accounts are compared with what was accepted: nothing is lost,
charged twice or overspent, and whoever was refused met a full period.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Barrier, Thread

from sqlalchemy import select

from service import ledger
from service.ledger import verification
from service.ledger.charging import AccountKey
from service.ledger.units import Cost
from service.operations.database import Database
from service.operations.states import DatasetState, Role, Unit
from service.operations.tables import Dataset, Principal

__all__ = ["race"]

_AT = datetime(2030, 1, 1, tzinfo=UTC)
_LABELS = tuple(f"2030-{month:02}" for month in range(1, 7))
_COST = Cost(10**9, 10**3)
#: Jobs that fit into a period.
_ROOM = 3
#: Threads that ask at the same moment.
_RACERS = 8


@dataclass
class _Outcome:
    """What became of the jobs of a round; lists are appended to by all threads."""

    charged: list[Sequence[str]] = field(default_factory=list)
    refused: list[Sequence[str]] = field(default_factory=list)
    given_back: list[Sequence[str]] = field(default_factory=list)


def race(database: Database, rounds: int, *, give_back: bool) -> list[str]:
    """Race so many times; return what went wrong. With `give_back`, some reservations are given back."""
    return [fault for _ in range(rounds) for fault in _round(database, give_back)]


def _round(database: Database, give_back: bool) -> list[str]:
    dataset_id, outcome = _dataset(database), _Outcome()
    start = Barrier(_RACERS)
    threads = [
        Thread(target=_run, args=(database, dataset_id, start, outcome, give_back)) for _ in range(_RACERS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _faults(database, dataset_id, outcome)


def _run(database: Database, dataset_id: int, start: Barrier, outcome: _Outcome, give_back: bool) -> None:
    first = random.randrange(len(_LABELS))
    periods = _LABELS[first : random.randrange(first, len(_LABELS)) + 1]
    job = str(uuid.uuid4())
    start.wait()
    try:
        with database.write() as session:
            accounts = ledger.lock(session, dataset_id, periods=periods)
            ledger.reserve(session, accounts, job, ledger.Price(_COST), {}, actor="racer", at=_AT)
    except ledger.Overdrawn:
        outcome.refused.append(periods)
        return
    void = give_back and random.random() < 0.5
    with database.write() as session:
        accounts = ledger.lock(session, dataset_id, periods=periods)
        settle = ledger.void if void else ledger.charge
        settle(session, accounts, job, actor="worker", at=_AT)
    (outcome.given_back if void else outcome.charged).append(periods)


def _dataset(database: Database) -> int:
    """A dataset whose periods have room for a few jobs each."""
    with database.write() as session:
        owner = session.scalars(select(Principal)).first()
        if owner is None:
            owner = Principal(name="racing", role=Role.CURATOR, created_at=_AT)
            session.add(owner)
            session.flush()
        dataset = Dataset(
            name=f"race-{uuid.uuid4().hex[:12]}", owner_id=owner.id, description="", domain={},
            state=DatasetState.SEALED, accountant="sum", epsilon_units=1, delta_units=0,
            planned_release=True, created_at=_AT, unit=Unit.RECORD,
        )  # fmt: skip
        session.add(dataset)
        session.flush()
        ledger.open_account(session, dataset.id, Cost(0, 0), actor="racing", at=_AT)
        total = Cost(_ROOM * _COST.loss, _ROOM * _COST.delta)
        for label in _LABELS:
            accounts = ledger.lock(session, dataset.id)
            ledger.open_period(session, accounts, label, total, {}, actor="racing", at=_AT)
        return dataset.id


def _faults(database: Database, dataset_id: int, outcome: _Outcome) -> list[str]:
    with database.read() as session:
        found = list(verification.verify(session, dataset_id).faults)
        balances = ledger.balances(session, dataset_id)
    for label in _LABELS:
        balance = balances[AccountKey(label)]
        jobs = sum(label in periods for periods in outcome.charged)
        if balance.spent != Cost(jobs * _COST.loss, jobs * _COST.delta) or balance.reserved != Cost(0, 0):
            found.append(f"{label} was charged {balance.spent} for {jobs} jobs")
    if not outcome.given_back:
        for periods in outcome.refused:
            if all(_COST.fits(balances[AccountKey(label)].remaining) for label in periods):
                found.append(f"a job on {', '.join(periods)} was refused that fits")
    settled = len(outcome.charged) + len(outcome.refused) + len(outcome.given_back)
    return found if settled == _RACERS else [*found, f"{_RACERS - settled} jobs were lost"]
