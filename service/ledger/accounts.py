"""Accounts of datasets and grants: lock, reserve, charge, void, and the entry that records each change.

Every function runs inside the caller's write transaction. Locks are taken in one order, the dataset's
account before the grant's, so no two transactions can wait for each other. The dataset's account row
carries the chain's head, so holding its lock also puts the entries in order.

    (nothing) --reserve--> reserved --charge--> charged
                               +-----void-----> void
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from service.ledger.entries import GENESIS, Event, append
from service.ledger.units import Cost
from service.operations.states import EntryKind
from service.operations.tables import Account, LedgerEntry

# Built once, as building costs more than running. Rows are locked in the order in which they are sorted.
_CONCERNED = (
    Account.dataset_id == bindparam("dataset"),
    Account.grant_id.is_(None) | (Account.grant_id == bindparam("grant")),
)
_DELTA_LEFT = select(func.min(Account.delta_total - Account.delta_reserved - Account.delta_spent)).where(
    *_CONCERNED
)
_LOCK = (
    select(Account)
    .where(*_CONCERNED)
    .order_by(Account.grant_id.nulls_first())
    .with_for_update()
    .execution_options(populate_existing=True)
)


@dataclass(frozen=True)
class Balance:
    """Amounts of an account."""

    total: Cost
    reserved: Cost
    spent: Cost

    @property
    def remaining(self) -> Cost:
        """The amount that may still be reserved."""
        return self.total - self.reserved - self.spent


class Overdrawn(Exception):
    """A reservation, or a new total, does not fit; nothing was changed."""

    def __init__(
        self,
        whose: str,
        requested: Cost,
        balance: Balance,
        largest: Cost | None = None,
        tightest: str | None = None,
    ):
        """`largest`: what would fit into every account concerned, of which `tightest` has the least left."""
        super().__init__(f"the {whose} account cannot take this")
        self.whose = whose
        self.requested = requested
        self.balance = balance
        self.largest = largest or balance.remaining
        self.tightest = tightest or whose


class NotReserved(Exception):
    """The job has no open reservation: it was never reserved, or is charged or void already."""


@dataclass(frozen=True)
class Accounts:
    """The locked accounts of a dataset and, where an analyst's job or cap is concerned, of a grant."""

    dataset: Account
    grant: Account | None
    #: The grant whose job is paid; None: a job of the dataset's owner, which the total alone limits.
    grant_id: int | None

    @property
    def paying(self) -> dict[str, Account]:
        """The accounts that a job is paid from, by whose they are."""
        if self.grant_id is None:
            return {"dataset": self.dataset}
        if self.grant is None:
            raise ValueError("the grant has no account: a job under a grant is paid from two")
        return {"dataset": self.dataset, "grant": self.grant}


def balance(account: Account) -> Balance:
    """Return the account's amounts as a value."""
    return Balance(
        total=Cost(account.loss_total, account.delta_total),
        reserved=Cost(account.loss_reserved, account.delta_reserved),
        spent=Cost(account.loss_spent, account.delta_spent),
    )


def find(session: Session, dataset_id: int, grant_id: int | None = None) -> Account:
    """Return the account of a dataset, or of one of its grants, without a lock."""
    query = select(Account).where(
        Account.dataset_id == dataset_id, Account.grant_id.is_not_distinct_from(grant_id)
    )
    return session.scalars(query).one()


def delta_left(session: Session, dataset_id: int, grant_id: int | None) -> int:
    """Return the delta, in units, that one more job of a grant, or of the owner, may cost now."""
    found = session.connection().execute(_DELTA_LEFT, {"dataset": dataset_id, "grant": grant_id})
    return int(found.scalar_one())


def lock(session: Session, dataset_id: int, grant_id: int | None = None) -> Accounts:
    """Lock the dataset's account, then the grant's; every writer takes them in this order."""
    rows = session.scalars(_LOCK, {"dataset": dataset_id, "grant": grant_id}).all()
    return Accounts(rows[0], rows[1] if len(rows) > 1 else None, grant_id)


def open_account(session: Session, dataset_id: int, total: Cost, *, actor: str, at: datetime) -> Account:
    """Open the account of a new dataset with its total."""
    account = _new_account(dataset_id, None, total)
    session.add(account)
    session.flush()
    append(session, account, Event(EntryKind.OPEN, total, actor, at))
    return account


def raise_total(session: Session, accounts: Accounts, total: Cost, *, actor: str, at: datetime) -> None:
    """Set a larger total; Overdrawn when it is smaller than the present one."""
    account = accounts.dataset
    if total.loss < account.loss_total or total.delta < account.delta_total:
        raise Overdrawn("dataset", total, balance(account))
    account.loss_total, account.delta_total = total.loss, total.delta
    append(session, account, Event(EntryKind.RAISE, total, actor, at))


def set_cap(
    session: Session, dataset_id: int, grant_id: int, total: Cost, *, actor: str, at: datetime
) -> None:
    """Open the grant's account or change its cap; Overdrawn when the cap would be below what is used."""
    accounts = lock(session, dataset_id, grant_id)
    if accounts.grant is None:
        session.add(_new_account(dataset_id, grant_id, total))
    else:
        present = balance(accounts.grant)
        if not (present.reserved + present.spent).fits(total):
            raise Overdrawn("grant", total, present)
        accounts.grant.loss_total, accounts.grant.delta_total = total.loss, total.delta
    append(session, accounts.dataset, Event(EntryKind.CAP, total, actor, at, grant_id))
    session.flush()


def reserve(
    session: Session, accounts: Accounts, job_id: str, cost: Cost, *, actor: str, at: datetime
) -> None:
    """Reserve a job's cost in the accounts that pay it, or raise Overdrawn and change nothing."""
    paying = accounts.paying
    _require_room({whose: balance(account) for whose, account in paying.items()}, cost)
    for account in paying.values():
        account.loss_reserved += cost.loss
        account.delta_reserved += cost.delta
    append(session, accounts.dataset, Event(EntryKind.RESERVE, cost, actor, at, accounts.grant_id, job_id))
    session.flush()


def _require_room(balances: dict[str, Balance], cost: Cost) -> None:
    """Raise Overdrawn, for the first account that has no room, unless the cost fits into all of them."""
    rooms = {whose: balance.remaining for whose, balance in balances.items()}
    least_loss = min(rooms, key=lambda whose: rooms[whose].loss)
    least_delta = min(rooms, key=lambda whose: rooms[whose].delta)
    largest = Cost(rooms[least_loss].loss, rooms[least_delta].delta)
    if not cost.fits(largest):
        whose = next(name for name, room in rooms.items() if not cost.fits(room))
        tightest = least_loss if cost.loss > largest.loss else least_delta
        raise Overdrawn(whose, cost, balances[whose], largest, tightest)


def charge(session: Session, accounts: Accounts, job_id: str, *, actor: str, at: datetime) -> Cost:
    """Turn a job's reservation into spending, once; NotReserved if no reservation is open."""
    return _settle(session, accounts, EntryKind.CHARGE, job_id, actor=actor, at=at)


def void(session: Session, accounts: Accounts, job_id: str, *, actor: str, at: datetime) -> Cost:
    """Give a job's reservation back, once; NotReserved if no reservation is open."""
    return _settle(session, accounts, EntryKind.VOID, job_id, actor=actor, at=at)


def _settle(
    session: Session, accounts: Accounts, kind: EntryKind, job_id: str, *, actor: str, at: datetime
) -> Cost:
    rows = session.scalars(
        select(LedgerEntry).where(
            LedgerEntry.dataset_id == accounts.dataset.dataset_id, LedgerEntry.job_id == job_id
        )
    ).all()
    if [row.kind for row in rows] != [EntryKind.RESERVE] or rows[0].grant_id != accounts.grant_id:
        raise NotReserved(job_id)
    cost = Cost(rows[0].loss_units, rows[0].delta_units)
    for account in accounts.paying.values():
        account.loss_reserved -= cost.loss
        account.delta_reserved -= cost.delta
        if kind is EntryKind.CHARGE:
            account.loss_spent += cost.loss
            account.delta_spent += cost.delta
    append(session, accounts.dataset, Event(kind, cost, actor, at, accounts.grant_id, job_id))
    session.flush()
    return cost


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
