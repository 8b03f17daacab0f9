"""Races of two datasets of one population for its last budget, while one of them joins.

Every round has a population with two datasets. Threads reserve on either, then charge or give back; one lets
the second dataset join, with what it has reserved by then. Afterwards the population's account is what was
accepted cost, nothing is lost, charged twice or overspent, and no job was refused that fits.
"""

from __future__ import annotations

import random
import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from threading import Barrier, Thread

from sqlalchemy import select
from sqlalchemy.orm import Session

from service import ledger
from service.ledger import verification
from service.ledger.charging import Price
from service.ledger.units import NOTHING, Cost
from service.operations.database import Database
from service.operations.states import DatasetState, EntryKind, Role
from service.operations.tables import Dataset, LedgerEntry, Population, Principal

__all__ = ["race"]

_AT = datetime(2030, 1, 1, tzinfo=UTC)
#: What a job costs its dataset, and one person.
_COST, _OF_PERSON = Cost(10**9, 10**3), Cost(2 * 10**9, 3 * 10**3)
#: Jobs that fit into each dataset, and into the population.
_ROOM, _TOGETHER = 4, 5
#: Threads that ask at the same moment, on each dataset.
_RACERS = 5


@dataclass
class _Round:
    """A population with a dataset in it and one that joins meanwhile; all threads append to the lists."""

    database: Database
    population: int
    inside: int
    joining: int
    start: Barrier = field(default_factory=lambda: Barrier(2 * _RACERS + 1))
    accepted: list[int] = field(default_factory=list)
    given_back: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    joined: list[bool] = field(default_factory=list)


def race(database: Database, rounds: int) -> list[str]:
    """Race so many times; return what went wrong."""
    return [fault for number in range(rounds) for fault in _round(database, give_back=number % 2 == 1)]


def _round(database: Database, *, give_back: bool) -> list[str]:
    race = _begin(database)
    threads = [
        Thread(target=_submit, args=(race, dataset, give_back))
        for dataset in (race.inside, race.joining)
        for _ in range(_RACERS)
    ]
    threads.append(Thread(target=_join, args=(race,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return _faults(race)


def _submit(race: _Round, dataset: int, give_back: bool) -> None:
    job = str(uuid.uuid4())
    race.start.wait()
    try:
        with race.database.write() as session:
            accounts = ledger.lock_paying(session, dataset)
            price = Price(_COST, None if accounts.population_id is None else _OF_PERSON)
            ledger.reserve(session, accounts, job, price, {}, actor="racer", at=_AT)
    except ledger.Overdrawn:
        race.refused.append(dataset)
        return
    void = give_back and random.random() < 0.5
    with race.database.write() as session:
        settle = ledger.void if void else ledger.charge
        settle(session, ledger.lock_paying(session, dataset), job, actor="worker", at=_AT)
    (race.given_back if void else race.accepted).append(dataset)


def _join(race: _Round) -> None:
    race.start.wait()
    try:
        with race.database.write() as session:
            accounts = ledger.lock(session, race.joining)
            found = _history(session, race.joining)
            ledger.join(session, accounts, race.population, found, actor="racing", at=_AT)
    except ledger.Overdrawn:
        race.joined.append(False)
    else:
        race.joined.append(True)


def _history(session: Session, dataset: int) -> ledger.History:
    """What the jobs of a dataset have cost one person so far; jobs of this race have no plans."""
    query = select(LedgerEntry).where(LedgerEntry.dataset_id == dataset, LedgerEntry.job_id.is_not(None))
    kinds: dict[str, EntryKind] = {}
    for entry in session.scalars(query.order_by(LedgerEntry.sequence)):
        kinds[entry.job_id or ""] = entry.kind
    charged = [_OF_PERSON for kind in kinds.values() if kind == EntryKind.CHARGE]
    waiting = {job: _OF_PERSON for job, kind in kinds.items() if kind == EntryKind.RESERVE}
    return ledger.History(ledger.total_of(charged), waiting)


def _begin(database: Database) -> _Round:
    with database.write() as session:
        owner = session.scalars(select(Principal)).first()
        if owner is None:
            owner = Principal(name="racing", role=Role.CURATOR, created_at=_AT)
            session.add(owner)
            session.flush()
        population = Population(
            name=f"race-{uuid.uuid4().hex[:12]}", owner_id=owner.id, description="", accountant="sum",
            epsilon_units=_TOGETHER * _OF_PERSON.loss, delta_units=_TOGETHER * _OF_PERSON.delta, curators=[],
            created_at=_AT,
        )  # fmt: skip
        session.add(population)
        session.flush()
        ledger.open_population(session, population.id, _times(_OF_PERSON, _TOGETHER))
        datasets = []
        for number in range(2):
            dataset = Dataset(
                name=f"{population.name}-{number}", owner_id=owner.id, description="", domain={},
                state=DatasetState.SEALED, accountant="sum", epsilon_units=1, delta_units=0,
                planned_release=True, created_at=_AT, id_column="who",
            )  # fmt: skip
            session.add(dataset)
            session.flush()
            ledger.open_account(session, dataset.id, _times(_COST, _ROOM), actor="racing", at=_AT)
            datasets.append(dataset.id)
        accounts = ledger.lock(session, datasets[0])
        nothing = ledger.History(NOTHING, {})
        ledger.join(session, accounts, population.id, nothing, actor="racing", at=_AT)
        return _Round(database, population.id, datasets[0], datasets[1])


def _times(cost: Cost, times: int) -> Cost:
    return Cost(times * cost.loss, times * cost.delta)


def _faults(race: _Round) -> list[str]:
    total = _times(_OF_PERSON, _TOGETHER)
    members = [race.inside, *([race.joining] if race.joined == [True] else [])]
    with race.database.read() as session:
        found = [
            fault
            for dataset in (race.inside, race.joining)
            for fault in verification.verify(session, dataset).faults
        ]
        found += verification.population_faults(session, race.population, total)
        held = ledger.of_population(session, race.population)
        rooms = {each: ledger.balance(ledger.find(session, each)).remaining for each in members}
    charged = sum(dataset in members for dataset in race.accepted)
    if held.spent != _times(_OF_PERSON, charged) or held.reserved != NOTHING:
        found.append(f"the population was charged {held.spent} for {charged} jobs")
    if not race.given_back:
        for dataset in set(race.refused) & set(members):
            if _COST.fits(rooms[dataset]) and _OF_PERSON.fits(held.remaining):
                found.append("a job was refused that fits")
    settled = len(race.accepted) + len(race.refused) + len(race.given_back)
    return found if settled == 2 * _RACERS else [*found, f"{2 * _RACERS - settled} jobs were lost"]
