"""K-means on made-up rows: as good as scikit-learn's, from the same start."""

import numpy as np
import pytest
from sklearn.cluster import KMeans

from core.arrays import Floats
from core.postprocessing.kmeans import nearest_points
from core.postprocessing.synopsis.lloyd import LloydRows


def rows_of(seed: int) -> Floats:
    """Six groups that overlap, as far out as encoded rows may lie."""
    draw = np.random.default_rng(seed)
    middles = draw.uniform(-15_000, 15_000, size=(6, 3))
    rows: Floats = middles[draw.integers(6, size=2000)] + draw.normal(size=(2000, 3)) * 3000
    return rows


def test_centres_settle_where_those_of_scikit_learn_do() -> None:
    for seed in range(3):
        rows = rows_of(seed)
        many, start = LloydRows(rows), rows[:5]
        settled = many.settled(start, 20)
        fitted = KMeans(5, init=start, n_init=1, max_iter=20).fit(rows)
        assert many.loss(settled) == pytest.approx(fitted.inertia_ / len(rows), rel=2e-3)


def test_rows_are_told_their_nearest_centre() -> None:
    rows = rows_of(1)
    labels, squared = LloydRows(rows).nearest(rows[:9])
    assert np.mean(labels == nearest_points(rows, rows[:9])) > 0.999
    assert np.allclose(squared, ((rows - rows[labels]) ** 2).sum(axis=1), rtol=1e-4)


def test_a_centre_without_rows_stays_where_it_is() -> None:
    far = np.array([[0.0, 0.0, 0.0], [9e5, 9e5, 9e5]])
    assert np.array_equal(LloydRows(rows_of(2)).settled(far, 5)[1], far[1])


def test_further_centres_are_rows_that_lie_apart() -> None:
    rows, draw = np.repeat(np.eye(4) * 1000.0, 50, axis=0), np.random.default_rng(3)
    found = LloydRows(rows).spread(rows[:1], 4, draw)
    assert np.array_equal(np.unique(found, axis=0), np.unique(rows, axis=0))
    assert len(LloydRows(rows).spread(rows[:1], 6, draw)) == 6  # more than there are distinct rows


def test_no_further_centres_are_drawn_where_there_are_enough() -> None:
    rows = rows_of(4)
    assert np.array_equal(LloydRows(rows).spread(rows[:7], 3, np.random.default_rng(0)), rows[:7])
