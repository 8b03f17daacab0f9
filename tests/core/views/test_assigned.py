"""Assignments go to the nearest centre, ties to the lowest index."""

import numpy as np
import scipy.sparse as sp

from core.data import UNITS, Chunk, Dense
from core.statistics import (
    ClusterCounts,
)
from core.views import (
    Assigned,
    Encoded,
)

DENSE = Dense.ball(float(UNITS), dimension=3, size=100)  # encoded units are the data's own


def chunk_of(rows: np.ndarray, sparse: bool) -> Chunk:
    encoded = rows.astype(np.int16)
    return Chunk(sp.csr_array(encoded) if sparse else encoded, 0, object())


def test_assignment_breaks_ties_to_the_lowest_index() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[5, 0, 0], [-5, 0, 0], [5, 0, 0]]))
    chunk = chunk_of(np.array([[0, 0, 0], [9, 0, 0], [-9, 0, 0]]), sparse=False)
    assert ClusterCounts(assigned).of(chunk).tolist() == [2, 1, 0]
    assert assigned.assignment(chunk).squared.tolist() == [25, 16, 16]
