"""Verify a dataset's ledger: replay its entries and compare hashes, order, each job's life and every account.

This detects entries that were altered, removed or added, and amounts that changed without an entry.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.ledger.accounts import Balance, balance
from service.ledger.entries import GENESIS, hash_of
from service.ledger.units import NOTHING, Cost
from service.operations.states import EntryKind
from service.operations.tables import Account, LedgerEntry


@dataclass
class Verification:
    """Result of a verification; `faults` is empty when the ledger is consistent."""

    entries: int = 0
    head: str = GENESIS
    #: Entries up to this one were taken from a checkpoint.
    since: int = 0
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when the chain and the balances agree."""
        return not self.faults


def verify(session: Session, dataset_id: int, replay: Replay | None = None) -> Verification:
    """Replay a dataset's entries: hashes, order, each job's life, and every account's amounts.

    `replay`: what a checkpoint found up to its last entry, from where it goes on.
    """
    replay = replay or Replay()
    found = Verification(replay.entries, replay.head, replay.entries, replay.faults)
    for entry in _stream(session, dataset_id, replay.entries):
        found.entries += 1
        if entry.sequence != found.entries:
            found.faults.append(f"entry {found.entries} is missing: the next has number {entry.sequence}")
            found.entries = entry.sequence
        if entry.previous != found.head:
            found.faults.append(f"entry {entry.sequence} does not follow the one before it")
        if entry.hash != hash_of(entry):
            found.faults.append(f"entry {entry.sequence} was altered: its hash does not match its content")
        found.head = entry.hash
        replay.apply(entry)
    replay.entries, replay.head = found.entries, found.head
    accounts = session.scalars(select(Account).where(Account.dataset_id == dataset_id)).all()
    for account in accounts:
        replay.compare(account)
        if account.grant_id is None and (account.entries, account.head) != (found.entries, found.head):
            found.faults.append(
                "the newest entries are missing: the account records another end of the chain"
            )
    return found


class Replay:
    """Amounts per account and the state of each job, rebuilt from entries."""

    def __init__(self) -> None:
        self.entries, self.head = 0, GENESIS
        self.faults: list[str] = []
        self.totals: dict[int | None, Cost] = {}
        self.open: dict[str, tuple[int | None, Cost]] = {}
        self.spent: dict[int | None, Cost] = {}
        self.settled: set[str] = set()

    def to_json(self) -> dict[str, Any]:
        """Return what a later verification can go on from; jobs that are settled are left to the database."""
        return {
            "entries": self.entries,
            "head": self.head,
            "totals": [[grant, cost.loss, cost.delta] for grant, cost in self.totals.items()],
            "spent": [[grant, cost.loss, cost.delta] for grant, cost in self.spent.items()],
            "open": [[job, grant, cost.loss, cost.delta] for job, (grant, cost) in self.open.items()],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        made = cls()
        made.entries, made.head = data["entries"], data["head"]
        made.totals = {grant: Cost(loss, delta) for grant, loss, delta in data["totals"]}
        made.spent = {grant: Cost(loss, delta) for grant, loss, delta in data["spent"]}
        made.open = {job: (grant, Cost(loss, delta)) for job, grant, loss, delta in data["open"]}
        return made

    def apply(self, entry: Any) -> None:
        cost = Cost(entry.loss_units, entry.delta_units)
        if entry.kind in (EntryKind.OPEN, EntryKind.RAISE, EntryKind.CAP):
            self.totals[entry.grant_id] = cost
            return
        job = entry.job_id or ""
        if entry.kind == EntryKind.RESERVE:
            if job in self.open or job in self.settled:
                self.faults.append(f"entry {entry.sequence} reserves a job a second time")
            self.open[job] = (entry.grant_id, cost)
            return
        if self.open.pop(job, None) != (entry.grant_id, cost):
            self.faults.append(f"entry {entry.sequence} settles what was not reserved")
        self.settled.add(job)
        if entry.kind == EntryKind.CHARGE:
            for account in {None, entry.grant_id}:  # a job of the owner is paid from the dataset's alone
                self.spent[account] = self.spent.get(account, NOTHING) + cost

    def compare(self, account: Account) -> None:
        reserved = NOTHING
        for grant_id, cost in self.open.values():
            if account.grant_id in (None, grant_id):
                reserved += cost
        replayed = Balance(
            self.totals.get(account.grant_id, NOTHING), reserved, self.spent.get(account.grant_id, NOTHING)
        )
        if replayed != balance(account):
            whose = "the dataset" if account.grant_id is None else f"grant {account.grant_id}"
            self.faults.append(f"the account of {whose} differs from what its entries add up to")
        if not (replayed.reserved + replayed.spent).fits(replayed.total):
            self.faults.append("the entries add up to more than the total")


def _stream(session: Session, dataset_id: int, after: int) -> Iterator[Any]:
    """Return entries in order, as rows of their columns: objects would take twice the time."""
    columns = LedgerEntry.__table__.columns
    query = select(*columns).where(LedgerEntry.dataset_id == dataset_id, LedgerEntry.sequence > after)
    rows = session.connection().execute(query.order_by(LedgerEntry.sequence))
    yield from rows.yield_per(1000)
