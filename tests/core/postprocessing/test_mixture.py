"""Mixtures that are fitted to a Fourier sketch."""

import math
import warnings

import numpy as np
from scipy.optimize import check_grad

from core.arrays import Floats
from core.postprocessing.mixture import Mixture, MixtureFit

CENTRES = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.2], [0.0, 0.1]])
SIZES = np.array([300.0, 100.0, 200.0, 100.0, 300.0])


def fit_of(noise: float, count: int = 200, seed: int = 3) -> MixtureFit:
    """Sums over five clusters of spread 0.15, with this noise."""
    draw = np.random.default_rng(seed)
    frequencies = draw.normal(size=(count, 2)) / 0.4
    fading = np.exp(-0.5 * 0.15**2 * (frequencies**2).sum(axis=1)) / math.sqrt(count)
    phases = CENTRES @ frequencies.T
    sums = [
        SIZES @ (fading * each) + noise * draw.normal(size=count) for each in (np.cos(phases), np.sin(phases))
    ]
    frequencies, cosines, sines = (values.astype(np.float32) for values in (frequencies, *sums))
    return MixtureFit(frequencies, cosines, sines, noise, 1000.0, np.array([0.9, 0.95]), 0.4)


def nearest(found: Floats) -> Floats:
    """For each true centre the distance to the nearest that was found."""
    distances: Floats = np.linalg.norm(CENTRES[:, None] - found[None], axis=2).min(axis=1)
    return distances


def test_clusters_are_found_where_they_are_and_as_large_as_they_are() -> None:
    found = fit_of(noise=5.0).mixture(5, np.random.default_rng(1))
    assert nearest(found.centres).max() < 0.1
    order = np.linalg.norm(CENTRES[:, None] - found.centres[None], axis=2).argmin(axis=1)
    assert np.abs(found.sizes[order] - SIZES).max() < 40
    assert 0.1 < found.spread < 0.2


def test_the_same_draws_find_the_same_clusters() -> None:
    found = [fit_of(noise=20.0).mixture(5, np.random.default_rng(1)) for _ in range(2)]
    assert np.array_equal(found[0].centres, found[1].centres)


def test_one_cluster_and_clusters_of_nothing_but_noise_are_clusters_all_the_same() -> None:
    assert np.isfinite(fit_of(noise=5.0).mixture(1, np.random.default_rng(1)).centres).all()
    drowned = fit_of(noise=1e6).mixture(5, np.random.default_rng(1))
    assert drowned.centres.shape == (5, 2)
    assert np.isfinite(drowned.centres).all()
    assert (drowned.sizes > 0).all()


def test_clusters_so_wide_that_their_features_fade_to_nothing_are_ranked_without_a_warning() -> None:
    wide = Mixture(CENTRES, SIZES, np.full(5, 1e3), 1e3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(fit_of(noise=5.0)._contributions(wide)).all()


def test_clusters_that_are_placed_together_are_different_ones() -> None:
    """The best candidates alone would all be those of the largest cluster, or on its shoulders."""
    fit = fit_of(noise=1.0)
    none = Mixture(np.zeros((0, 2)), np.zeros(0), np.zeros(0), 0.15)
    three = fit._grown(none, 3, 5, fit._candidates(np.random.default_rng(2))).centres
    distances = np.linalg.norm(three[:, None] - CENTRES[None], axis=2)
    assert distances.min(axis=1).max() < 0.3
    assert len(set(distances.argmin(axis=1))) == 3


def test_the_slope_of_the_likelihood_is_the_one_that_is_computed() -> None:
    fit = fit_of(noise=20.0, count=40)
    units = np.concatenate([np.full(10, fit.length), np.ones(11)])
    logs = np.log([*SIZES, 0.1, 0.15, 0.2, 0.25, 0.3, 0.2])
    start = np.concatenate([CENTRES.reshape(-1) + 0.05, logs]) / units

    def loss(at: Floats) -> float:
        return fit._loss(at, 2, 5, units)[0]

    def slope(at: Floats) -> Floats:
        return fit._loss(at, 2, 5, units)[1]

    off = check_grad(loss, slope, start, epsilon=1e-3)
    assert off < 0.02 * float(np.linalg.norm(slope(start)))


def test_a_sample_has_as_many_points_as_asked_for_and_stands_for_all_records() -> None:
    clumps = Mixture(CENTRES, SIZES, np.full(5, 0.01), 0.01)
    drawn = clumps.sample(1000.0, 200, np.random.default_rng(2))
    assert abs(len(drawn.points) - 200) <= 1
    assert math.isclose(drawn.weights.sum(), 1000.0)
    near = np.linalg.norm(drawn.points[:, None] - CENTRES[None], axis=2).argmin(axis=1)
    assert np.abs(np.bincount(near) / len(near) - SIZES / 1000).max() < 0.02
