"""Accountants, one module each, and their registry: how the losses of jobs on a dataset add up."""

from typing import TYPE_CHECKING, Literal, Protocol

from core.errors import InvalidBudget
from core.privacy import Budget
from service.ledger.accountants.base import Accountant, Amount, Guarantee, StoredGuarantee, declared
from service.ledger.accountants.plain_sum import Sum
from service.ledger.accountants.zcdp import Zcdp

__all__ = [
    "Accountant",
    "AccountantName",
    "Amount",
    "Guarantee",
    "StoredGuarantee",
    "all_kinds",
    "declared",
    "get",
    "names",
    "of",
]

_ACCOUNTANTS: dict[str, type[Accountant]] = {kind.name: kind for kind in (Sum, Zcdp)}


#: A name of the registry, in a request or an answer.
if TYPE_CHECKING:
    AccountantName = str
else:
    AccountantName = Literal[tuple(_ACCOUNTANTS)]


class _Declared(Protocol):
    """A dataset or a grant: an account is opened with its budget."""

    @property
    def epsilon_units(self) -> int: ...

    @property
    def delta_units(self) -> int: ...


class _Dataset(_Declared, Protocol):
    """A dataset or a population, which names its accountant."""

    @property
    def accountant(self) -> str: ...


def names() -> tuple[str, ...]:
    """Return the names of all accountants."""
    return tuple(_ACCOUNTANTS)


def all_kinds() -> tuple[type[Accountant], ...]:
    """Return all accountants."""
    return tuple(_ACCOUNTANTS.values())


def get(name: str, budget: Budget) -> Accountant:
    """Return an accountant for an account with this declared budget."""
    if name not in _ACCOUNTANTS:
        raise InvalidBudget(
            f"there is no accountant {name!r}; choose one of {', '.join(_ACCOUNTANTS)}",
            parameter="accountant",
        )
    return _ACCOUNTANTS[name](budget)


def of(dataset: _Dataset, grant: _Declared | None = None) -> Accountant:
    """Return the accountant of a dataset or a population, for its account or for that of a grant."""
    declared = grant or dataset
    return get(dataset.accountant, Budget(declared.epsilon_units, declared.delta_units))
