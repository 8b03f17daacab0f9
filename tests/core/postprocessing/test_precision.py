"""Estimates weighed by their precision, and clusters that noise made up."""

import numpy as np
import pytest

from core.postprocessing.precision import Known, weighed


def test_estimates_count_by_their_precision() -> None:
    values, errors = weighed(np.array([10.0]), np.array([1.0]), np.array([40.0]), 2.0)
    assert values == pytest.approx([16.0])
    assert errors == pytest.approx([np.sqrt(0.8)])


def test_a_cluster_without_records_is_taken_as_made_up() -> None:
    known = Known(np.full(30, 100.0), 0.5)
    measured = np.repeat([0.0, 100.0], [10, 20])
    chances = known.chances(measured, np.full(30, 25.0))
    assert chances[:10].max() < 0.3
    assert chances[10:].min() > 0.99


def test_noise_that_hides_clusters_tells_nothing_about_which_are_made_up() -> None:
    known = Known(np.full(30, 100.0), 0.5)
    chances = known.chances(np.linspace(-300.0, 300.0, 30), np.full(30, 1e5))
    assert np.ptp(chances) < 0.01


def test_the_more_clusters_are_empty_the_likelier_a_small_one_is_made_up() -> None:
    """The same count of 30 where 100 were expected, beside 29 clusters that are as expected or empty."""
    known = Known(np.full(30, 100.0), 0.5)
    beside_full, beside_empty = (
        known.chances(np.array([30.0] + [other] * 29), np.full(30, 25.0))[0] for other in (100.0, 0.0)
    )
    assert beside_full > 0.9
    assert beside_empty < 0.5


def test_counts_below_zero_are_no_stronger_sign_than_none_at_all() -> None:
    known = Known(np.full(20, 100.0), 0.5)
    nothing, less = known.chances(np.array([0.0, -30.0] + [100.0] * 18), np.full(20, 30.0))[:2]
    assert less <= nothing < 0.7
