"""Accounts of periods: which there are, which has the least left, and what somebody lost in all."""

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from core.privacy import Budget
from service import ledger
from service.ledger import accountants
from service.ledger.accountants import Accountant, Amount
from service.ledger.charging import WHOLE, AccountKey
from service.ledger.units import NOTHING, Cost
from service.operations.states import Unit
from service.operations.tables import Dataset, Grant, Period


def totals(session: Session, dataset: Dataset) -> dict[str, Cost]:
    """Return the declared total of each account of a dataset, by label: its periods, or one that is empty."""
    if not dataset.has_accounts_of_periods:
        return {WHOLE: accountants.of(dataset).total}
    query = select(Period).where(Period.dataset_id == dataset.id, Period.sealed_at.is_not(None))
    return {each.label: _total(dataset, each) for each in session.scalars(query.order_by(Period.version))}


def labels(session: Session, dataset: Dataset) -> tuple[str, ...]:
    """Return the labels of the accounts of a dataset."""
    return tuple(sorted(totals(session, dataset)))


def _total(dataset: Dataset, period: Period) -> Cost:
    return _accountant(dataset, period).total


def _accountant(dataset: Dataset, period: Period) -> Accountant:
    return accountants.get(dataset.accountant, Budget(period.epsilon_units, period.delta_units))


def described(
    session: Session, dataset: Dataset, grant: Grant | None, key: AccountKey, balance: ledger.Balance
) -> dict[str, Any]:
    """Describe the balance of an account with the budget or the cap that it was declared with."""
    accountant = accountants.of(dataset, grant if key.grant is not None else None)
    if key.grant is None and key.period != WHOLE:
        opened = (Period.dataset_id == dataset.id, Period.label == key.period, Period.sealed_at.is_not(None))
        newest = select(Period).where(*opened).order_by(Period.version.desc()).limit(1)
        accountant = _accountant(dataset, session.scalars(newest).one())
    return {"declared": accountants.declared(accountant.declared), **accountant.amounts(balance)}


def tightest(session: Session, dataset: Dataset, grant: Grant | None = None) -> ledger.Balance:
    """Return the balance with the least left of the dataset or of a grant; a full one before any period."""
    if not dataset.has_accounts_of_periods:
        return ledger.balance(ledger.find(session, dataset.id, grant.id if grant else None))
    grant_id = grant.id if grant else None
    found = [
        balance
        for key, balance in ledger.balances(session, dataset.id, grant_id).items()
        if key.grant == grant_id and key.period != WHOLE
    ]
    if not found:
        return ledger.Balance(accountants.of(dataset, grant).total, NOTHING, NOTHING)
    return min(found, key=lambda balance: (balance.remaining.loss, balance.remaining.delta))


def lost_in_all(session: Session, dataset: Dataset) -> Amount | None:
    """Return what somebody with rows in every period has lost, where the unit is a person in a period."""
    if dataset.unit != Unit.PERSON_IN_PERIOD:
        return None
    accountant = accountants.of(dataset)
    spent = [
        balance.spent for key, balance in ledger.balances(session, dataset.id).items() if key != AccountKey()
    ]
    return accountant.amount(accountant.group(spent))


def open_for(session: Session, dataset: Dataset, period: Period, *, actor: str) -> None:
    """Open the accounts of a period that is sealed for the first time, where periods have accounts."""
    if not dataset.has_accounts_of_periods:
        return
    assert period.sealed_at is not None  # it is being sealed
    grants = session.scalars(select(Grant).where(Grant.dataset_id == dataset.id))
    caps = {grant.id: accountants.of(dataset, grant).total for grant in grants}
    locked, total = ledger.lock(session, dataset.id), _total(dataset, period)
    ledger.open_period(session, locked, period.label, total, caps, actor=actor, at=period.sealed_at)
