"""What every accountant of the registry must keep."""

from __future__ import annotations

from decimal import Decimal

import pytest

from core.algorithms import registry
from core.data import Dense
from core.errors import InvalidBudget
from core.plan import Plan, Request
from core.privacy import DELTA_UNIT, Budget
from core.privacy.composition import compose
from core.privacy.losses import Loss
from service.ledger import accountants
from service.ledger.accountants import Accountant
from service.ledger.accounts import Balance
from service.ledger.units import NOTHING, Cost

DECLARED = Budget.of("3", "0.00001")
DOMAIN = Dense.box(0, 1, dimension=2, size=10_000)
#: Gaussian noise alone, a pure guarantee, and a mechanism with an approximate part.
ALGORITHMS = ("sulq", PURE := "balcan", "jones-euclidean")

OPTIONS = {"jones-euclidean": {"accounting": "approximate"}}


@pytest.fixture(params=accountants.names())
def accountant(request: pytest.FixtureRequest) -> Accountant:
    return accountants.get(request.param, DECLARED)


def plan(algorithm: str, epsilon: str = "0.2") -> Plan:
    budget = Budget.of(epsilon) if algorithm == PURE else Budget.of(epsilon, "0.0000001")
    return registry.plan(DOMAIN, Request(3, budget, algorithm=algorithm, options=OPTIONS.get(algorithm, {})))


def test_every_accountant_declares_its_words(accountant: Accountant) -> None:
    for words in (accountant.name, accountant.title, accountant.advice, accountant.composition):
        assert words == words.strip() != ""
    assert accountant.noise in ("auto", "laplace", "gaussian")
    assert accountant.supports(DECLARED)
    assert accountant.unsupported or accountant.supports(Budget.of("3"))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_as_many_jobs_as_fit_keep_the_declared_budget(accountant: Accountant, algorithm: str) -> None:
    made, spent = plan(algorithm), NOTHING
    losses: list[tuple[Loss, int]] = []
    while (spent + accountant.cost(made)).fits(accountant.total):
        spent += accountant.cost(made)
        losses += made.losses
    assert len(losses) > len(made.losses)
    assert compose(losses).within(DECLARED)


def test_budget_that_is_enough_for_an_amount_is_hardly_more(accountant: Accountant) -> None:
    total = accountant.total
    amount = Cost(total.loss * 3 // 2, total.delta * 2)
    enough = accountant.enough_for(amount)
    assert enough is not None
    assert amount.fits(accountants.get(accountant.name, enough).total)
    less = Budget(enough.epsilon_units - 10**6, enough.delta_units)
    assert not amount.fits(accountants.get(accountant.name, less).total)
    assert accountant.enough_for(total) == DECLARED
    assert accountant.enough_for(Cost(10**17, 0)) is None


def test_jobs_of_different_mechanisms_that_fit_together_keep_the_declared_budget(
    accountant: Accountant,
) -> None:
    made = [plan(algorithm) for algorithm in ALGORITHMS]
    spent = NOTHING
    losses: list[tuple[Loss, int]] = []
    while (after := sum((accountant.cost(each) for each in made), spent)).fits(accountant.total):
        spent = after
        losses += [loss for each in made for loss in each.losses]
    assert losses
    assert compose(losses).within(DECLARED)


def test_a_larger_epsilon_costs_more(accountant: Accountant) -> None:
    cheap, dear = (accountant.cost(plan("sulq", epsilon)) for epsilon in ("0.1", "0.2"))
    assert 0 < cheap.loss < dear.loss


def test_an_approximate_part_costs_delta(accountant: Accountant) -> None:
    assert accountant.cost(plan("jones-euclidean")).delta > 0
    assert accountant.cost(plan("balcan")).delta == 0


def test_the_whole_total_is_worth_the_declared_epsilon(accountant: Accountant) -> None:
    shown = Decimal(accountant.amount(accountant.total)["epsilon"])
    assert abs(shown - Decimal(DECLARED.epsilon_text)) <= Decimal("0.000001")


def test_amounts_are_exact_decimals_and_words_repeat_them(accountant: Accountant) -> None:
    cost = Cost(123_456_789_012, 10**9 + 7)
    amount = accountant.amount(cost)
    assert Decimal(amount["delta"]) * DELTA_UNIT == cost.delta
    currency = next(name for name, text in amount.items() if text == "0.123456789012")
    assert accountant.in_words(cost) == f"{currency} 0.123456789012 and delta {amount['delta']}"


def test_a_balance_shows_its_four_amounts(accountant: Accountant) -> None:
    balance = Balance(total=Cost(10, 10), reserved=Cost(1, 2), spent=Cost(3, 4))
    expected = {"total": Cost(10, 10), "spent": Cost(3, 4), "reserved": Cost(1, 2), "remaining": Cost(6, 4)}
    assert accountant.amounts(balance) == {name: accountant.amount(cost) for name, cost in expected.items()}


def test_a_budget_that_is_not_supported_is_refused_in_words() -> None:
    accountant = accountants.get("zcdp", Budget.of("3"))
    assert not accountant.supports(Budget.of("3"))
    with pytest.raises(InvalidBudget, match="needs a delta above zero"):
        accountant.total  # noqa: B018  a property that refuses


def test_an_unknown_accountant_is_refused() -> None:
    with pytest.raises(InvalidBudget, match="choose one of sum, zcdp"):
        accountants.get("moments", DECLARED)
