"""Accounts of populations, datasets, periods and grants: lock, reserve, charge, void, and their entries.

Every function runs inside the caller's write transaction. Locks are taken in one order, the dataset's
account, those of periods, those of a grant, that of the population, so no two transactions can wait for each
other. The dataset's account row carries the chain's head, so holding its lock also puts the entries in order.
It names the population, too: nothing else of a dataset has to be read under its lock.

    (nothing) --reserve--> reserved --charge--> charged
                               +-----void-----> void
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import bindparam, func, select
from sqlalchemy.orm import Session

from service.ledger.charging import WHOLE, AccountKey, Price, account_keys
from service.ledger.entries import GENESIS, Event, append, charged_in, of_person
from service.ledger.units import LARGEST_UNITS, NOTHING, Cost
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
_OF_POPULATION = (Account.dataset_id.is_(None), Account.population_id == bindparam("population"))
_POPULATION = select(Account).where(*_OF_POPULATION)
_LOCK_POPULATION = _POPULATION.with_for_update().execution_options(populate_existing=True)


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
    def population_id(self) -> int | None:
        """The population that the dataset's jobs are charged to as well."""
        return self.dataset.population_id

    @property
    def paying(self) -> dict[AccountKey, Account]:
        """The accounts that a job is paid from; KeyError if one was never opened, or is not locked."""
        keys = account_keys(self.periods, self.grant_id, self.population_id)
        return {key: self.found[key] for key in keys}


@dataclass(frozen=True)
class History:
    """What the jobs of a dataset cost one person, as a population counts it, before the dataset joins."""

    spent: Cost
    #: By job that waits.
    reserved: Mapping[str, Cost]

    @property
    def total(self) -> Cost:
        return total_of([self.spent, *self.reserved.values()])


def balance(account: Account) -> Balance:
    """Return the account's amounts as a value."""
    return Balance(
        total=Cost(account.loss_total, account.delta_total),
        reserved=Cost(account.loss_reserved, account.delta_reserved),
        spent=Cost(account.loss_spent, account.delta_spent),
    )


def total_of(costs: Iterable[Cost]) -> Cost:
    """Return the sum of costs, or the largest amount that there is."""
    loss = delta = 0
    for cost in costs:
        loss, delta = loss + cost.loss, delta + cost.delta
    return Cost(min(loss, LARGEST_UNITS), min(delta, LARGEST_UNITS))


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


def of_population(session: Session, population_id: int) -> Balance:
    """Return the balance of a population, without a lock."""
    return balance(session.scalars(_POPULATION, {"population": population_id}).one())


def delta_left(
    session: Session, dataset_id: int, grant_id: int | None, periods: Sequence[str] = (WHOLE,)
) -> int:
    """Return the delta, in units, that one more job of a grant, or of the owner, may cost now."""
    asked = {"dataset": dataset_id, "grant": grant_id, "periods": list(periods)}
    return int(session.connection().execute(_DELTA_LEFT, asked).scalar_one())


def lock(
    session: Session, dataset_id: int, grant_id: int | None = None, periods: Sequence[str] = (WHOLE,)
) -> Accounts:
    """Lock the dataset's account, then those of periods, then a grant's; every writer takes this order.

    `lock_paying` does, where a job is reserved or settled.
    """
    asked = {"dataset": dataset_id, "grant": grant_id, "periods": list(periods)}
    rows = session.scalars(_LOCK, asked).all()
    found = {AccountKey(row.period, row.grant_id): row for row in rows}
    return Accounts(found[AccountKey()], tuple(periods), grant_id, found)


def lock_paying(
    session: Session, dataset_id: int, grant_id: int | None = None, periods: Sequence[str] = (WHOLE,)
) -> Accounts:
    """Lock every account that a job is paid from; that of the population, which is the last, among them.

    Which one that is says the dataset's account, once it is locked: datasets join at any time.
    """
    accounts = lock(session, dataset_id, grant_id, periods)
    if accounts.population_id is not None:
        key = AccountKey(population=accounts.population_id)
        accounts.found[key] = _lock_population(session, accounts.population_id)
    return accounts


def _lock_population(session: Session, population_id: int) -> Account:
    return session.scalars(_LOCK_POPULATION, {"population": population_id}).one()


def open_population(session: Session, population_id: int, total: Cost) -> None:
    """Open the account of a new population; entries of datasets say what it is charged."""
    session.add(_new_account(None, AccountKey(population=population_id), total))
    session.flush()


def raise_population(session: Session, population_id: int, total: Cost) -> None:
    """Set a larger total of a population; Overdrawn when it is smaller than before."""
    account = _lock_population(session, population_id)
    if total.loss < account.loss_total or total.delta < account.delta_total:
        raise Overdrawn(AccountKey(population=population_id), total, balance(account))
    account.loss_total, account.delta_total = total.loss, total.delta
    session.flush()


def join(
    session: Session, accounts: Accounts, population_id: int, history: History, *, actor: str, at: datetime
) -> None:
    """Let a dataset join a population with its history; Overdrawn if that does not fit.

    `accounts` hold the dataset's lock, so that the history is all there is.
    """
    account = _lock_population(session, population_id)
    present = balance(account)
    if not history.total.fits(present.remaining):
        raise Overdrawn(AccountKey(population=population_id), history.total, present)
    reserved = total_of(history.reserved.values())
    account.loss_spent += history.spent.loss
    account.delta_spent += history.spent.delta
    account.loss_reserved += reserved.loss
    account.delta_reserved += reserved.delta
    accounts.dataset.population_id = population_id
    waiting = {job: [cost.loss, cost.delta] for job, cost in history.reserved.items()}
    payload = canonical.text({"reserved": waiting})
    event = Event(
        EntryKind.JOIN, NOTHING, actor, at, payload=payload,
        population_id=population_id, of_person=history.spent,
    )  # fmt: skip
    append(session, accounts.dataset, event)
    session.flush()


def reserved_at_join(entry: Any) -> dict[str, Cost]:
    """Return what the jobs that waited when a dataset joined a population cost one person there."""
    return {job: Cost(*amount) for job, amount in json.loads(entry.payload)["reserved"].items()}


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
    (label,) = accounts.periods
    key = AccountKey(label)
    account = accounts.found[key]
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
    price: Price,
    paid_for: Mapping[str, Any] | None = None,
    *,
    actor: str,
    at: datetime,
) -> None:
    """Reserve a job's price in full in every account that pays it, or raise Overdrawn and change nothing.

    `paid_for`: what the cost is for; part of the reservation's entry, and of the charge's.
    """
    paying = accounts.paying
    _require_room({key: balance(account) for key, account in paying.items()}, price)
    for key, account in paying.items():
        cost = price.of(key)
        account.loss_reserved += cost.loss
        account.delta_reserved += cost.delta
    payload = canonical.text(paid_for) if paid_for else None
    append(session, accounts.dataset, _event(EntryKind.RESERVE, accounts, job_id, price, actor, at, payload))
    session.flush()


def _require_room(balances: dict[AccountKey, Balance], price: Price) -> None:
    """Raise Overdrawn, for the first account that has no room, unless the price fits into all of them."""
    rooms = {key: balance.remaining for key, balance in balances.items()}
    short = [key for key, room in rooms.items() if not price.of(key).fits(room)]
    if short:
        alike = {key: room for key, room in rooms.items() if key.population is None or price.alike}
        least_loss = min(alike, key=lambda key: alike[key].loss)
        least_delta = min(alike, key=lambda key: alike[key].delta)
        largest = Cost(alike[least_loss].loss, alike[least_delta].delta)
        tightest = least_loss if price.cost.loss > largest.loss else least_delta
        first = short[0]
        raise Overdrawn(
            first, price.of(first), balances[first], largest=largest, tightest=tightest, short=short
        )


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
    price = Price(Cost(rows[0].loss_units, rows[0].delta_units), _of_person(session, accounts, rows[0]))
    for key, account in accounts.paying.items():
        cost = price.of(key)
        account.loss_reserved -= cost.loss
        account.delta_reserved -= cost.delta
        if kind is EntryKind.CHARGE:
            account.loss_spent += cost.loss
            account.delta_spent += cost.delta
    payload = rows[0].payload
    if also and payload is not None:
        payload = canonical.text({**json.loads(payload), **also})
    append(session, accounts.dataset, _event(kind, accounts, job_id, price, actor, at, payload))
    session.flush()
    return price.cost


def _of_person(session: Session, accounts: Accounts, reservation: LedgerEntry) -> Cost | None:
    """Return what a reserved job costs the population, since it was reserved or since the dataset joined."""
    if accounts.population_id is None or reservation.population_id is not None:
        return of_person(reservation)
    joined = select(LedgerEntry).where(
        LedgerEntry.population_id == accounts.population_id,
        LedgerEntry.dataset_id == accounts.dataset.dataset_id,
        LedgerEntry.kind == EntryKind.JOIN,
    )
    return reserved_at_join(session.scalars(joined).one())[reservation.job_id or ""]


def _payer(entry: LedgerEntry) -> tuple[int | None, tuple[str, ...]]:
    """Return the grant and the periods whose accounts an entry changed."""
    return entry.grant_id, charged_in(entry)


def _event(
    kind: EntryKind,
    accounts: Accounts,
    job_id: str,
    price: Price,
    actor: str,
    at: datetime,
    payload: str | None,
) -> Event:
    """Return what happened to a job, in all accounts that pay it."""
    return Event(
        kind,
        price.cost,
        actor,
        at,
        accounts.grant_id,
        job_id,
        accounts.periods,
        accounts.population_id,
        price.of_person,
        payload,
    )


def _new_account(dataset_id: int | None, key: AccountKey, total: Cost) -> Account:
    return Account(
        dataset_id=dataset_id,
        population_id=key.population,
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
