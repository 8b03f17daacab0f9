"""Accounts of datasets, periods and grants: lock, reserve, charge, void, and the entry for each change.

Every function runs inside the caller's write transaction. Locks are taken in one order, the dataset's
account, those of periods, those of a grant, so no two transactions can wait for each other. The dataset's
account row carries the chain's head, so holding its lock also puts the entries in order.

    (nothing) --reserve--> reserved --charge--> charged
                               +-----void-----> void
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from service.ledger.charging import WHOLE, AccountKey, account_keys
from service.ledger.entries import GENESIS, Event, append, charged_in
from service.ledger.units import Cost
from service.operations import canonical
from service.operations.states import EntryKind
from service.operations.tables import Account, LedgerEntry

# Built once, as building costs more than running. Rows are locked in the order in which they are sorted.
_OF_DATASET = Account.dataset_id == bindparam("dataset")
_OF_GRANT_OR_NONE = Account.grant_id.is_(None) | (Account.grant_id == bindparam("grant"))
_NAMED = Account.period.in_(bindparam("periods", expanding=True))
_DELTA_LEFT = select(func.min(Account.delta_total - Account.delta_reserved - Account.delta_spent)).where(
    _OF_DATASET, _OF_GRANT_OR_NONE, _NAMED
)
_LOCK = (
    select(Account)
    .where(_OF_DATASET, _OF_GRANT_OR_NONE, _NAMED | (Account.period == WHOLE))
    .order_by(Account.grant_id.nulls_first(), Account.period)
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
        account: AccountKey,
        requested: Cost,
        balance: Balance,
        *,
        largest: Cost | None = None,
        tightest: AccountKey | None = None,
        short: Sequence[AccountKey] = (),
    ):
        """`largest`: what would fit into every account concerned, of which `tightest` has the least left.

        `short`: every account that the request does not fit into.
        """
        super().__init__(f"{account} cannot take this")
        self.account = account
        self.requested = requested
        self.balance = balance
        self.largest = largest or balance.remaining
        self.tightest = tightest or account
        self.short = tuple(short) or (account,)


class NotReserved(Exception):
    """The job has no open reservation: it was never reserved, or is charged or void already."""


@dataclass(frozen=True)
class Accounts:
    """The locked account of a dataset, which carries the chain, and all accounts that a job is paid from."""

    dataset: Account
    #: Labels of the periods that are charged; one that is empty, where the dataset is charged as a whole.
    periods: tuple[str, ...]
    #: The grant whose job is paid; None: a job of the dataset's owner, which totals alone limit.
    grant_id: int | None
    found: dict[AccountKey, Account]

    @property
    def paying(self) -> dict[AccountKey, Account]:
        """The accounts that a job is paid from; KeyError if one was never opened."""
        return {key: self.found[key] for key in account_keys(self.periods, self.grant_id)}


def balance(account: Account) -> Balance:
    """Return the account's amounts as a value."""
    return Balance(
        total=Cost(account.loss_total, account.delta_total),
        reserved=Cost(account.loss_reserved, account.delta_reserved),
        spent=Cost(account.loss_spent, account.delta_spent),
    )


def find(session: Session, dataset_id: int, grant_id: int | None = None, period: str = WHOLE) -> Account:
    """Return the account of a dataset or a period, or that of a grant there, without a lock."""
    query = select(Account).where(
        Account.dataset_id == dataset_id,
        Account.period == period,
        Account.grant_id.is_not_distinct_from(grant_id),
    )
    return session.scalars(query).one()


def balances(session: Session, dataset_id: int, grant_id: int | None = None) -> dict[AccountKey, Balance]:
    """Return the balances of all accounts of a dataset that concern a grant, or its owner, without a lock."""
    concerned = Account.grant_id.is_(None) | (Account.grant_id == grant_id)
    query = select(Account).where(Account.dataset_id == dataset_id, concerned)
    return {AccountKey(each.period, each.grant_id): balance(each) for each in session.scalars(query)}


def delta_left(
    session: Session, dataset_id: int, grant_id: int | None, periods: Sequence[str] = (WHOLE,)
) -> int:
    """Return the delta, in units, that one more job of a grant, or of the owner, may cost now."""
    asked = {"dataset": dataset_id, "grant": grant_id, "periods": list(periods)}
    return int(session.connection().execute(_DELTA_LEFT, asked).scalar_one())


def lock(
    session: Session, dataset_id: int, grant_id: int | None = None, periods: Sequence[str] = (WHOLE,)
) -> Accounts:
    """Lock the dataset's account, then those of periods, then a grant's; every writer takes this order."""
    asked = {"dataset": dataset_id, "grant": grant_id, "periods": list(periods)}
    rows = session.scalars(_LOCK, asked).all()
    found = {AccountKey(row.period, row.grant_id): row for row in rows}
    return Accounts(found[AccountKey()], tuple(periods), grant_id, found)


def open_account(session: Session, dataset_id: int, total: Cost, *, actor: str, at: datetime) -> Account:
    """Open the account of a new dataset with its total."""
    account = _new_account(dataset_id, AccountKey(), total)
    session.add(account)
    session.flush()
    append(session, account, Event(EntryKind.OPEN, total, actor, at))
    return account


def open_period(
    session: Session,
    accounts: Accounts,
    period: str,
    total: Cost,
    caps: Mapping[int, Cost],
    *,
    actor: str,
    at: datetime,
) -> None:
    """Open the account of a new period with its total, and one for each grant with its present cap."""
    dataset_id = accounts.dataset.dataset_id
    opened = {AccountKey(period): total, **{AccountKey(period, grant): cap for grant, cap in caps.items()}}
    session.add_all(_new_account(dataset_id, key, amount) for key, amount in opened.items())
    append(session, accounts.dataset, Event(EntryKind.OPEN, total, actor, at, periods=(period,)))
    session.flush()


def raise_total(session: Session, accounts: Accounts, total: Cost, *, actor: str, at: datetime) -> None:
    """Set a larger total of the one account that was locked; Overdrawn when it is smaller than before."""
    ((key, account),) = accounts.paying.items()
    if total.loss < account.loss_total or total.delta < account.delta_total:
        raise Overdrawn(key, total, balance(account))
    account.loss_total, account.delta_total = total.loss, total.delta
    append(session, accounts.dataset, Event(EntryKind.RAISE, total, actor, at, periods=accounts.periods))


def set_cap(
    session: Session,
    dataset_id: int,
    grant_id: int,
    total: Cost,
    *,
    periods: Sequence[str] = (WHOLE,),
    actor: str,
    at: datetime,
) -> None:
    """Set the cap of a grant in every account that it has; Overdrawn if one of them has used more.

    Accounts that are missing are opened.
    """
    accounts = lock(session, dataset_id, grant_id, periods)
    for key in (AccountKey(label, grant_id) for label in periods):
        account = accounts.found.get(key)
        if account is None:
            session.add(_new_account(dataset_id, key, total))
            continue
        present = balance(account)
        if not (present.reserved + present.spent).fits(total):
            raise Overdrawn(key, total, present)
        account.loss_total, account.delta_total = total.loss, total.delta
    append(session, accounts.dataset, Event(EntryKind.CAP, total, actor, at, grant_id))
    session.flush()


def reserve(
    session: Session,
    accounts: Accounts,
    job_id: str,
    cost: Cost,
    paid_for: Mapping[str, Any] | None = None,
    *,
    actor: str,
    at: datetime,
) -> None:
    """Reserve a job's cost in full in every account that pays it, or raise Overdrawn and change nothing.

    `paid_for`: what the cost is for; part of the reservation's entry, and of the charge's.
    """
    paying = accounts.paying
    _require_room({key: balance(account) for key, account in paying.items()}, cost)
    for account in paying.values():
        account.loss_reserved += cost.loss
        account.delta_reserved += cost.delta
    payload = canonical.text(paid_for) if paid_for else None
    append(session, accounts.dataset, _event(EntryKind.RESERVE, accounts, job_id, cost, actor, at, payload))
    session.flush()


def _require_room(balances: dict[AccountKey, Balance], cost: Cost) -> None:
    """Raise Overdrawn, for the first account that has no room, unless the cost fits into all of them."""
    rooms = {key: balance.remaining for key, balance in balances.items()}
    short = [key for key, room in rooms.items() if not cost.fits(room)]
    if short:
        least_loss = min(rooms, key=lambda key: rooms[key].loss)
        least_delta = min(rooms, key=lambda key: rooms[key].delta)
        largest = Cost(rooms[least_loss].loss, rooms[least_delta].delta)
        tightest = least_loss if cost.loss > largest.loss else least_delta
        raise Overdrawn(short[0], cost, balances[short[0]], largest=largest, tightest=tightest, short=short)


def charge(
    session: Session,
    accounts: Accounts,
    job_id: str,
    also: Mapping[str, Any] | None = None,
    *,
    actor: str,
    at: datetime,
) -> Cost:
    """Turn a job's reservation into spending, once; NotReserved if no reservation is open.

    `also`: what the entry says beyond what its reservation says.
    """
    return _settle(session, accounts, EntryKind.CHARGE, job_id, also, actor=actor, at=at)


def void(session: Session, accounts: Accounts, job_id: str, *, actor: str, at: datetime) -> Cost:
    """Give a job's reservation back, once; NotReserved if no reservation is open."""
    return _settle(session, accounts, EntryKind.VOID, job_id, actor=actor, at=at)


def _settle(
    session: Session,
    accounts: Accounts,
    kind: EntryKind,
    job_id: str,
    also: Mapping[str, Any] | None = None,
    *,
    actor: str,
    at: datetime,
) -> Cost:
    rows = session.scalars(
        select(LedgerEntry).where(
            LedgerEntry.dataset_id == accounts.dataset.dataset_id, LedgerEntry.job_id == job_id
        )
    ).all()
    payer = (accounts.grant_id, accounts.periods)
    if [row.kind for row in rows] != [EntryKind.RESERVE] or _payer(rows[0]) != payer:
        raise NotReserved(job_id)
    cost = Cost(rows[0].loss_units, rows[0].delta_units)
    for account in accounts.paying.values():
        account.loss_reserved -= cost.loss
        account.delta_reserved -= cost.delta
        if kind is EntryKind.CHARGE:
            account.loss_spent += cost.loss
            account.delta_spent += cost.delta
    payload = rows[0].payload
    if also and payload is not None:
        payload = canonical.text({**json.loads(payload), **also})
    append(session, accounts.dataset, _event(kind, accounts, job_id, cost, actor, at, payload))
    session.flush()
    return cost


def _payer(entry: LedgerEntry) -> tuple[int | None, tuple[str, ...]]:
    """Return the grant and the periods whose accounts an entry changed."""
    return entry.grant_id, charged_in(entry)


def _event(
    kind: EntryKind,
    accounts: Accounts,
    job_id: str,
    cost: Cost,
    actor: str,
    at: datetime,
    payload: str | None,
) -> Event:
    """Return what happened to a job, in all accounts that pay it."""
    return Event(kind, cost, actor, at, accounts.grant_id, job_id, accounts.periods, payload)


def _new_account(dataset_id: int, key: AccountKey, total: Cost) -> Account:
    return Account(
        dataset_id=dataset_id,
        period=key.period,
        grant_id=key.grant,
        loss_total=total.loss,
        loss_reserved=0,
        loss_spent=0,
        delta_total=total.delta,
        delta_reserved=0,
        delta_spent=0,
        entries=0,
        head=GENESIS,
    )
