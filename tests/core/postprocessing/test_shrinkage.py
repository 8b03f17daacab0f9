"""Moves are shrunk as far as the noise asks for, and no further."""

import numpy as np

from core.postprocessing.shrinkage import shrink_by_groups


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
