"""Exact: on tiny domains, what accounts are charged bounds what everybody loses; plausible mistakes do not.

All neighbours of each unit of privacy over three periods are enumerated, in both versions of corrected
periods. A job releases a noisy count of the rows of the periods that it reads: two-sided geometric noise for
as many rows as it must protect, clamped to 0..4, whose probabilities are rational numbers. The adversary sees
each result before the next job is chosen, and picks the worst job that still fits. The largest ratio of two
probabilities of everything that was seen is then a product over the path, so it is found by searching the
paths; no probability is estimated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import pytest

from core.privacy import Budget
from service.ledger import accountants
from service.ledger.charging import charged_periods, rows_protected
from service.ledger.units import Cost
from service.operations.states import Unit

PERIODS = ("2026-01", "2026-02", "2026-03")
#: Every choice of periods that a job may read.
RANGES = tuple(each for size in (1, 2, 3) for each in combinations(PERIODS, size))
#: What each account may spend, in steps; a job costs one step or two.
TOTAL = 2
#: A loss of one step is a ratio of 2**12, so that steps divided by 1, 2, 3, 4 or 6 rows stay rational.
STEP = 12
#: Most rows of one person in a period.
LIMIT = 2
HIGHEST = 4

#: Rows in each period.
Rows = tuple[int, int, int]


@dataclass(frozen=True)
class Rules:
    """How jobs are charged, and what their noise protects; the defaults are those of the service."""

    charged: Callable[[Unit, Sequence[str]], tuple[str, ...]] = charged_periods
    protected: Callable[[Unit, Sequence[str], int], int] = rows_protected
    #: Whether a corrected period goes on with the account of its earlier version.
    account_goes_on: bool = True

    def limit(self, unit: Unit) -> int:
        return 1 if unit is Unit.RECORD else LIMIT


BUILT = Rules()


@cache
def law(count: int, loss: Fraction) -> tuple[Fraction, ...]:
    """Probabilities of the noisy count 0 to 4, if one row changes them by a factor of at most 2**loss."""
    assert loss.denominator == 1
    alpha = Fraction(1, 2**loss.numerator)
    inside = [(1 - alpha) / (1 + alpha) * alpha ** abs(value - count) for value in range(1, HIGHEST)]
    low = alpha**count / (1 + alpha) if count > 0 else 1 / (1 + alpha)
    return (low, *inside, 1 - low - sum(inside))


@cache
def ratio(count: int, other: int, loss: Fraction) -> Fraction:
    """The largest ratio of probabilities of one result, either way."""
    pairs = list(zip(law(count, loss), law(other, loss), strict=True))
    return max(max(p / q, q / p) for p, q in pairs)


def count(rows: Rows, read: Sequence[str]) -> int:
    return sum(rows[PERIODS.index(label)] for label in read)


def worst(rules: Rules, unit: Unit, histories: tuple[tuple[Rows, Rows], ...]) -> Fraction:
    """The largest ratio that an adversary reaches who may go on to the next version at any time.

    `histories`: for each version, the rows of two neighbours.
    """

    @cache
    def reached(version: int, left: tuple[tuple[str, int], ...]) -> Fraction:
        best = Fraction(1)
        if version + 1 < len(histories):
            fresh = tuple((label, TOTAL) for label, _ in left)
            best = reached(version + 1, left if rules.account_goes_on else fresh)
        one, other = histories[version]
        for read, steps in product(RANGES, (1, 2)):
            charged, room = rules.charged(unit, read), dict(left)
            if any(room[label] < steps for label in charged):
                continue
            after = tuple((label, room[label] - steps * (label in charged)) for label in room)
            loss = Fraction(STEP * steps, rules.protected(unit, read, rules.limit(unit)))
            best = max(best, ratio(count(one, read), count(other, read), loss) * reached(version, after))
        return best

    return reached(0, tuple((label, TOTAL) for label in ("", *PERIODS)))


def parts_of(unit: Unit) -> Iterator[Rows]:
    """What one contributor may add to the periods of one version."""
    if unit is Unit.PERSON:
        yield from product(range(LIMIT + 1), repeat=3)
        return
    for place, rows in product(range(3), range(1, (1 if unit is Unit.RECORD else LIMIT) + 1)):
        yield tuple(rows if each == place else 0 for each in range(3))  # type: ignore[misc]


def neighbours(unit: Unit, others: Rows) -> Iterator[tuple[Rows, Rows]]:
    """Everybody else's rows, with and without those of one contributor."""
    for part in parts_of(unit):
        yield others, tuple(a + b for a, b in zip(others, part, strict=True))  # type: ignore[misc]


OTHERS: tuple[Rows, ...] = ((0, 0, 0), (1, 0, 0), (0, 2, 1), (1, 1, 1))
BOUND = Fraction(2) ** (STEP * TOTAL)


@pytest.mark.parametrize("unit", list(Unit))
def test_adaptively_chosen_jobs_keep_what_the_accounts_say_for_every_neighbour(unit: Unit) -> None:
    pairs = {pair for others in OTHERS for pair in neighbours(unit, others)}
    assert max(worst(BUILT, unit, (pair,)) for pair in pairs) == BOUND


@pytest.mark.parametrize("unit", list(Unit))
def test_whoever_is_in_both_versions_of_a_period_loses_no_more_than_its_account_says(unit: Unit) -> None:
    """Wrong in version 1 and right in version 2: the part may be another, in the same periods."""
    others: tuple[Rows, ...] = ((0, 0, 0), (1, 0, 0)) if unit is Unit.PERSON else OTHERS
    for rows in others:
        for before, after in product(neighbours(unit, rows), repeat=2):
            same = [a - b > 0 for a, b in zip(before[1], rows, strict=True)] == [
                a - b > 0 for a, b in zip(after[1], rows, strict=True)
            ]
            if same or unit is Unit.PERSON:
                assert worst(BUILT, unit, (before, after)) <= BOUND


def test_whoever_moves_to_another_period_loses_at_most_both_accounts_together() -> None:
    pairs = list(neighbours(Unit.RECORD, (1, 0, 0)))
    found = max(worst(BUILT, Unit.RECORD, moved) for moved in product(pairs, repeat=2))
    group = accountants.get("sum", Budget.of("1")).group([Cost(STEP * TOTAL, 0)] * 2)
    assert BOUND < found <= Fraction(2) ** group.loss


def test_a_person_in_several_periods_loses_at_most_what_the_group_rule_says() -> None:
    """The unit is the person in a period; one person is in every choice of periods."""
    accountant = accountants.get("sum", Budget.of("1"))
    for part in parts_of(Unit.PERSON):
        involved = sum(rows > 0 for rows in part)
        group = accountant.group([Cost(STEP * TOTAL, 0)] * involved)
        found = worst(BUILT, Unit.PERSON_IN_PERIOD, (((0, 0, 0), part),))
        assert found <= Fraction(2) ** group.loss


def _first_alone(unit: Unit, periods: Sequence[str]) -> tuple[str, ...]:
    return charged_periods(unit, periods)[:1]


def _limit_alone(unit: Unit, periods: Sequence[str], rows: int) -> int:
    return rows


@pytest.mark.parametrize(
    ("rules", "unit", "corrected"),
    [
        (Rules(charged=_first_alone), Unit.RECORD, False),
        (Rules(charged=_first_alone), Unit.PERSON_IN_PERIOD, False),
        (Rules(protected=_limit_alone), Unit.PERSON, False),
        (Rules(account_goes_on=False), Unit.RECORD, True),
        (Rules(account_goes_on=False), Unit.PERSON, True),
    ],
    ids=["one period pays", "one period of a person pays", "m rows for m in each", "fresh", "fresh person"],
)
def test_plausible_mistakes_are_caught(rules: Rules, unit: Unit, corrected: bool) -> None:
    pairs = neighbours(unit, (0, 0, 0))
    assert any(worst(rules, unit, (pair, pair) if corrected else (pair,)) > BOUND for pair in pairs)


def renyi(count_: int, other: int, loss: float, order: int) -> float:
    """The Renyi divergence of a noisy count, clamped far out, for losses in nats."""
    alpha = math.exp(-loss)
    values = range(-400, 401)
    p, q = ([alpha ** abs(value - each) for value in values] for each in (count_, other))
    whole = (1 + alpha) / (1 - alpha)
    moment = math.fsum(a**order * b ** (1 - order) for a, b in zip(p, q, strict=True)) / whole
    return math.log(moment) / (order - 1)


def test_rho_of_a_person_in_several_periods_is_no_sum() -> None:
    """A job on all three periods at rho = loss^2 / 2 in each; a person has one row in every period."""
    loss, order = 0.2, 2
    rho = Cost(round(loss**2 / 2 * 10**12), 0)
    found = renyi(0, 3, loss, order)
    group = accountants.get("zcdp", Budget.of("1", "1e-6")).group([rho] * 3)
    assert found <= order * group.loss / 10**12
    assert found > order * 3 * rho.loss / 10**12, "summed rho would have been enough"
