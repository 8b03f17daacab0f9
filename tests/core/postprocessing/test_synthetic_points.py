"""Synthetic points: expected counts of cells, points drawn from cells, and corrections by rounds."""

import numpy as np

from core.postprocessing.synthetic_points import Leaves, SyntheticPoints, expected_counts, sample_leaves


def expected(measured: float, error: float = 10.0, prior: float = 1.0, clump: float = 50.0) -> float:
    return float(expected_counts(np.array([measured]), np.array([error]), np.array([prior]), clump)[0])


def test_a_count_far_above_the_noise_is_believed() -> None:
    assert abs(expected(500.0) - 500.0) < 10.0


def test_weak_counts_are_weighed_and_never_negative() -> None:
    found = [expected(measured) for measured in (-30.0, 0.0, 15.0, 30.0, 60.0)]
    assert found == sorted(found)
    assert 0 < found[0] < 1
    assert found[2] < 15.0


def test_the_same_count_means_more_where_more_is_to_be_expected() -> None:
    assert expected(20.0, prior=0.1) < expected(20.0, prior=20.0)


def test_points_lie_in_their_cells_and_are_as_many_as_the_weights_tell() -> None:
    low = np.array([[-np.inf, -np.inf], [1.0, 8.0]])
    high = np.array([[0.0, 0.0], [2.0, np.inf]])
    leaves = Leaves(low, high, np.array([30.0, 10.0]))
    found = sample_leaves(leaves, np.array([1.0, 1.0]), 0.5, 400, np.random.default_rng(1))
    inside = ((found.points[:, None, :] >= low) & (found.points[:, None, :] <= high)).all(axis=2)
    assert np.isfinite(found.points).all()
    assert np.abs(inside.sum(axis=0) - [300, 100]).max() <= 1
    assert np.isclose(found.weights.sum(), 40.0)


def test_points_spread_along_axes_that_no_cell_is_cut_by() -> None:
    leaves = Leaves(np.array([[0.0]]), np.array([[1.0]]), np.array([1.0]))
    found = sample_leaves(leaves, np.array([1.0, 8.0]), 0.5, 1000, np.random.default_rng(1))
    assert 3.5 < found.points[:, 1].std() < 4.5


def test_a_correction_moves_a_cluster_as_a_whole_and_sets_its_size() -> None:
    synthetic = SyntheticPoints(np.array([[0.0], [1.0], [10.0], [12.0]]), np.ones(4))
    found = synthetic.corrected(np.array([[0.0], [11.0]]), np.array([[0.5], [-2.0]]), np.array([6.0, 1.0]))
    assert found.points.ravel().tolist() == [0.5, 1.5, 8.0, 10.0]
    assert found.weights.tolist() == [3.0, 3.0, 0.5, 0.5]


def test_means_of_synthetic_points_are_no_worse_than_where_a_start_leads() -> None:
    """From a start that splits one group and joins two others, k-means alone would not recover."""
    draw = np.random.default_rng(2)
    points = np.repeat(np.array([0.0, 10.0, 20.0]), 100)[:, None] + draw.normal(size=(300, 1)) * 0.1
    synthetic, start = SyntheticPoints(points, np.ones(300)), np.array([[-0.1], [0.1], [15.0]])
    anew = np.sort(synthetic.means(3, draw, start).ravel())
    assert np.abs(anew - [0, 10, 20]).max() < 0.1
    assert np.sort(synthetic.means(3, draw, start, new_starts=False).ravel())[2] < 16
