"""Principal axes of points that are known exactly."""

import numpy as np

from core.postprocessing.subspace import axes_of_points


def test_axes_come_in_the_order_of_variances_and_leave_the_rest_to_columns() -> None:
    draw = np.random.default_rng(1)
    points = draw.normal(size=(4000, 5)) * [1.0, 9.0, 3.0, 0.5, 0.1]
    found = axes_of_points(points - points.mean(axis=0), 2, 3)
    assert found.axes.shape == (5, 2)
    assert found.candidates.shape == (5, 3)
    np.testing.assert_allclose(np.abs(found.candidates[[1, 2, 0], [0, 1, 2]]), 1.0, atol=0.01)
    np.testing.assert_allclose(found.variances, [81.0, 9.0], rtol=0.1)
    np.testing.assert_allclose(found.columns, points.var(axis=0))
    np.testing.assert_allclose(found.leftover[3:], [0.25, 0.01], rtol=0.1)
    np.testing.assert_allclose(found.leftover[:3], 0.0, atol=0.01)
