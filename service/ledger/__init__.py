"""The ledger of each dataset: reserve, charge, void, balance; exact, append-only, hash-chained."""

from service.ledger.accounts import (
    Accounts,
    Balance,
    NotReserved,
    Overdrawn,
    balance,
    balances,
    charge,
    delta_left,
    find,
    lock,
    open_account,
    open_period,
    raise_total,
    reserve,
    set_cap,
    void,
)
from service.ledger.entries import ChargeEntry, charge_of

__all__ = [
    "Accounts",
    "Balance",
    "ChargeEntry",
    "NotReserved",
    "Overdrawn",
    "balance",
    "balances",
    "charge",
    "charge_of",
    "delta_left",
    "find",
    "lock",
    "open_account",
    "open_period",
    "raise_total",
    "reserve",
    "set_cap",
    "void",
]
