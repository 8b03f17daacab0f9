"""Assignments go to the nearest centre, ties to the lowest index."""

import numpy as np

from core.statistics.counts import ClusterCounts
from core.views import Assigned, Encoded
from tests.support.rows import DENSE, chunk_of


def test_assignment_breaks_ties_to_the_lowest_index() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[5, 0, 0], [-5, 0, 0], [5, 0, 0]]))
    chunk = chunk_of(np.array([[0, 0, 0], [9, 0, 0], [-9, 0, 0]]))
    assert ClusterCounts(assigned).of(chunk).tolist() == [2, 1, 0]
    assert assigned.assignment(chunk).squared.tolist() == [25, 16, 16]
