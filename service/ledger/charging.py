"""Which accounts a job is charged to, and how many rows its noise protects: functions of public facts alone.

The argument is in `docs/decisions`, 0018. Nothing here reads a database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from service.operations.states import Unit

#: The label of the account of a dataset as a whole; periods have labels of at least one character.
WHOLE = ""


@dataclass(frozen=True)
class AccountKey:
    """Names an account of a dataset: of a period or the whole, and of a grant or all jobs together."""

    period: str = WHOLE
    grant: int | None = None


def charged_periods(unit: Unit | None, periods: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of the accounts that a job on these periods is charged to, in full.

    One account for all periods where the unit is a person, and in a dataset without periods (no unit); else
    the account of each period that is read.
    """
    return tuple(sorted(set(periods))) if unit and unit.has_accounts_of_periods else (WHOLE,)


def account_keys(charged: Sequence[str], grant: int | None) -> tuple[AccountKey, ...]:
    """Return the accounts with these labels that a job pays from; those of a grant come last."""
    shared = tuple(AccountKey(label) for label in charged)
    return shared if grant is None else (*shared, *(AccountKey(label, grant) for label in charged))


def rows_protected(unit: Unit | None, periods: Sequence[str], rows_per_person: int) -> int:
    """Return how many rows of one contributor the noise of a job on these periods must protect.

    `rows_per_person` is the limit in each period.
    """
    return rows_per_person * len(set(periods)) if unit is Unit.PERSON else rows_per_person
