"""Sums of residuals mean what they say on rows that can be checked by hand."""

import numpy as np
import scipy.sparse as sp

from core.data import UNITS, Chunk, Dense
from core.kernels.clipping import WEIGHT_ONE
from core.statistics import (
    ResidualSums,
)
from core.views import (
    Assigned,
    Encoded,
)

DENSE = Dense.ball(float(UNITS), dimension=3, size=100)  # encoded units are the data's own


def chunk_of(rows: np.ndarray, sparse: bool) -> Chunk:
    encoded = rows.astype(np.int16)
    return Chunk(sp.csr_array(encoded) if sparse else encoded, 0, object())


def test_residual_sums_are_taken_about_the_centre_and_clipped_to_its_radius() -> None:
    assigned = Assigned(Encoded.of(DENSE), np.array([[100, 0, 0]]))
    chunk = chunk_of(np.array([[103, 4, 0], [100, 0, 10]]), sparse=False)
    sums = ResidualSums(assigned, np.array([5])).of(chunk)
    assert (sums / WEIGHT_ONE).tolist() == [[3.0, 4.0, 5.0]]
