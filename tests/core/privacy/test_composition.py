"""Budgets are exact, losses compose safely, calibration agrees with dp-accounting and with sixty digits."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.privacy import Budget
from core.privacy.composition import compose
from core.privacy.losses import ZCDP, Approximate, Gaussian, Pure
from tests.support.privacy import epsilon_at


def test_pure_losses_add_exactly() -> None:
    tenth = Fraction(0.1)
    assert compose([(Pure(0.1), 10)]).pure == 10 * tenth
    assert compose([(Pure(0.125), 8)]).within(Budget.of(1))
    assert not compose([(Pure(0.125), 8), (Pure(1e-12), 1)]).within(Budget.of(1))


def test_gaussian_losses_compose_as_their_squares() -> None:
    assert compose([(Gaussian(3), 1), (Gaussian(4), 1)]).mu_squared == 25
    assert compose([(Gaussian(1), 9)]).mu_squared == 9


losses = st.one_of(
    st.builds(Pure, st.floats(0.001, 1), st.booleans()),
    st.builds(Gaussian, st.floats(0.001, 1)),
    st.builds(ZCDP, st.floats(1e-6, 0.5)),
    st.builds(Approximate, st.floats(0.001, 1), st.floats(1e-12, 1e-8)),
)


@given(st.lists(st.tuples(losses, st.integers(1, 4)), min_size=1, max_size=6), losses)
def test_another_loss_never_makes_a_composition_cheaper(
    parts: list[tuple[Pure | Gaussian | ZCDP | Approximate, int]], more: Pure | Gaussian | ZCDP | Approximate
) -> None:
    before, after = compose(parts), compose([*parts, (more, 1)])
    for epsilon in (0.5, 1.0, 4.0):
        assert before.delta_at(epsilon) <= after.delta_at(epsilon) * (1 + 1e-6)
    assert before.rho <= after.rho


@given(st.lists(st.tuples(losses, st.integers(1, 4)), min_size=1, max_size=6))
def test_epsilon_at_and_delta_at_agree(parts: list[tuple[Pure | Gaussian | ZCDP | Approximate, int]]) -> None:
    total = compose(parts)
    epsilon = epsilon_at(total, 1e-6)
    assert total.delta_at(epsilon) <= 1e-6
    assert total.delta_at(epsilon * 0.999) > 1e-6


def test_a_mixture_takes_the_cheaper_of_addition_and_zcdp() -> None:
    few = compose([(Gaussian(0.1), 1), (Pure(0.1), 1)])
    by_addition = epsilon_at(compose([(Gaussian(0.1), 1)]), 1e-6) + 0.1
    assert epsilon_at(few, 1e-6) <= by_addition * (1 + 1e-8)
    many = compose([(Gaussian(0.1), 1), (Pure(0.01), 200)])
    assert epsilon_at(many, 1e-6) < 1.0 < epsilon_at(compose([(Pure(0.01), 200)]), 0)


def test_an_exponential_mechanism_costs_a_quarter_in_zcdp() -> None:
    assert Pure(0.4, bounded_range=True).rho == pytest.approx(Pure(0.4).rho / 4)
