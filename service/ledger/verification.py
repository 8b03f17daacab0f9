"""Verify a dataset's ledger: replay its entries and compare hashes, order, each job's life and every account.

This detects entries that were altered, removed or added, and amounts that changed without an entry.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

from sqlalchemy import CursorResult, func, select
from sqlalchemy.orm import Session

from service.ledger.accounts import Balance, balance, reserved_at_join, total_of
from service.ledger.charging import WHOLE, AccountKey, account_keys
from service.ledger.entries import GENESIS, charged_in, hash_of, of_person
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
    with _stream(session, dataset_id, replay.entries) as entries:
        for entry in entries:
            found.entries += 1
            if entry.sequence != found.entries:
                found.faults.append(f"entry {found.entries} is missing: the next has number {entry.sequence}")
                found.entries = entry.sequence
            if entry.previous != found.head:
                found.faults.append(f"entry {entry.sequence} does not follow the one before it")
            if entry.hash != hash_of(entry):
                found.faults.append(
                    f"entry {entry.sequence} was altered: its hash does not match its content"
                )
            found.head = entry.hash
            replay.apply(entry)
    replay.entries, replay.head = found.entries, found.head
    accounts = session.scalars(select(Account).where(Account.dataset_id == dataset_id)).all()
    for account in accounts:
        replay.compare(account)
        if account.carries_chain and (account.entries, account.head) != (found.entries, found.head):
            found.faults.append(
                "the newest entries are missing: the account records another end of the chain"
            )
    return found


@dataclass(frozen=True)
class _Reservation:
    """A job's reservation: the grant and the periods whose accounts pay it, and the amount of each."""

    grant: int | None
    periods: tuple[str, ...]
    cost: Cost
    #: What the population is charged; None before the dataset joins one.
    of_person: Cost | None = None

    @cached_property
    def accounts(self) -> tuple[AccountKey, ...]:
        """The accounts that pay it."""
        return account_keys(self.periods, self.grant)


class Replay:
    """Amounts per account and the state of each job, rebuilt from entries."""

    def __init__(self) -> None:
        self.entries, self.head = 0, GENESIS
        self.faults: list[str] = []
        #: By label of the period; empty for the dataset as a whole.
        self.totals: dict[str, Cost] = {}
        #: By grant; the cap of each of its accounts.
        self.caps: dict[int, Cost] = {}
        self.open: dict[str, _Reservation] = {}
        self.spent: dict[AccountKey, Cost] = {}
        self.settled: set[str] = set()
        #: The population that the dataset is in.
        self.population: int | None = None

    def to_json(self) -> dict[str, Any]:
        """Return what a later verification can go on from; jobs that are settled are left to the database."""
        return {
            "entries": self.entries,
            "head": self.head,
            "totals": [[None, cost.loss, cost.delta, label] for label, cost in self.totals.items()]
            + [[grant, cost.loss, cost.delta, WHOLE] for grant, cost in self.caps.items()],
            "spent": [[key.grant, cost.loss, cost.delta, key.period] for key, cost in self.spent.items()],
            "open": [
                [job, each.grant, each.cost.loss, each.cost.delta, each.periods, _plain(each.of_person)]
                for job, each in self.open.items()
            ],
            "population": self.population,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """Read a state; those of earlier versions name no periods."""
        made = cls()
        made.entries, made.head = data["entries"], data["head"]
        for grant, loss, delta, *label in data["totals"]:
            if grant is None:
                made.totals[label[0] if label else WHOLE] = Cost(loss, delta)
            else:
                made.caps[grant] = Cost(loss, delta)
        for grant, loss, delta, *label in data["spent"]:
            made.spent[AccountKey(label[0] if label else WHOLE, grant)] = Cost(loss, delta)
        for job, grant, loss, delta, *later in data["open"]:
            charged = tuple(later[0]) if later else (WHOLE,)
            of_population = Cost(*later[1]) if later[1:] and later[1] else None
            made.open[job] = _Reservation(grant, charged, Cost(loss, delta), of_population)
        made.population = data.get("population")
        return made

    def apply(self, entry: Any) -> None:
        cost = Cost(entry.loss_units, entry.delta_units)
        periods = charged_in(entry)
        if entry.kind == EntryKind.CAP:
            self.caps[entry.grant_id] = cost
            return
        if entry.kind in (EntryKind.OPEN, EntryKind.RAISE):
            self.totals |= dict.fromkeys(periods, cost)
            return
        if entry.kind == EntryKind.JOIN:
            self._join(entry)
            return
        if entry.population_id != self.population:
            self.faults.append(f"entry {entry.sequence} is charged to another population than the dataset's")
        job, reservation = entry.job_id or "", _Reservation(entry.grant_id, periods, cost, of_person(entry))
        if entry.kind == EntryKind.RESERVE:
            if job in self.open or job in self.settled:
                self.faults.append(f"entry {entry.sequence} reserves a job a second time")
            self.open[job] = reservation
            return
        if self.open.pop(job, None) != reservation:
            self.faults.append(f"entry {entry.sequence} settles what was not reserved")
        self.settled.add(job)
        if entry.kind == EntryKind.CHARGE:
            for key in reservation.accounts:
                self.spent[key] = self.spent.get(key, NOTHING) + cost

    def _join(self, entry: Any) -> None:
        """Let the dataset join a population; the jobs that wait cost it what the entry says."""
        waiting = reserved_at_join(entry)
        if self.population is not None or waiting.keys() != self.open.keys():
            self.faults.append(f"entry {entry.sequence} joins a population twice, or with other jobs waiting")
        self.population = entry.population_id
        self.open = {job: replace(each, of_person=waiting.get(job)) for job, each in self.open.items()}

    def compare(self, account: Account) -> None:
        if account.carries_chain and account.population_id != self.population:
            self.faults.append("the account of the dataset is of another population than its entries say")
        key = AccountKey(account.period, account.grant_id)
        reserved = sum((each.cost for each in self.open.values() if key in each.accounts), NOTHING)
        total = self.totals.get(key.period) if key.grant is None else self.caps.get(key.grant)
        replayed = Balance(total or NOTHING, reserved, self.spent.get(key, NOTHING))
        if replayed != balance(account):
            whose = "the dataset" if key.grant is None else f"grant {key.grant}"
            whose += f" in period {key.period}" if key.period else ""
            self.faults.append(f"the account of {whose} differs from what its entries add up to")
        if not (replayed.reserved + replayed.spent).fits(replayed.total):
            self.faults.append("the entries add up to more than the total")


def _stream(session: Session, dataset_id: int, after: int) -> CursorResult[Any]:
    """Return entries in order, as rows of their columns: objects would take twice the time. To be closed."""
    columns = LedgerEntry.__table__.columns
    query = select(*columns).where(LedgerEntry.dataset_id == dataset_id, LedgerEntry.sequence > after)
    # By a cursor of the database: while a million rows were replayed, the connection would be taken for idle.
    ordered = query.order_by(LedgerEntry.sequence).execution_options(yield_per=1000)
    return session.connection().execute(ordered)


def _plain(cost: Cost | None) -> list[int] | None:
    return None if cost is None else [cost.loss, cost.delta]


def charged_to_population(session: Session, population_id: int) -> dict[int, Balance]:
    """Return what the jobs of each dataset cost a population, by its entries; totals are left out."""
    columns = (LedgerEntry.dataset_id, LedgerEntry.kind)
    amounts = (func.sum(LedgerEntry.person_loss_units), func.sum(LedgerEntry.person_delta_units))
    of_population = LedgerEntry.population_id == population_id
    sums: dict[int, dict[EntryKind, Cost]] = {}
    for dataset, kind, loss, delta in session.execute(
        select(*columns, *amounts).where(of_population).group_by(*columns)
    ):
        sums.setdefault(dataset, {})[kind] = Cost(int(loss or 0), int(delta or 0))
    waiting = {
        entry.dataset_id: total_of(reserved_at_join(entry).values())
        for entry in session.scalars(
            select(LedgerEntry).where(of_population, LedgerEntry.kind == EntryKind.JOIN)
        )
    }
    return {dataset: _charged(found, waiting.get(dataset, NOTHING)) for dataset, found in sums.items()}


def _charged(sums: dict[EntryKind, Cost], waiting: Cost) -> Balance:
    reserve, charge, void, joined = (
        sums.get(kind, NOTHING)
        for kind in (EntryKind.RESERVE, EntryKind.CHARGE, EntryKind.VOID, EntryKind.JOIN)
    )
    return Balance(NOTHING, reserve + waiting - charge - void, charge + joined)


def population_faults(session: Session, population_id: int, total: Cost) -> Iterable[str]:
    """Yield what contradicts a population's account: its total as declared, or what entries add up to."""
    accounts = session.scalars(
        select(Account).where(Account.dataset_id.is_(None), Account.population_id == population_id)
    )
    held = [balance(each) for each in accounts]
    charged = charged_to_population(session, population_id).values()
    reserved, spent = (total_of(getattr(each, what) for each in charged) for what in ("reserved", "spent"))
    if held != [Balance(total, reserved, spent)]:
        yield "the account of the population differs from what the entries of its datasets add up to"
