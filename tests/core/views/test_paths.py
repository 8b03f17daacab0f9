"""Paths name the cells of a tree of halvings."""

import numpy as np
import scipy.sparse as sp

from core.data import UNITS, Chunk, Dense
from core.statistics import (
    PrefixCounts,
)
from core.views import (
    Encoded,
    PathCodes,
)

DENSE = Dense.ball(float(UNITS), dimension=3, size=100)  # encoded units are the data's own


def chunk_of(rows: np.ndarray, sparse: bool) -> Chunk:
    encoded = rows.astype(np.int16)
    return Chunk(sp.csr_array(encoded) if sparse else encoded, 0, object())


def test_paths_name_the_cells_of_a_halving_tree() -> None:
    codes = PathCodes(Encoded.of(DENSE), np.array([-8, -8, -8]), np.array([16, 16, 16]), (0, 1, 0))
    chunk = chunk_of(np.array([[-8, -8, 0], [7, 7, 0], [0, -1, 0], [999, -999, 0], [3, 0, 0]]), sparse=False)
    assert codes.codes(chunk).tolist() == [0b000, 0b111, 0b100, 0b101, 0b110]
    assert PrefixCounts(codes, 1, np.array([0b00, 0b10, 0b11])).of(chunk).tolist() == [1, 2, 2]
