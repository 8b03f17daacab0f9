"""Rounds are combined by their precision, and forgotten where clusters have changed since."""

import numpy as np

from core.algorithms.summit.shrinkage import CombinedRounds, Shrinkage
from core.blocks.rounds import Round
from core.postprocessing.spread import CountNoise, DistanceHistogram

WIDTH, CLUSTERS = 400, 8


def round_about(centres: np.ndarray, means: np.ndarray, error: float, draw: np.random.Generator) -> Round:
    """A round that releases these means with this noise."""
    ones = np.ones(len(centres))
    anchors = np.rint(centres).astype(np.int64)
    return Round(
        centres=anchors,
        moves=means - anchors + draw.normal(size=means.shape) * error,
        errors=error * ones,
        sizes=100 * ones,
        size_error=1.0,
        radii=np.full(len(centres), 10_000),
        reaches=10_000 * ones,
        spreads=ones,
        distances=DistanceHistogram(np.zeros((1, 1)), np.array([1]), CountNoise(1.0, False)),
    )


def error_after(means: list[np.ndarray], errors: list[float]) -> float:
    """Mean squared error of the centres after rounds about these means."""
    draw = np.random.default_rng(5)
    combined = CombinedRounds(Shrinkage.by_columns(np.ones(WIDTH)))
    centres = np.zeros(means[0].shape)
    for each, error in zip(means, errors, strict=True):
        found = round_about(centres, each, error, draw)
        centres = found.centres + combined(found)
    return float(((centres - means[-1]) ** 2).mean())


def test_two_rounds_of_the_same_clusters_are_as_good_as_one_of_twice_the_budget() -> None:
    """The error is the noise of either, 100^2 / 2, up to 1.8% (a standard deviation of 3200 squares)."""
    means = 1000 * np.random.default_rng(1).normal(size=(CLUSTERS, WIDTH))
    twice = error_after([means, means], [100.0, 100.0])
    assert abs(twice / (100**2 / 2) - 1) < 0.1
    assert abs(twice / error_after([means], [100.0 / np.sqrt(2)]) - 1) < 0.2


def test_a_round_about_clusters_that_have_changed_since_does_not_count() -> None:
    draw = np.random.default_rng(2)
    before, after = (1000 * draw.normal(size=(CLUSTERS, WIDTH)) for _ in range(2))
    assert error_after([before, after], [1.0, 100.0]) < 1.2 * 100**2
