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
    measured = np.full(30, 100.0)
    measured[0] = 0.0
    chances = known.chances(measured, np.full(30, 10.0))
    assert chances[0] < 0.1
    assert chances[1:].min() > 0.99


def test_noise_that_hides_clusters_tells_nothing_about_which_are_made_up() -> None:
    known = Known(np.full(30, 100.0), 0.5)
    chances = known.chances(np.linspace(-300.0, 300.0, 30), np.full(30, 1e5))
    assert np.ptp(chances) < 0.01


def test_the_more_clusters_the_likelier_one_is_made_up() -> None:
    few, many = (Known(np.full(k, 100.0), 0.5).chances(np.full(k, 50.0), np.full(k, 60.0)) for k in (3, 60))
    assert few[0] > 0.95 > 0.5 > many[0]


def test_counts_below_zero_are_no_stronger_sign_than_none_at_all() -> None:
    known = Known(np.full(20, 100.0), 0.5)
    nothing, less = known.chances(np.array([0.0, -30.0] + [100.0] * 18), np.full(20, 30.0))[:2]
    assert less <= nothing < 0.5
