"""Seeds between a released coreset and centres."""

import numpy as np

from core.postprocessing.seeds import Coreset, handed_over


def test_points_share_the_weight_of_the_nearest_leaf_and_other_leaves_keep_theirs() -> None:
    """The third axis is not one of the tree's: leaves know nothing of it."""
    leaves = Coreset(np.array([[0.0, 0.0, 0.0], [10.0, 0.0, 0.0]]), np.array([6.0, 4.0]))
    points = np.array([[1.0, 1.0, 90.0], [-1.0, 0.0, -90.0], [0.0, 2.0, 5.0]])
    found = handed_over(leaves, points, 2)
    np.testing.assert_array_equal(found.points, [*points, [10.0, 0.0, 0.0]])
    np.testing.assert_array_equal(found.weights, [2.0, 2.0, 2.0, 4.0])
