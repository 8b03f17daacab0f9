"""Axes of noisy second moments and of exact points; columns that vary are told from columns of noise."""

import numpy as np

from core.postprocessing.subspace import axes_of_points, principal_axes, varying_columns


def test_columns_that_stand_above_noise_are_kept_in_their_order() -> None:
    deviations = np.array([0.0, 5.0, 0.2, 9.0, 0.1, 6.0])
    assert varying_columns(deviations, 0.5, 0.99, 1).tolist() == [1, 3, 5]


def test_many_columns_of_noise_do_not_add_up_to_one_that_varies() -> None:
    deviations = np.concatenate([[1.0], np.full(1000, 0.1)])
    assert varying_columns(deviations, 0.1, 0.99, 1).tolist() == [0]
    assert len(varying_columns(deviations, 0.0, 0.99, 1)) > 900


def test_at_least_so_many_columns_are_kept_as_axes_may_be_needed() -> None:
    assert len(varying_columns(np.array([1.0, 0.0, 0.0, 0.0]), 0.0, 0.99, 3)) == 3


def test_all_columns_are_kept_where_noise_hides_every_one() -> None:
    assert varying_columns(np.array([0.2, 0.1, 0.3]), 1.0, 0.99, 1).tolist() == [0, 1, 2]


def test_axes_of_chosen_columns_have_nothing_in_the_others() -> None:
    chosen = np.array([1, 3])
    found = principal_axes(np.array([9, 0, 4]), 2, 0.1, 1.0, least=1, most=2)
    wide = found.widened(chosen, np.array([0.5, 0.0, 0.25, 0.0]))
    assert wide.axes.shape == wide.candidates.shape == (4, 2)
    assert np.array_equal(wide.axes[chosen], found.axes)
    assert not wide.axes[[0, 2]].any()
    assert wide.columns.tolist() == [0.5, 9.0, 0.25, 4.0]
    assert wide.leftover[[0, 2]].max() < wide.leftover[chosen].min()


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
