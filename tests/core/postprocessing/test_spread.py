"""What post-processing believes of noisy histograms and of released points."""

import numpy as np
import pytest

from core.postprocessing.kmeans import agglomerated, weighted_kmeans
from core.postprocessing.shrinkage import shrink_by_groups
from core.postprocessing.spread import CountNoise, trimmed_shares

GAUSSIAN, LAPLACE = CountNoise(10.0, long_tails=False), CountNoise(10.0, long_tails=True)


def histogram(**counts: float) -> np.ndarray:
    """Forty bins with a crowd in bins 20 to 24 and whatever is asked for, by place: `at_30=50`."""
    bins = np.zeros(40)
    bins[20:25] = 400.0
    for place, count in counts.items():
        bins[int(place.removeprefix("at_"))] = count
    return bins


@pytest.mark.parametrize("noise", [GAUSSIAN, LAPLACE], ids=["gaussian", "laplace"])
def test_a_histogram_ends_with_its_records_and_not_with_the_noise(noise: CountNoise) -> None:
    shares = trimmed_shares(histogram(at_3=25, at_38=30), noise)
    assert np.flatnonzero(shares).tolist() == [20, 21, 22, 23, 24]


def test_what_noise_hardly_makes_up_belongs_to_a_histogram() -> None:
    assert trimmed_shares(histogram(at_38=50), GAUSSIAN)[38] > 0
    # Laplace noise reaches further out: the same count tells less.
    assert trimmed_shares(histogram(at_38=50), LAPLACE)[38] == 0
    assert trimmed_shares(histogram(at_38=80), LAPLACE)[38] > 0


def test_weak_bins_in_a_row_tell_what_none_tells_alone() -> None:
    assert trimmed_shares(histogram(at_33=30), GAUSSIAN)[33] == 0
    assert trimmed_shares(histogram(at_33=30, at_34=30, at_35=30), GAUSSIAN)[33:36].min() > 0


def test_nothing_but_noise_is_taken_as_spread_everywhere() -> None:
    assert np.allclose(trimmed_shares(np.full(40, -1.0), GAUSSIAN), 1 / 40)


@pytest.mark.parametrize("chance", [1e-2, 1e-4])
def test_laplace_noise_passes_its_limit_as_often_as_said(chance: float) -> None:
    """The law of one Laplace variable of deviation 10, in closed form: no draw, no false alarm."""
    limit = LAPLACE.beyond(chance)
    assert 0.5 * np.exp(-limit * np.sqrt(2) / 10.0) == pytest.approx(chance)


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


def test_few_long_moves_among_many_columns_survive_the_noise_of_the_others() -> None:
    """One seed, no draw at run time. Ten of 2,000 columns move by ten deviations of the noise: shrunk alike,
    all would lose two thirds of their way; with a threshold they lose less than half of it, and all the
    noise of the others goes."""
    moves = np.zeros((2, 2000))
    moves[:, :10] = 10.0
    noisy = moves + np.random.default_rng(8).normal(size=moves.shape)
    shrunk = shrink_by_groups(noisy, np.ones(2), [np.arange(2000)])
    assert shrunk[:, :10].min() > 4.0
    assert ((shrunk - moves) ** 2).sum() < 0.5 * (moves**2).sum()


def test_moves_of_all_columns_alike_are_shrunk_alike() -> None:
    moves = np.random.default_rng(9).normal(size=(1, 2000)) * 2
    shrunk = shrink_by_groups(moves, np.ones(1), [np.arange(2000)])
    assert np.ptp(shrunk / moves) < 1e-9
