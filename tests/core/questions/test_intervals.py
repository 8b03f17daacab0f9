"""Intervals of answers: how often they hold, what they say of noise, and how they are written."""

import math

import numpy as np
import pytest

from benchmarks.intervals import measured
from core.postprocessing.intervals import NoisyHistograms, ratio_interval
from core.questions.view import Estimate, noise_unit

DRAW = np.random.default_rng(11)


def test_intervals_of_every_kind_hold_the_exact_numbers() -> None:
    """Of at least 150 intervals of a kind, with 0.95 each, fewer than 0.82 hold in less than 1e-6 of runs.

    Of a single k they are of the last round's noise alone; suggestions are too few to be counted here.
    """
    coverage = measured(12)
    kinds = [kind for kind in coverage.kinds if kind not in ("single k", "suggestion")]
    assert {kind: coverage.share(kind) > 0.82 for kind in kinds} == dict.fromkeys(kinds, True)
    assert coverage.share("single k") > 0.7


def held(reach: float, runs: int = 4000) -> float:
    """Share of runs in which the interval of a share of a small group holds it; noise has deviation 20."""
    exact = np.array([60.0, 10.0, 30.0])
    noise = DRAW.normal(0, 20, (2, runs, 3))
    parts = [exact.sum() + noise[0, :, :1], exact + noise[1]]
    found = NoisyHistograms(parts, reach).shares(1, np.full((runs, 3), 0.6))
    return float(((found.low[:, 0] <= 0.6) & (found.high[:, 0] >= 0.6)).mean())


def test_a_share_of_a_size_that_is_noisy_itself_is_held() -> None:
    """Of 4000 runs fewer than 0.93 hold in less than 1e-6 of cases."""
    assert held(1.96 * 20) > 0.93


def test_intervals_that_take_the_size_as_exact_hold_too_rarely() -> None:
    """The plausible mistake: a share's noise is that of its count over the size."""
    exact, runs = np.array([450.0, 50.0]), 4000
    noise = DRAW.normal(0, 20, (2, runs, 2))
    parts = [exact.sum() + noise[0, :, :1], exact + noise[1]]
    sizes = (parts[0][:, 0] + parts[1].sum(axis=1) / 2) / 1.5
    shares = parts[1][:, 0] / sizes
    right = NoisyHistograms(parts, 1.96 * 20).ratio(1, np.array([1.0, 0.0]), np.ones(2))
    wrong = np.abs(shares - 0.9) <= 1.96 * 20 / sizes * math.sqrt(1 - 1 / 2)
    assert ((right.low <= 0.9) & (right.high >= 0.9)).mean() > 0.93 > wrong.mean() + 0.01


def test_a_ratio_of_noise_is_unbounded() -> None:
    found = ratio_interval(np.array([5.0]), np.array([3.0]), (100.0, 0.0, 100.0))
    assert (found.low[0], found.high[0]) == (-math.inf, math.inf)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate.of_count(1234.5, 1160.2, 1309.0), "1,230 (1,160 to 1,310)"),
        (Estimate.of_count(12.0, 0.0, 80.0), "not more than 80"),
        (Estimate.of_count(5.0, 4.0, 6.0), "5 (4 to 6)"),
        (Estimate.of_share(0.0, 0.0, 0.0774), "not more than 8%"),
        (Estimate.of_share(0.12, 0.08, 0.16), "12% (8% to 16%)"),
        (Estimate.of_share(0.97, 0.88, 1.0), "at least 88%"),
        (Estimate.of_share(0.4, 0.0, 1.0), "not known"),
        (Estimate.of_share(None, 0.0, 1.0), "not known"),
        (Estimate.of_number(41.2345, 40.81, 41.65), "41.2 (40.8 to 41.7)"),
        (Estimate.of_number(-3.14159, -3.2, -3.1), "-3.14 (-3.2 to -3.1)"),
        (
            Estimate.of_number("2030-04-11", "2030-04-09", "2030-04-12"),
            "2030-04-11 (2030-04-09 to 2030-04-12)",
        ),
        (Estimate.of_number(2.34e8, 2.3e8, 2.4e8), "2.34×10⁸ (2.3×10⁸ to 2.4×10⁸)"),
    ],
)
def test_an_estimate_is_written_as_far_as_noise_lets_it_be_read(estimate: Estimate, text: str) -> None:
    assert estimate.text == text


@pytest.mark.parametrize("noise", [0.013, 0.5, 1.0, 7.0, 140.0, 2e5])
def test_no_digit_is_worth_less_than_a_tenth_of_the_noise(noise: float) -> None:
    assert 0.1 * noise <= noise_unit(3.0, 3.0 - 2 * noise, 3.0 + 2 * noise) * (1 + 1e-9) <= noise * (1 + 1e-9)
