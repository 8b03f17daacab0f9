"""Views of rows keep the entries and the norms they declare."""

import numpy as np
import scipy.sparse as sp

from core.data import Chunk, Sparse
from core.views import Encoded, TopEntries

TEXT = Sparse(dimension=30, radius=2.0, size=100)

ROWS = Encoded.of(TEXT)


def encoded(count: int, seed: int) -> sp.csr_array:
    draw = np.random.default_rng(seed)
    matrix = sp.random_array((count, 30), density=0.3, rng=draw, format="csr")
    matrix.data -= 0.5
    return TEXT.encode(matrix)


def chunk_of(rows: sp.csr_array) -> Chunk:
    return Chunk(rows, 0, (rows.data.tobytes(), rows.indices.tobytes()))


def cut(row: np.ndarray, entries: int, largest: int) -> np.ndarray:
    """The same by sorting: largest magnitudes first, ties to the left."""
    kept = sorted(range(len(row)), key=lambda j: (-abs(int(row[j])), j))[:entries]
    return np.array([np.clip(row[j], -largest, largest) if j in kept else 0 for j in range(len(row))])


def test_rows_are_cut_to_their_largest_entries_and_each_is_clipped() -> None:
    rows = encoded(25, 2)
    rows.data[:6] = rows.data[0]  # ties
    found = TopEntries(ROWS, 3, 4000).rows(chunk_of(rows)).toarray()
    expected = np.stack([cut(row, 3, 4000) for row in rows.toarray().astype(np.int64)])
    assert np.array_equal(found, expected)
