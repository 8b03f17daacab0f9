"""Which accounts a job is charged to, and how many rows its noise protects: functions of public facts alone.

The arguments are in `docs/decisions`, 0018 and 0027. Nothing here reads a database.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from service.ledger.units import Cost
from service.operations.states import Unit

#: The label of the account of a dataset as a whole; periods have labels of at least one character.
WHOLE = ""


@dataclass(frozen=True)
class AccountKey:
    """Names an account: of a population, or of a dataset.

    Those of a dataset are of a period or the whole, and of a grant or all jobs together.
    """

    period: str = WHOLE
    grant: int | None = None
    population: int | None = None


@dataclass(frozen=True)
class Price:
    """What a job costs: the accounts of its dataset, and the population that the dataset is in."""

    cost: Cost
    #: What one person loses in all that the job reads, in the population's currency.
    of_person: Cost | None = None
    #: Whether the population is charged the same amount in the same currency.
    alike: bool = False

    def of(self, key: AccountKey) -> Cost:
        """Return what an account is charged."""
        if key.population is None:
            return self.cost
        assert self.of_person is not None, "a job on a dataset of a population"
        return self.of_person


def charged_periods(unit: Unit | None, periods: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of the accounts that a job on these periods is charged to, in full.

    One account for all periods where the unit is a person, and in a dataset without periods (no unit); else
    the account of each period that is read.
    """
    return tuple(sorted(set(periods))) if unit and unit.has_accounts_of_periods else (WHOLE,)


def account_keys(
    charged: Sequence[str], grant: int | None, population: int | None = None
) -> tuple[AccountKey, ...]:
    """Return the accounts that a job pays from: those with these labels, of a grant, of the population."""
    keys = [AccountKey(label) for label in charged]
    if grant is not None:
        keys += [AccountKey(label, grant) for label in charged]
    if population is not None:
        keys.append(AccountKey(population=population))
    return tuple(keys)


def rows_protected(unit: Unit | None, periods: Sequence[str], rows_per_person: int) -> int:
    """Return how many rows of one contributor the noise of a job on these periods must protect.

    `rows_per_person` is the limit in each period.
    """
    return rows_per_person * len(set(periods)) if unit is Unit.PERSON else rows_per_person


def parts_of_person(unit: Unit | None, periods: Sequence[str]) -> int:
    """Return how many parts of one person a job on these periods reads, each of which its noise protects.

    More than one where the unit is smaller than a person: the person loses what a group of so many does.
    """
    return len(set(periods)) if unit and unit.has_accounts_of_periods else 1
