"""Counts mean what they say on rows that can be checked by hand."""

import numpy as np

from core.statistics.counts import NormHistogram
from core.views import Assigned, Encoded
from tests.support.rows import DENSE, chunk_of


def test_a_norm_on_an_edge_belongs_to_the_bin_below() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.zeros((1, 3), dtype=np.int64))
    chunk = chunk_of(np.array([[5, 0, 0], [6, 0, 0], [500, 0, 0], [0, 0, 0]]))
    assert NormHistogram(assigned, np.array([0, 5, 10])).of(chunk).tolist() == [[1, 1, 2]]
