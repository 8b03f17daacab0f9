"""Shares of a budget, for noise and for choices, always fit it again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy import Budget
from core.privacy.composition import compose
from core.privacy.losses import ZCDP, Approximate, Gaussian, Loss, Pure
from core.privacy.shares import Shares

GRID = [(e, d) for e in ("0.1", "0.5", "1", "2", "8") for d in ("1e-9", "1e-6", "1e-3")]

fractions = st.lists(st.integers(1, 1000), min_size=1, max_size=12)


@given(fractions, st.sampled_from(GRID), st.integers(1, 5))
def test_shares_of_a_budget_always_fit_it_again(weights: list[int], pair: tuple[str, str], rows: int) -> None:
    for budget in (Budget.of(*pair), Budget.of(pair[0])):
        for with_choices in (False, True):
            shares = Shares(budget, rows, with_choices)
            losses = [(shares.noise(w / sum(weights)).for_group(rows), 1) for w in weights]
            assert compose(losses).within(budget)
            if budget.is_pure or not with_choices:  # zCDP leaves a little of what Gaussian DP would use
                too_much = [(loss, 1 if i else 2) for i, (loss, _) in enumerate(losses)]
                assert not compose(too_much).within(budget)


@given(st.sampled_from(GRID), st.integers(1, 5), st.integers(1, 30))
def test_noise_and_choices_together_fit_the_budget_that_they_share(
    pair: tuple[str, str], rows: int, times: int
) -> None:
    for budget in (Budget.of(*pair), Budget.of(pair[0])):
        shares = Shares(budget, rows, with_choices=True)
        choice = Pure(shares.choice(0.4, times), bounded_range=True)
        losses = [(shares.noise(0.6, 3).for_group(rows), 3), (choice.for_group(rows), times)]
        assert compose(losses).within(budget)


@pytest.mark.parametrize("rows", [1, 4])
def test_pure_approximate_and_gaussian_parts_fit_the_budget_that_they_share(rows: int) -> None:
    budget = Budget.of(2, "0.00001")
    shares = Shares(budget, rows)
    rest = shares.portion(0.7, 0.5)
    losses: list[Loss] = [shares.pure(0.1), shares.approximate(0.2, 0.5), rest.noise(0.5), rest.noise(0.5)]
    assert compose([(loss.for_group(rows), 1) for loss in losses]).within(budget)


def test_shares_of_gaussian_dp_are_not_for_choices() -> None:
    with pytest.raises(ValueError, match="noise only"):
        Shares(Budget.of(1, "0.00001")).choice(0.5)


losses = st.one_of(
    st.builds(Pure, st.floats(0.001, 1), st.booleans()),
    st.builds(Gaussian, st.floats(0.001, 1)),
    st.builds(ZCDP, st.floats(1e-6, 0.5)),
    st.builds(Approximate, st.floats(0.001, 1), st.floats(1e-12, 1e-8)),
)
