"""Small domains, chunks of rows in them, and sparse rows like texts."""

import numpy as np
import scipy.sparse as sp

from core.data import UNITS, Category, Chunk, Dense, Geometry, Number, Sparse, Table
from core.views import Encoded

# Encoded units of these two are the data's own.
DENSE = Dense.ball(float(UNITS), dimension=3, size=100)
SPARSE = Sparse(dimension=3, radius=float(UNITS), size=100)
# A table of three columns, of which two make up three coordinates.
TABLE = Table(
    declared=(
        Number(name="age", low=0, high=120, weight=3.0),
        Category(name="sex", levels=("f", "m"), weight=0.5),
        Number(name="visits", low=0, high=9, whole=True, role="keep"),
    ),
    size=100,
)
GEOMETRY = Geometry.of(TABLE)
TEXT = Sparse(dimension=30, radius=2.0, size=100)
TEXT_ROWS = Encoded.of(TEXT)


def chunk_of(rows: np.ndarray, sparse: bool = False) -> Chunk:
    """A chunk that no cache knows."""
    encoded = rows.astype(np.int16)
    return Chunk(sp.csr_array(encoded) if sparse else encoded, 0, object())


def texts(count: int, seed: int) -> sp.csr_array:
    """Encoded sparse rows of `TEXT`."""
    draw = np.random.default_rng(seed)
    matrix = sp.csr_array(sp.random_array((count, 30), density=0.3, rng=draw))
    matrix.data -= 0.5
    return TEXT.encode(matrix)


def chunk_of_texts(rows: sp.csr_array) -> Chunk:
    return Chunk(rows, 0, (rows.data.tobytes(), rows.indices.tobytes()))


def cut(row: np.ndarray, entries: int, largest: int) -> np.ndarray:
    """TopEntries of one row by sorting: largest magnitudes first, ties to the left."""
    kept = sorted(range(len(row)), key=lambda j: (-abs(int(row[j])), j))[:entries]
    return np.array([np.clip(row[j], -largest, largest) if j in kept else 0 for j in range(len(row))])
