"""Exact: what a population is charged bounds what somebody in two of its datasets loses; mistakes do not.

One dataset has two periods, the other one none. A person has rows in both. Neighbours are all choices of the
person's rows. The adversary sees each result before choosing the next job, its dataset, its periods, and
whether the owner or an analyst submits it; and lets the first dataset join the population at any time. Laws
and their ratios are those of `test_charging`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import product

import pytest

from core.privacy import Budget
from service.ledger import accountants
from service.ledger.accountants import StoredGuarantee
from service.ledger.charging import (
    AccountKey,
    account_keys,
    charged_periods,
    parts_of_person,
    rows_protected,
)
from service.ledger.units import Cost
from service.operations.states import Unit
from tests.service.ledger.test_charging import LIMIT, STEP, ratio, renyi

MONTHS = ("2026-01", "2026-02")
RANGES = ((MONTHS[0],), (MONTHS[1],), MONTHS)
POPULATION = 1
ANALYST = 7
#: Steps in each account of a dataset, and in that of the population, which is the tighter one.
TOTAL = 2
TOGETHER = 3
BOUND = Fraction(2) ** (STEP * TOGETHER)

#: Rows in the two periods of the first dataset, and in the second.
Rows = tuple[int, int, int]
#: What is left in each account, by dataset.
Left = tuple[tuple[tuple[int, AccountKey], int], ...]


def of_person(steps: int, parts: int) -> int:
    """What the accountant `sum` charges the population for a job of so many steps."""
    cost: Cost = accountants.get("sum", Budget.of("1")).of_person(StoredGuarantee(steps, 0, 0, 0), parts)
    return cost.loss


@dataclass(frozen=True)
class Rules:
    """How jobs are charged, and what their noise protects; the defaults are those of the service."""

    keys: Callable[[Sequence[str], int | None, int | None], tuple[AccountKey, ...]] = account_keys
    protected: Callable[[Unit | None, Sequence[str], int], int] = rows_protected
    parts: Callable[[Unit | None, Sequence[str]], int] = parts_of_person
    #: Whether a dataset that joins brings what its jobs have cost.
    history_counts: bool = True


def worst(rules: Rules, unit: Unit, one: Rows, other: Rows) -> Fraction:
    """The largest ratio that an adversary reaches on datasets that are both in the population at the end."""
    limits = (1 if unit is Unit.RECORD else LIMIT, 1)

    def jobs(
        of_first: int | None,
    ) -> Iterator[tuple[int, Sequence[str], int, int, set[tuple[int, AccountKey]]]]:
        """Yield dataset, what is read, steps, what it costs a person, and the accounts that are charged."""
        for (dataset, read), steps, grant in product(
            [*((0, each) for each in RANGES), (1, ("",))], (1, 2), (None, ANALYST)
        ):
            of_unit = unit if dataset == 0 else None
            population = POPULATION if dataset == 1 else of_first
            found = rules.keys(charged_periods(of_unit, read), grant, population)
            keys = {(-1 if key.population else dataset, key) for key in found}
            yield dataset, read, steps, of_person(steps, rules.parts(of_unit, read)), keys

    choices = {joined: list(jobs(POPULATION if joined else None)) for joined in (False, True)}

    @cache
    def reached(joined: bool, history: int, left: Left) -> Fraction:
        room = dict(left)
        best = Fraction(1) if joined else Fraction(0)
        together = (-1, AccountKey(population=POPULATION))
        if not joined:
            brought = history if rules.history_counts else 0
            if brought <= room[together]:
                best = reached(True, 0, spend(room, {together: brought}))
        for dataset, read, steps, person, keys in choices[joined]:
            costs = {key: person if key[0] < 0 else steps for key in keys}
            if any(room[key] < cost for key, cost in costs.items()):
                continue
            before = 0 if joined or dataset == 1 else person
            after = reached(joined, history + before, spend(room, costs))
            rows = rules.protected(unit if dataset == 0 else None, read, limits[dataset])
            counts = (
                sum(each[MONTHS.index(label) if label else 2] for label in read) for each in (one, other)
            )
            best = max(best, ratio(*counts, Fraction(STEP * steps, rows)) * after)
        return best

    of_datasets = [(0, key) for key in account_keys(("", *MONTHS), ANALYST)]
    of_datasets += [(1, key) for key in account_keys(("",), ANALYST)]
    start = dict.fromkeys(of_datasets, TOTAL) | {(-1, AccountKey(population=POPULATION)): TOGETHER}
    return reached(False, 0, tuple(start.items()))


def spend(room: dict[tuple[int, AccountKey], int], costs: dict[tuple[int, AccountKey], int]) -> Left:
    return tuple((key, left - costs.get(key, 0)) for key, left in room.items())


def people(unit: Unit) -> Iterator[Rows]:
    """The rows that one person may have: at most one in the second dataset."""
    most = 1 if unit is Unit.RECORD else LIMIT
    return product(range(most + 1), range(most + 1), (0, 1))


@pytest.mark.parametrize("unit", list(Unit))
def test_whoever_is_in_two_datasets_loses_at_most_what_the_population_says(unit: Unit) -> None:
    assert max(worst(Rules(), unit, (0, 0, 0), person) for person in people(unit)) == BOUND


def _not_for_owners(
    charged: Sequence[str], grant: int | None, population: int | None
) -> tuple[AccountKey, ...]:
    return account_keys(charged, grant, population if grant else None)


def _limit_alone(unit: Unit | None, periods: Sequence[str], rows: int) -> int:
    return rows


def _one_part(unit: Unit | None, periods: Sequence[str]) -> int:
    return 1


@pytest.mark.parametrize(
    ("rules", "unit"),
    [
        (Rules(keys=_not_for_owners), Unit.PERSON_IN_PERIOD),
        (Rules(keys=_not_for_owners), Unit.PERSON),
        (Rules(protected=_limit_alone), Unit.PERSON),
        (Rules(parts=_one_part), Unit.PERSON_IN_PERIOD),
        (Rules(parts=_one_part), Unit.RECORD),
        (Rules(history_counts=False), Unit.RECORD),
        (Rules(history_counts=False), Unit.PERSON),
    ],
    ids=[
        "owner",
        "owner, person",
        "m rows for p m",
        "no group",
        "no group, record",
        "history",
        "history, person",
    ],
)
def test_plausible_mistakes_are_caught(rules: Rules, unit: Unit) -> None:
    assert any(worst(rules, unit, (0, 0, 0), person) > BOUND for person in people(unit))


def test_summed_rho_of_periods_is_not_what_a_person_loses() -> None:
    """A job reads three periods with one row of a person in each, at rho = loss^2 / 2 in every one."""
    loss, order, periods = 0.2, 2, ("2026-01", "2026-02", "2026-03")
    rho = round(loss**2 / 2 * 10**12)
    parts = parts_of_person(Unit.PERSON_IN_PERIOD, periods)
    accountant = accountants.get("zcdp", Budget.of("1", "1e-6"))
    charged = accountant.of_person(StoredGuarantee(0, 0, rho, 0), parts)
    found = renyi(0, len(periods), loss, order)
    assert charged == Cost(9 * rho, 0)
    assert found <= order * charged.loss / 10**12
    assert found > order * len(periods) * rho / 10**12, "summed rho would have been enough"
