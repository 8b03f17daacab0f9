"""Weighted k-means on released points finds clusters that lie apart."""

import numpy as np

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
