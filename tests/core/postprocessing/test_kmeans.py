"""Weighted k-means on released points finds clusters that lie apart."""

from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans

from core.arrays import Floats
from core.postprocessing import kmeans
from core.postprocessing.kmeans import (
    agglomerated,
    best_kmeans,
    kmeans_for_each,
    kmeans_of_cells,
    merges,
    operations_of_cells,
    weighted_kmeans,
)


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


def test_centres_for_each_of_several_k_are_as_good_as_those_for_one() -> None:
    draw = np.random.default_rng(9)
    points, weights = draw.normal(size=(30, 4)), draw.uniform(0.5, 5.0, size=30)
    found = kmeans_for_each(points, weights, range(1, 30), draw)
    alone = {k: weighted_kmeans(points, weights, k, draw) for k in found}
    over = [loss_of(points, weights, found[k]) / loss_of(points, weights, alone[k]) for k in found]
    assert [len(found[k]) for k in found] == list(range(1, 30))
    assert max(over) < 1.1
    assert np.mean(over) < 1.01
    assert kmeans_for_each(points, weights, [], draw) == {}


def cells_of_groups(groups: int) -> tuple[Floats, Floats]:
    """Middles of 1,600 cells of a square, and noisy counts of records in so many groups."""
    draw = np.random.default_rng(groups)
    points = np.stack(np.divmod(np.arange(1600), 40), axis=1) / 40
    middles = draw.uniform(size=(groups, 2))
    near = np.exp(-200 * ((points[:, None] - middles[None]) ** 2).sum(axis=2)).sum(axis=1)
    return points, 50 * near + np.abs(draw.laplace(size=1600))


def test_bounded_rounds_on_cells_lose_little() -> None:
    for k in (2, 6, 15):
        points, weights = cells_of_groups(k)
        found = kmeans_of_cells(points, weights, k, np.random.default_rng(k))
        fitted = KMeans(k, n_init=10, random_state=0).fit(points, sample_weight=weights)
        # Ten starts that settle differ by up to 4% among themselves.
        assert loss_of(points, weights, found) <= 1.05 * float(fitted.inertia_)


def test_rounds_on_cells_are_bounded_whatever_their_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    allowed: list[tuple[int, int]] = []

    class Watched(KMeans):  # type: ignore[misc]  # scikit-learn has no types
        def fit(self, *given: Any, **named: Any) -> Any:
            allowed.append((self.n_init, self.max_iter))
            return super().fit(*given, **named)

    monkeypatch.setattr(kmeans, "KMeans", Watched)
    for groups in (1, 3, 40):
        kmeans_of_cells(*cells_of_groups(groups), 6, np.random.default_rng(1))
    assert allowed[:2] * 3 == allowed
    assert sum(starts * rounds for starts, rounds in allowed[:2]) < 200


def test_more_cells_are_never_less_work() -> None:
    cells = [10.0**power for power in np.linspace(2, 6, 40)]
    planned = [operations_of_cells(number, 3.0, 8.0) for number in cells]
    assert planned == sorted(planned)


def merged_one_by_one(points: Floats, weights: Floats) -> list[tuple[int, int, float]]:
    """Ward's merges by definition: always the pair that adds least."""
    places, mass, left, found = points.copy(), weights.copy(), list(range(len(points))), []
    while len(left) > 1:
        pairs = [(i, j) for i in left for j in left if i < j]
        costs = [
            mass[i] * mass[j] / (mass[i] + mass[j]) * float(((places[i] - places[j]) ** 2).sum())
            for i, j in pairs
        ]
        i, j = pairs[int(np.argmin(costs))]
        found.append((i, j, min(costs)))
        places[i] = (mass[i] * places[i] + mass[j] * places[j]) / (mass[i] + mass[j])
        mass[i] += mass[j]
        left.remove(j)
    return found


def test_merges_of_many_pairs_at_once_are_those_of_one_pair_after_the_other() -> None:
    draw = np.random.default_rng(8)
    chain = (np.arange(30.0) ** 2)[:, None]  # each is nearest to the one before: one pair at a time
    for points in (draw.normal(size=(40, 3)), draw.normal(size=(33, 1)), chain):
        weights = draw.uniform(0.5, 2.0, size=len(points))
        expected, found = merged_one_by_one(points, weights), merges(points, weights)
        assert [each[:2] for each in found] == [each[:2] for each in expected]
        assert np.allclose([each[2] for each in found], [each[2] for each in expected])


def test_points_that_are_all_equal_are_merged_all_the_same() -> None:
    for count in (1, 2, 7):
        found = merges(np.ones((count, 2)), np.ones(count))
        assert len(found) == count - 1
        assert len({other for _, other, _ in found}) == count - 1


def test_many_points_get_starts_that_are_spread_over_them() -> None:
    draw = np.random.default_rng(4)
    middles = draw.uniform(-1000, 1000, size=(20, 3))
    points = np.repeat(middles, 60, axis=0) + draw.normal(size=(1200, 3))
    found = [best_kmeans(points, np.ones(1200), 20, np.random.default_rng(6)) for _ in range(2)]
    assert np.array_equal(found[0], found[1])
    assert np.linalg.norm(middles[:, None] - found[0][None], axis=2).min(axis=1).max() < 5


@pytest.mark.parametrize(("points", "bounded"), [(10_000, False), (10_001, True)])
def test_starts_on_many_points_get_a_number_of_rounds_that_plans_know(
    points: int, bounded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[dict[str, Any]] = []
    solver = kmeans.KMeans

    def watched(k: int, **options: Any) -> Any:
        given.append(options)
        return solver(k, **options)

    monkeypatch.setattr(kmeans, "KMeans", watched)
    draw = np.random.default_rng(1)
    found = kmeans.weighted_kmeans(draw.normal(size=(points, 2)), np.ones(points), 3, draw, restarts=4)
    assert found.shape == (3, 2)
    (options,) = given
    assert (options["n_init"], options.get("max_iter")) == ((2, 10) if bounded else (4, None))
    assert (kmeans.many_points_operations(points, 2, 3) > 0) == bounded
