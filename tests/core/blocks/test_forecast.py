"""What plans forecast, from public numbers alone, is what runs show.

All runs have one cluster, so that its true size and mean are known whatever an algorithm does on the way.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from core.algorithms import registry
from core.data import ArraySource, Dense
from core.plan import Plan, Request
from core.privacy import Budget

Floats = npt.NDArray[np.float64]

RUNS = 30
APPROXIMATE, PURE = Budget.of(1, "0.000001"), Budget.of(1)
ROWS = np.random.default_rng(11).normal(loc=(3.0, -2.0), size=(1500, 2))
BALL = Dense.ball(10, dimension=2, size=1500)
#: Small settings for what is slow by default; the noise that is forecast does not depend on them.
FEW: dict[str, dict[str, Any]] = {
    "sulq": {"rounds": 2},
    "balcan": {"trees": 1, "depth": 3, "candidates": 20, "swaps": 1, "rounds": 1},
    "balcan-median": {"trees": 1, "depth": 3, "candidates": 20, "swaps": 1, "rounds": 1},
    "chaturvedi": {"rounds": 1, "span": 2},
}


def plan_of(name: str, budget: Budget, **options: Any) -> Plan:
    objective = "medians" if name == "balcan-median" else "means"
    return registry.plan(BALL, Request(1, budget, objective, name, FEW.get(name, {}) | options))


def assert_noise_is(errors: Floats, forecast: float, laplace: bool) -> None:
    """The mean of |error| over its expectation, of `RUNS` independent errors, lies in [0.25, 2.6].

    For Laplace noise the ratio is Gamma(30)/30: beyond 2.6 with probability below exp(-30 (1.6 - log 2.6)),
    which is 4e-9, and below 0.25 with probability below exp(-30 (0.25 - 1 - log 0.25)), which is 6e-9
    (Chernoff). Gaussian errors have lighter tails. False alarms of all calls together: below 1e-6.
    """
    expected = forecast * (np.sqrt(0.5) if laplace else np.sqrt(2 / np.pi))
    assert len(errors) == RUNS
    assert 0.25 < np.abs(errors).mean() / expected < 2.6


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("summit", APPROXIMATE),
        ("sulq", APPROXIMATE),
        ("sulq", PURE),
        ("balcan", APPROXIMATE),
        ("balcan-median", PURE),
        ("chaturvedi", APPROXIMATE),
        ("grid", PURE),
    ],
)
def test_sizes_are_as_noisy_as_forecast(name: str, budget: Budget) -> None:
    plan, source = plan_of(name, budget), ArraySource(BALL, ROWS)
    found = [registry.run(plan, source).sizes for _ in range(RUNS)]
    errors = np.array([sizes[0] for sizes in found if sizes is not None]) - len(ROWS)
    # Many cells or bins of Laplace noise add up to nearly normal noise.
    assert_noise_is(errors, plan.forecast["size_noise"], budget.is_pure and name != "grid")


@pytest.mark.parametrize("budget", [APPROXIMATE, PURE], ids=["approximate", "pure"])
def test_centres_clipped_to_the_bounds_are_as_noisy_as_forecast(budget: Budget) -> None:
    """The last round moves a centre that is close to the mean already: its noise is that of sums, which in
    one column is Laplace's under pure epsilon."""
    line = Dense.ball(10, dimension=1, size=len(ROWS))
    plan = registry.plan(line, Request(1, budget, "means", "sulq", {"rounds": 3}))
    assert "noise_per_radius" not in plan.forecast
    source = ArraySource(line, ROWS[:, :1])
    errors = np.array([registry.run(plan, source).centres[0, 0] for _ in range(RUNS)]) - ROWS[:, 0].mean()
    assert_noise_is(errors, plan.forecast["noise_at_bounds"], budget.is_pure)


def test_noise_of_released_radii_is_forecast_as_a_fraction_of_them() -> None:
    for name in ("balcan", "chaturvedi", "jones-euclidean", "summit"):
        forecast = plan_of(name, APPROXIMATE).forecast
        assert forecast["noise_at_bounds"] == pytest.approx(10 * forecast["noise_per_radius"], rel=1e-3)


def test_more_budget_and_more_records_mean_less_noise_in_every_forecast() -> None:
    for name in ("summit", "sulq", "balcan", "chaturvedi", "jones-euclidean"):
        noises = [
            registry.plan(
                Dense.ball(10, dimension=2, size=size),
                Request(3, Budget.of(epsilon, "0.000001"), "means", name),
            ).forecast["noise_at_bounds"]
            for size, epsilon in ((5000, "0.5"), (5000, 1), (50_000, 1))
        ]
        assert noises[0] > noises[1] > noises[2]


def test_nothing_is_said_of_centres_that_are_chosen_or_searched() -> None:
    assert "noise_at_bounds" not in plan_of("balcan-median", PURE).forecast
    assert plan_of("balcan-median", PURE).forecast["size_noise"] > 0
