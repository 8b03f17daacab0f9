"""Confidence sequences hold at every number of runs, and are nearly as short as bounds for one of them."""

import numpy as np
import pytest

from assurance.audit.bounds import Claim, Event, Rate, Scores, lower, upper

#: More sequences than this out of 400 miss the truth with probability below 1e-6, where each may with 5%.
MOST_MISSES = 48
LOOKS = np.unique(np.geomspace(1, 3000, 25).astype(int))


@pytest.mark.parametrize("chance", [0.003, 0.3])
@pytest.mark.parametrize("pilot", [0.02, 0.3])
def test_a_sequence_that_is_looked_at_all_the_time_misses_no_more_than_it_says(
    chance: float, pilot: float
) -> None:
    draw = np.random.default_rng(3)
    missed = 0
    for _ in range(400):
        hits = np.cumsum(draw.uniform(size=LOOKS[-1]) < chance)[LOOKS - 1]
        rates = (Rate(int(h), int(n), pilot, 100) for h, n in zip(hits, LOOKS, strict=True))
        missed += any(not least <= chance <= most for least, most in (r.interval(0.05) for r in rates))
    assert missed <= MOST_MISSES


def test_bounds_for_one_moment_are_wrong_when_looked_at_all_the_time() -> None:
    draw = np.random.default_rng(3)
    missed = 0
    for _ in range(200):
        hits = np.cumsum(draw.uniform(size=LOOKS[-1]) < 0.3)[LOOKS - 1]
        pairs = list(zip(hits.tolist(), LOOKS.tolist(), strict=True))
        missed += any(not lower(h, n, 0.025) <= 0.3 <= upper(h, n, 0.025) for h, n in pairs)
    assert missed > MOST_MISSES / 2


@pytest.mark.parametrize(("hits", "runs"), [(0, 5000), (1500, 5000), (4990, 5000)])
def test_a_sequence_after_a_good_pilot_is_nearly_as_short_as_a_bound_for_one_moment(
    hits: int, runs: int
) -> None:
    least, most = Rate(hits, runs, (hits + 0.5) / (runs + 1), 400).interval(1e-6)
    once = upper(hits, runs, 5e-7) - lower(hits, runs, 5e-7)
    assert most - least < 1.25 * once


def test_nothing_is_known_before_the_first_run() -> None:
    assert Rate().interval(1e-6) == (0.0, 1.0)
    assert Event("likelihood", True, 0.0).bound(Claim(1.0, 0.0), 1e-6) == 0.0


def test_the_bound_of_an_event_rises_towards_its_estimate() -> None:
    claim, event = Claim(3.0, 0.0), Event("likelihood", True, 1.0)
    draw = np.random.default_rng(4)
    bounds = []
    for _ in range(4):
        event = event.counted(Scores(draw.normal(size=2000), draw.normal(1.0, size=2000)))
        bounds.append(event.bound(claim, 1e-6))
    assert bounds == sorted(bounds)
    assert 0.7 * event.estimate(claim) < bounds[-1] < event.estimate(claim)
