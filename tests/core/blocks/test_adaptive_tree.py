"""The box of a tree: fine cells where most records lie, and few that reach those far out."""

import numpy as np

from core.blocks.adaptive_tree import halvings
from core.views import Encoded
from tests.support.rows import DENSE

VIEW = Encoded.of(DENSE)


def test_cells_are_equal_where_the_box_reaches_far_enough() -> None:
    codes = halvings(VIEW, np.array([1000.0, 500.0]), 5, reach=400.0)
    assert [sorted(set(np.diff(edges).tolist())) for edges in codes.edges] == [[250], [250]]


def test_a_longer_reach_adds_cells_that_grow_with_the_distance() -> None:
    codes = halvings(VIEW, np.array([1000.0]), 5, reach=20_000.0)
    edges = np.array(codes.edges[0])
    assert edges[-1] == 20_000
    assert (edges == -edges[::-1]).all()
    inner, outer = edges[(edges >= 0) & (edges <= 1000)], edges[edges >= 1000]
    assert np.ptp(np.diff(inner)) <= 1  # edges are rounded
    factors = outer[1:] / outer[:-1]
    assert np.ptp(factors) < 0.01
    assert len(inner) - 1 >= 3


def test_every_halving_is_of_the_widest_side_on_the_scale_of_the_cells() -> None:
    """Both sides reach as far, but the narrow one has its cells near the middle: its scale is shorter."""
    codes = halvings(VIEW, np.array([10_000.0, 100.0]), 6, reach=10_000.0)
    assert codes.axes == (0, 0, 0, 0, 0, 1)
    assert [edges[-1] for edges in codes.edges] == [10_000, 10_000]
