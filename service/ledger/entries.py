"""Entries of the ledger: an append-only chain of hashes, one for each dataset.

The dataset's account row carries the head of the chain, so appending requires its lock.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from service.ledger.charging import WHOLE
from service.ledger.units import Cost
from service.operations.states import EntryKind
from service.operations.tables import Account, LedgerEntry

GENESIS = "0" * 64
#: Entries of format 1, of versions before revision 0027, do not say what a job paid for.
FORMAT = 2
#: The columns of an entry that its hash covers in every format, in this order.
_HASHED = (
    "dataset_id",
    "sequence",
    "kind",
    "grant_id",
    "actor",
    "job_id",
    "loss_units",
    "delta_units",
    "at",
    "previous",
)
#: Columns that it covers as well, where an entry changes the account of a population.
_OF_POPULATION = ("population_id", "person_loss_units", "person_delta_units")


@dataclass(frozen=True)
class Event:
    """What an entry records: an amount, who acted and when, and the grant, job and periods concerned."""

    kind: EntryKind
    cost: Cost
    actor: str
    at: datetime
    grant_id: int | None = None
    job_id: str | None = None
    #: Labels of the periods whose accounts it changes.
    periods: tuple[str, ...] = (WHOLE,)
    #: The population whose account it changes as well, and what that one is charged.
    population_id: int | None = None
    of_person: Cost | None = None
    #: What else the hash of the entry covers: canonical JSON.
    payload: str | None = None


@dataclass(frozen=True)
class ChargeEntry:
    """The place and the hash of the entry that charged a job."""

    sequence: int
    hash: str
    #: What one person of the dataset's population was charged; None outside populations.
    of_person: Cost | None = None

    def to_json(self) -> dict[str, Any]:
        return {"sequence": self.sequence, "hash": self.hash}


def append(session: Session, account: Account, event: Event) -> None:
    """Append an entry to the chain whose head the dataset's account carries."""
    entry = LedgerEntry(
        format=FORMAT,
        dataset_id=account.dataset_id,
        sequence=account.entries + 1,
        kind=event.kind,
        grant_id=event.grant_id,
        actor=event.actor,
        job_id=event.job_id,
        loss_units=event.cost.loss,
        delta_units=event.cost.delta,
        at=event.at,
        periods=None if event.periods == (WHOLE,) else list(event.periods),
        population_id=event.population_id,
        person_loss_units=event.of_person and event.of_person.loss,
        person_delta_units=event.of_person and event.of_person.delta,
        previous=account.head,
        payload=event.payload,
    )
    entry.hash = hash_of(entry)
    account.entries, account.head = entry.sequence, entry.hash
    counts = account.entries_by_kind or {}
    account.entries_by_kind = {**counts, event.kind: counts.get(event.kind, 0) + 1}
    session.add(entry)


def charged_in(entry: Any) -> tuple[str, ...]:
    """Return the labels of the accounts that an entry changed; `entry` is as for `hash_of`."""
    return (WHOLE,) if entry.periods is None else tuple(entry.periods)


def of_person(entry: Any) -> Cost | None:
    """Return what an entry says that one person of the population loses; None if it concerns none."""
    if entry.population_id is None:
        return None
    return Cost(entry.person_loss_units, entry.person_delta_units)


def hash_of(entry: Any) -> str:
    """Return the hash of an entry's columns, the previous entry's hash among them.

    `entry`: a LedgerEntry, or a row of its columns.
    """
    content: list[Any] = [getattr(entry, name) for name in _HASHED]
    if entry.format >= FORMAT:
        content += [entry.format, entry.periods, entry.payload]
    elif entry.periods is not None:
        content.append(entry.periods)
    of_population = [getattr(entry, name) for name in _OF_POPULATION]
    if any(each is not None for each in of_population):
        content += of_population
    text = json.dumps(
        [each.isoformat() if isinstance(each, datetime) else each for each in content], separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


def charge_of(session: Session, job_id: str) -> ChargeEntry | None:
    """Return the entry that charged a job; None for a rehearsal."""
    query = select(LedgerEntry).where(LedgerEntry.job_id == job_id, LedgerEntry.kind == EntryKind.CHARGE)
    found = session.scalars(query).one_or_none()
    return None if found is None else ChargeEntry(found.sequence, found.hash, of_person(found))


def page(
    session: Session,
    dataset_id: int,
    *wanted: ColumnElement[bool],
    after: int = 0,
    limit: int | None = None,
) -> list[LedgerEntry]:
    """Return the entries of a dataset in order, those that are wanted, after a sequence number."""
    query = select(LedgerEntry).where(LedgerEntry.dataset_id == dataset_id, LedgerEntry.sequence > after)
    query = query.where(*wanted)
    return list(session.scalars(query.order_by(LedgerEntry.sequence).limit(limit)))
