"""The ledger of each dataset: reserve, charge, void, balance; exact, append-only, hash-chained.

Every function runs inside the caller's write transaction. Locks are taken in one order, the dataset's
account before the grant's, so no two transactions can wait for each other. The dataset's account row
carries the chain's head, so holding its lock also puts the entries in order.

    (nothing) --reserve--> reserved --charge--> charged
                               +-----void-----> void
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from typing import Any, cast

from sqlalchemy import Select, Table, bindparam, or_, select
from sqlalchemy.orm import Session

from service.amounts import Cost
from service.db import padded
from service.tables import Account, LedgerEntry

__all__ = [
    "GENESIS",
    "Accounts",
    "Balance",
    "Held",
    "NotReserved",
    "Overdrawn",
    "balance",
    "charge",
    "hash_of",
    "lock",
    "lock_several",
    "open_account",
    "raise_total",
    "reserve",
    "set_aside",
    "set_cap",
    "store",
    "void",
]

GENESIS = "0" * 64
_ACCOUNTS, _ENTRIES = cast(Table, Account.__table__), cast(Table, LedgerEntry.__table__)


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


@dataclass(slots=True)
class Held:
    """A locked account as plain numbers, for whoever moves many costs and writes each account once."""

    id: int
    dataset_id: int
    grant_id: int | None
    loss_total: int
    loss_reserved: int
    loss_spent: int
    delta_total: int
    delta_reserved: int
    delta_spent: int
    entries: int
    head: str


# Statements that every submission needs, put together once.
_LOCK_SEVERAL = (
    select(*(_ACCOUNTS.c[each.name] for each in fields(Held)))
    .where(
        _ACCOUNTS.c.dataset_id == bindparam("dataset"),
        or_(_ACCOUNTS.c.grant_id.is_(None), _ACCOUNTS.c.grant_id.in_(bindparam("grants", expanding=True))),
    )
    .order_by(_ACCOUNTS.c.grant_id.nulls_first())
    .with_for_update()
)
_MOVE = (
    _ACCOUNTS.update()
    .where(_ACCOUNTS.c.id == bindparam("account"))
    .values(
        loss_reserved=bindparam("loss"),
        delta_reserved=bindparam("delta"),
        entries=bindparam("number"),
        head=bindparam("end"),
    )
)
_ENTER = _ENTRIES.insert()


@dataclass(frozen=True)
class Accounts:
    """The locked accounts of a dataset and, where one is concerned, of a grant."""

    dataset: Account | Held
    grant: Account | Held | None


def balance(account: Account | Held) -> Balance:
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


def lock_several(session: Session, dataset_id: int, grant_ids: Sequence[int]) -> dict[int | None, Held]:
    """Lock the dataset's account, then those of some of its grants; by grant, the dataset's under None."""
    # Rows are locked in the order in which they are sorted.
    values = {"dataset": dataset_id, "grants": padded(grant_ids)}
    rows = session.connection().execute(_LOCK_SEVERAL, values)
    return {held.grant_id: held for held in (Held(*row) for row in rows)}


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
    session.add(LedgerEntry(**set_aside(accounts, job_id, cost, actor=actor, at=at)))
    session.flush()


def set_aside(accounts: Accounts, job_id: str, cost: Cost, *, actor: str, at: datetime) -> dict[str, Any]:
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


def store(session: Session, held: Iterable[Held], entries: Sequence[dict[str, Any]]) -> None:
    """Write what `set_aside` changed in held accounts, and the entries that it made."""
    if entries:
        connection = session.connection()
        moved = {entry["grant_id"] for entry in entries} | {None}
        connection.execute(
            _MOVE,
            [
                {
                    "account": each.id,
                    "loss": each.loss_reserved,
                    "delta": each.delta_reserved,
                    "number": each.entries,
                    "end": each.head,
                }
                for each in held
                if each.grant_id in moved
            ],
        )
        connection.execute(_ENTER, entries)


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
    account: Account | Held,
    kind: str,
    cost: Cost,
    *,
    actor: str,
    at: datetime,
    grant_id: int | None = None,
    job_id: str | None = None,
) -> None:
    entry = _entry(account, kind, cost, actor=actor, at=at, grant_id=grant_id, job_id=job_id)
    session.add(LedgerEntry(**entry))


def _entry(
    account: Account | Held,
    kind: str,
    cost: Cost,
    *,
    actor: str,
    at: datetime,
    grant_id: int | None,
    job_id: str | None,
) -> dict[str, Any]:
    """The next link of the chain whose end the account remembers."""
    entry: dict[str, Any] = {
        "dataset_id": account.dataset_id,
        "sequence": account.entries + 1,
        "kind": kind,
        "grant_id": grant_id,
        "actor": actor,
        "job_id": job_id,
        "loss_units": cost.loss,
        "delta_units": cost.delta,
        "at": at,
        "previous": account.head,
    }
    entry["hash"] = hash_of(*entry.values())
    account.entries, account.head = entry["sequence"], entry["hash"]
    return entry


def hash_of(*content: Any) -> str:
    """The hash of an entry's columns in their order, from the dataset to the previous entry's hash."""
    text = json.dumps(
        [each.isoformat() if isinstance(each, datetime) else each for each in content], separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()


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


def _grant(accounts: Accounts) -> Account | Held:
    if accounts.grant is None:
        raise ValueError("a job's money moves in two accounts; lock the grant's too")
    return accounts.grant
