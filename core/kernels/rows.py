"""Blocks of encoded rows as the floats that BLAS multiplies.

Every number in a product or a partial sum of the kernels is an integer below 2^53, so float64 arithmetic is
exact and the order of summation (threads, chunking, engine) cannot matter. Each kernel states its bounds.
Rows are int16 or int32 arrays with entries below 2^17, or CSR matrices of int16.
"""

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from core.arrays import Floats, Integers, Rows

#: Bytes of one block as float64: small enough for the cache, large enough for BLAS.
BLOCK_BYTES = 1 << 20
#: The radius of the ball that every encoded row lies in.
UNITS = 32767


def row_blocks(
    count: int, width: int, block_bytes: int = BLOCK_BYTES, most_rows: int = 1 << 18
) -> list[slice]:
    """Slices that cut `count` rows into blocks of about `block_bytes` at this width."""
    step = min(most_rows, max(256, block_bytes // (8 * max(1, width))))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def widest(rows: Rows, derived: int) -> int:
    """The width that limits a block: of the rows if they are dense, or of what is derived from them."""
    return derived if sp.issparse(rows) else max(rows.shape[1], derived)


class FloatBlocks:
    """Blocks of rows as floats, dense ones in one buffer that is used again and again.

    With `one`, dense rows get a last column of ones, so that a product adds constants at no extra pass.
    """

    def __init__(self, rows: Rows, parts: Iterator[slice], *, one: bool = False) -> None:
        self._rows = rows
        self._parts = parts
        self._width = rows.shape[1]
        self._one = one and not sp.issparse(rows)
        self._buffer = np.empty((0, 0))

    def __iter__(self) -> Iterator[tuple[slice, Floats | sp.csr_array]]:
        for part in self._parts:
            rows = self._rows[part]
            if isinstance(rows, sp.csr_array):
                yield part, as_floats(rows)
                continue
            if len(rows) > len(self._buffer):
                self._buffer = np.ones((len(rows), self._width + self._one))
            block = self._buffer[: len(rows)]
            block[:, : self._width] = rows
            yield part, block


def as_floats(rows: Rows | Integers) -> Floats | sp.csr_array:
    """A block in the type that BLAS (or scipy.sparse) multiplies; integers stay integers."""
    return rows.astype(np.float64)
