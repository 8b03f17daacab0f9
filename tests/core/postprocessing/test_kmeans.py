"""Weighted k-means on released points finds clusters that lie apart."""

import numpy as np
from sklearn.cluster import KMeans

from core.arrays import Floats
from core.postprocessing.kmeans import agglomerated, weighted_kmeans


def test_pairs_are_merged_where_that_costs_least() -> None:
    points = np.array([[0.0], [1.0], [10.0], [12.0], [40.0]])
    heavy = np.array([1.0, 3.0, 1.0, 1.0, 1e-3])
    assert sorted(agglomerated(points, np.ones(5), 3)[:, 0]) == [0.5, 11.0, 40.0]
    # A point of hardly any weight is merged first, however far it lies.
    assert sorted(agglomerated(points, heavy, 3)[:, 0])[:2] == [0.75, 10.0]


def test_clusters_that_lie_apart_are_told_apart_whatever_the_restarts_draw() -> None:
    draw = np.random.default_rng(5)
    middles = draw.uniform(-1000, 1000, size=(40, 3))
    points = np.repeat(middles, 5, axis=0) + draw.normal(size=(200, 3))
    for seed in range(5):
        found = weighted_kmeans(points, np.ones(200), 40, np.random.default_rng(seed), restarts=1)
        nearest = np.linalg.norm(middles[:, None] - found[None], axis=2).min(axis=1)
        assert nearest.max() < 5


def loss_of(points: Floats, weights: Floats, centres: Floats) -> float:
    apart = np.linalg.norm(points[:, None] - centres[None], axis=2) ** 2
    return float(apart.min(axis=1) @ weights)


def test_restarts_at_once_lose_no_more_than_those_of_scikit_learn() -> None:
    draw = np.random.default_rng(3)
    for k in (2, 5, 12):
        points, weights = draw.normal(size=(150, 4)), draw.uniform(size=150)
        found = weighted_kmeans(points, weights, k, np.random.default_rng(k), restarts=10)
        fitted = KMeans(k, n_init=10, random_state=0).fit(points, sample_weight=weights)
        assert found.shape == (k, 4)
        assert loss_of(points, weights, found) <= 1.03 * float(fitted.inertia_)
