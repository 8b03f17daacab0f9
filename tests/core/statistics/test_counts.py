"""Counts mean what they say on rows that can be checked by hand."""

import numpy as np
import scipy.sparse as sp

from core.data import UNITS, Chunk, Dense
from core.statistics import (
    NormHistogram,
)
from core.views import (
    Assigned,
    Encoded,
)

DENSE = Dense.ball(float(UNITS), dimension=3, size=100)  # encoded units are the data's own


def chunk_of(rows: np.ndarray, sparse: bool) -> Chunk:
    encoded = rows.astype(np.int16)
    return Chunk(sp.csr_array(encoded) if sparse else encoded, 0, object())


def test_a_norm_on_an_edge_belongs_to_the_bin_below() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.zeros((1, 3), dtype=np.int64))
    chunk = chunk_of(np.array([[5, 0, 0], [6, 0, 0], [500, 0, 0], [0, 0, 0]]), sparse=False)
    assert NormHistogram(assigned, np.array([0, 5, 10])).of(chunk).tolist() == [[1, 1, 2]]
