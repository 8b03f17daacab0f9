"""The ledger of each dataset: reserve, charge, void, balance, verify; exact, append-only, hash-chained.

Every function runs inside the caller's write transaction. Locks are taken in one order, the dataset's
account before the grant's, so no two transactions can wait for each other. The dataset's account row
carries the chain's head, so holding its lock also puts the entries in order.

    (nothing) --reserve--> reserved --charge--> charged
                               +-----void-----> void
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from sqlalchemy import Select, Table, select
from sqlalchemy.orm import Session

from service.amounts import Cost
from service.db import padded
from service.tables import Account, LedgerEntry

__all__ = [
    "GENESIS",
    "Accounts",
    "Balance",
    "NotReserved",
    "Overdrawn",
    "Verification",
    "balance",
    "charge",
    "lock",
    "lock_several",
    "open_account",
    "raise_total",
    "reserve",
    "set_aside",
    "set_cap",
    "store",
    "verify",
    "void",
]

GENESIS = "0" * 64
_ENTRIES = cast(Table, LedgerEntry.__table__)


@dataclass(frozen=True)
class Balance:
    """What an account holds."""

    total: Cost
    reserved: Cost
    spent: Cost

    @property
    def remaining(self) -> Cost:
        """What may still be reserved."""
        return Cost(
            self.total.loss - self.reserved.loss - self.spent.loss,
            self.total.delta - self.reserved.delta - self.spent.delta,
        )


class Overdrawn(Exception):
    """A reservation, or a new total, does not fit; nothing was changed."""

    def __init__(self, whose: str, requested: Cost, balance: Balance):
        super().__init__(f"the {whose} account cannot take this")
        self.whose = whose
        self.requested = requested
        self.balance = balance


class NotReserved(Exception):
    """The job has no open reservation: it was never reserved, or is charged or void already."""


@dataclass(frozen=True)
class Accounts:
    """The locked account rows of a dataset and, where one is concerned, of a grant."""

    dataset: Account
    grant: Account | None


def balance(account: Account) -> Balance:
    """The account's amounts as a value."""
    return Balance(
        total=Cost(account.loss_total, account.delta_total),
        reserved=Cost(account.loss_reserved, account.delta_reserved),
        spent=Cost(account.loss_spent, account.delta_spent),
    )


def find(session: Session, dataset_id: int, grant_id: int | None = None) -> Account:
    """The account of a dataset, or of one of its grants, without a lock."""
    return session.scalars(_account(dataset_id, grant_id)).one()


def lock(session: Session, dataset_id: int, grant_id: int | None = None) -> Accounts:
    """Lock the dataset's account, then the grant's; every writer takes them in this order."""
    dataset = session.scalars(
        _account(dataset_id, None).with_for_update().execution_options(populate_existing=True)
    ).one()
    grant = None
    if grant_id is not None:
        grant = session.scalars(
            _account(dataset_id, grant_id).with_for_update().execution_options(populate_existing=True)
        ).one()
    return Accounts(dataset, grant)


def lock_several(
    session: Session, dataset_id: int, grant_ids: Sequence[int]
) -> tuple[Account, dict[int, Account]]:
    """Lock the dataset's account, then those of some of its grants, in the order of their numbers."""
    dataset = lock(session, dataset_id).dataset
    found = session.scalars(
        select(Account)
        .where(Account.dataset_id == dataset_id, Account.grant_id.in_(padded(grant_ids)))
        .order_by(Account.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    )
    return dataset, {account.grant_id: account for account in found if account.grant_id is not None}


def open_account(session: Session, dataset_id: int, total: Cost, *, actor: str, at: datetime) -> Account:
    """Open the account of a new dataset with its total."""
    account = _new_account(dataset_id, None, total)
    session.add(account)
    session.flush()
    _append(session, account, "open", total, actor=actor, at=at)
    return account


def raise_total(session: Session, accounts: Accounts, total: Cost, *, actor: str, at: datetime) -> None:
    """Set a larger total; Overdrawn when it is smaller than the present one."""
    account = accounts.dataset
    if total.loss < account.loss_total or total.delta < account.delta_total:
        raise Overdrawn("dataset", total, balance(account))
    account.loss_total, account.delta_total = total.loss, total.delta
    _append(session, account, "raise", total, actor=actor, at=at)


def set_cap(
    session: Session, dataset_id: int, grant_id: int, total: Cost, *, actor: str, at: datetime
) -> None:
    """Open the grant's account, or move its cap; Overdrawn when the cap would lie below what is used."""
    dataset = lock(session, dataset_id).dataset
    account = session.scalars(_account(dataset_id, grant_id).with_for_update()).one_or_none()
    if account is None:
        session.add(_new_account(dataset_id, grant_id, total))
    else:
        held = balance(account)
        if not (held.reserved + held.spent).fits(total):
            raise Overdrawn("grant", total, held)
        account.loss_total, account.delta_total = total.loss, total.delta
    _append(session, dataset, "cap", total, actor=actor, at=at, grant_id=grant_id)
    session.flush()


def reserve(
    session: Session, accounts: Accounts, job_id: str, cost: Cost, *, actor: str, at: datetime
) -> None:
    """Set `cost` aside for a job in both accounts, or raise Overdrawn and change nothing."""
    session.add(set_aside(accounts, job_id, cost, actor=actor, at=at))
    session.flush()


def set_aside(accounts: Accounts, job_id: str, cost: Cost, *, actor: str, at: datetime) -> LedgerEntry:
    """Move `cost` to what is reserved in both accounts, or raise Overdrawn and change nothing.

    Returns the entry that tells it, the next of the chain. Whoever sets several costs aside must `store`
    all their entries in the order they were made, in the same transaction.
    """
    grant = _grant(accounts)
    for whose, account in (("dataset", accounts.dataset), ("grant", grant)):
        held = balance(account)
        if not cost.fits(held.remaining):
            raise Overdrawn(whose, cost, held)
    for account in (accounts.dataset, grant):
        account.loss_reserved += cost.loss
        account.delta_reserved += cost.delta
    return _entry(
        accounts.dataset, "reserve", cost, actor=actor, at=at, grant_id=grant.grant_id, job_id=job_id
    )


def store(session: Session, made: Sequence[LedgerEntry]) -> None:
    """Write entries that `set_aside` made, with the accounts they belong to."""
    session.flush()
    if made:
        columns = [column.key for column in _ENTRIES.columns if column.key != "id"]
        rows = [{name: getattr(entry, name) for name in columns} for entry in made]
        session.connection().execute(_ENTRIES.insert(), rows)


def charge(session: Session, accounts: Accounts, job_id: str, *, actor: str, at: datetime) -> Cost:
    """Turn a job's reservation into spending, once; NotReserved when there is none open."""
    return _settle(session, accounts, "charge", job_id, actor=actor, at=at)


def void(session: Session, accounts: Accounts, job_id: str, *, actor: str, at: datetime) -> Cost:
    """Give a job's reservation back, once; NotReserved when there is none open."""
    return _settle(session, accounts, "void", job_id, actor=actor, at=at)


def entries(
    session: Session,
    dataset_id: int,
    *,
    grant_id: int | None = None,
    after: int = 0,
    limit: int | None = None,
) -> list[LedgerEntry]:
    """The entries of a dataset in order, of one grant if named, after a sequence number."""
    query = select(LedgerEntry).where(LedgerEntry.dataset_id == dataset_id, LedgerEntry.sequence > after)
    if grant_id is not None:
        query = query.where(LedgerEntry.grant_id == grant_id)
    return list(session.scalars(query.order_by(LedgerEntry.sequence).limit(limit)))


@dataclass
class Verification:
    """What a replay of the chain found; `faults` is empty when all is well."""

    entries: int = 0
    head: str = GENESIS
    faults: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """True when chain and balances agree."""
        return not self.faults


def verify(session: Session, dataset_id: int) -> Verification:
    """Replay a dataset's entries: hashes, order, each job's life, and every account's amounts."""
    found = Verification()
    replay = _Replay(found.faults)
    for entry in _stream(session, dataset_id):
        found.entries += 1
        if entry.sequence != found.entries:
            found.faults.append(f"entry {found.entries} is missing: the next has number {entry.sequence}")
            found.entries = entry.sequence
        if entry.previous != found.head:
            found.faults.append(f"entry {entry.sequence} does not follow the one before it")
        if entry.hash != _hash(entry):
            found.faults.append(f"entry {entry.sequence} was altered: its hash does not match its content")
        found.head = entry.hash
        replay.apply(entry)
    accounts = session.scalars(select(Account).where(Account.dataset_id == dataset_id)).all()
    for account in accounts:
        replay.compare(account)
        if account.grant_id is None and (account.entries, account.head) != (found.entries, found.head):
            found.faults.append(
                "the newest entries are missing: the account remembers another end of the chain"
            )
    return found


class _Replay:
    """Amounts per account and the state of each job, rebuilt from entries."""

    def __init__(self, faults: list[str]):
        self.faults = faults
        self.totals: dict[int | None, Cost] = {}
        self.open: dict[str, tuple[int | None, Cost]] = {}
        self.reserved: dict[int | None, Cost] = {}
        self.spent: dict[int | None, Cost] = {}
        self.settled: set[str] = set()

    def apply(self, entry: LedgerEntry) -> None:
        cost = Cost(entry.loss_units, entry.delta_units)
        if entry.kind in ("open", "raise", "cap"):
            self.totals[entry.grant_id] = cost
            return
        job = entry.job_id or ""
        if entry.kind == "reserve":
            if job in self.open or job in self.settled:
                self.faults.append(f"entry {entry.sequence} reserves a job a second time")
            self.open[job] = (entry.grant_id, cost)
            return
        if self.open.pop(job, None) != (entry.grant_id, cost):
            self.faults.append(f"entry {entry.sequence} settles what was not reserved")
        self.settled.add(job)
        if entry.kind == "charge":
            for account in (None, entry.grant_id):
                self.spent[account] = self.spent.get(account, Cost(0, 0)) + cost

    def compare(self, account: Account) -> None:
        nothing = Cost(0, 0)
        reserved = nothing
        for grant_id, cost in self.open.values():
            if account.grant_id in (None, grant_id):
                reserved += cost
        replayed = Balance(
            self.totals.get(account.grant_id, nothing), reserved, self.spent.get(account.grant_id, nothing)
        )
        if replayed != balance(account):
            whose = "the dataset" if account.grant_id is None else f"grant {account.grant_id}"
            self.faults.append(f"the account of {whose} differs from what its entries add up to")
        if not (replayed.reserved + replayed.spent).fits(replayed.total):
            self.faults.append("the entries add up to more than the total")


def _settle(
    session: Session, accounts: Accounts, kind: str, job_id: str, *, actor: str, at: datetime
) -> Cost:
    grant = _grant(accounts)
    rows = session.scalars(
        select(LedgerEntry).where(
            LedgerEntry.dataset_id == accounts.dataset.dataset_id, LedgerEntry.job_id == job_id
        )
    ).all()
    if [row.kind for row in rows] != ["reserve"] or rows[0].grant_id != grant.grant_id:
        raise NotReserved(job_id)
    cost = Cost(rows[0].loss_units, rows[0].delta_units)
    for account in (accounts.dataset, grant):
        account.loss_reserved -= cost.loss
        account.delta_reserved -= cost.delta
        if kind == "charge":
            account.loss_spent += cost.loss
            account.delta_spent += cost.delta
    _append(session, accounts.dataset, kind, cost, actor=actor, at=at, grant_id=grant.grant_id, job_id=job_id)
    session.flush()
    return cost


def _append(
    session: Session,
    account: Account,
    kind: str,
    cost: Cost,
    *,
    actor: str,
    at: datetime,
    grant_id: int | None = None,
    job_id: str | None = None,
) -> None:
    session.add(_entry(account, kind, cost, actor=actor, at=at, grant_id=grant_id, job_id=job_id))


def _entry(
    account: Account,
    kind: str,
    cost: Cost,
    *,
    actor: str,
    at: datetime,
    grant_id: int | None,
    job_id: str | None,
) -> LedgerEntry:
    """The next link of the chain whose end the account remembers."""
    entry = LedgerEntry(
        dataset_id=account.dataset_id,
        sequence=account.entries + 1,
        kind=kind,
        grant_id=grant_id,
        actor=actor,
        job_id=job_id,
        loss_units=cost.loss,
        delta_units=cost.delta,
        at=at,
        previous=account.head,
    )
    entry.hash = _hash(entry)
    account.entries, account.head = entry.sequence, entry.hash
    return entry


def _hash(entry: LedgerEntry) -> str:
    content = [
        entry.dataset_id,
        entry.sequence,
        entry.kind,
        entry.grant_id,
        entry.actor,
        entry.job_id,
        entry.loss_units,
        entry.delta_units,
        entry.at.isoformat(),
        entry.previous,
    ]
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def _stream(session: Session, dataset_id: int) -> Iterator[LedgerEntry]:
    query = select(LedgerEntry).where(LedgerEntry.dataset_id == dataset_id).order_by(LedgerEntry.sequence)
    yield from session.scalars(query.execution_options(yield_per=1000))


def _account(dataset_id: int, grant_id: int | None) -> Select[Account]:
    which = Account.grant_id.is_(None) if grant_id is None else Account.grant_id == grant_id
    return select(Account).where(Account.dataset_id == dataset_id, which)


def _new_account(dataset_id: int, grant_id: int | None, total: Cost) -> Account:
    return Account(
        dataset_id=dataset_id,
        grant_id=grant_id,
        loss_total=total.loss,
        loss_reserved=0,
        loss_spent=0,
        delta_total=total.delta,
        delta_reserved=0,
        delta_spent=0,
        entries=0,
        head=GENESIS,
    )


def _grant(accounts: Accounts) -> Account:
    if accounts.grant is None:
        raise ValueError("a job's money moves in two accounts; lock the grant's too")
    return accounts.grant
