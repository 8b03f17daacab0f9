"""Exact integer kernels over blocks of rows, carried by float64 BLAS.

Every number that appears in a product or a partial sum here is an integer below 2^53, so float64
arithmetic is exact and the order of summation (threads, chunking, engine) cannot matter. The bounds
are stated where they are used. Rows are int16 or int32 arrays with entries below 2^17, or CSR matrices of
int16. Blocks of rows are shared among threads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg.blas import dsyrk

from core.threads import share_blocks

__all__ = [
    "WEIGHT_BITS",
    "WEIGHT_ONE",
    "Integers",
    "Rows",
    "as_floats",
    "clip_weights",
    "clipped_block",
    "integer_sqrt",
    "nearest",
    "project",
    "row_blocks",
    "second_moments",
    "squared_norms",
    "top_entries",
    "weighted_sums",
]

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int16] | npt.NDArray[np.int32] | sp.csr_array

#: Clipping multiplies a row by an integer weight of at most WEIGHT_ONE and divides by WEIGHT_ONE.
WEIGHT_BITS = 15
WEIGHT_ONE = 1 << WEIGHT_BITS

#: Bytes of one block as float64: small enough for the cache, large enough for BLAS.
_BLOCK_BYTES = 1 << 21
#: Products of second moments gain from taller blocks.
_MOMENT_BYTES = 1 << 23
#: Rows whose products are summed in doubles before they move to int64; see the bounds where it is used.
_ROWS_IN_DOUBLES = 1 << 18


def row_blocks(count: int, width: int, block_bytes: int = _BLOCK_BYTES) -> list[slice]:
    """Slices that cut `count` rows into blocks of about `block_bytes` at this width."""
    step = min(1 << 18, max(256, block_bytes // (8 * max(1, width))))
    return [slice(start, min(start + step, count)) for start in range(0, count, step)]


def _widest(rows: Rows, derived: int) -> int:
    """The width that limits a block: of the rows if they are dense, or of what is derived from them."""
    return derived if sp.issparse(rows) else max(rows.shape[1], derived)


class _Blocks:
    """Blocks of rows as floats, dense ones in one buffer that is used again and again."""

    def __init__(self, rows: Rows, parts: Iterator[slice]) -> None:
        self._rows = rows
        self._parts = parts
        self._buffer = np.empty((0, 0))

    def __iter__(self) -> Iterator[tuple[slice, Floats | sp.csr_array]]:
        for part in self._parts:
            rows = self._rows[part]
            if isinstance(rows, sp.csr_array):
                yield part, as_floats(rows)
                continue
            if len(rows) > len(self._buffer):
                self._buffer = np.empty(rows.shape)
            block = self._buffer[: len(rows)]
            block[:] = rows
            yield part, block


def as_floats(rows: Rows) -> Floats | sp.csr_array:
    """A block in the type that BLAS (or scipy.sparse) multiplies; integers stay integers."""
    return rows.astype(np.float64)


def squared_norms(rows: Rows) -> Integers:
    """Exact squared norms; the caller's rows have norms below 2^26."""
    out = np.empty(rows.shape[0], dtype=np.int64)

    def work(parts: Iterator[slice]) -> None:
        for part, block in _Blocks(rows, parts):
            out[part] = _block_norms(block)

    share_blocks(work, row_blocks(rows.shape[0], _widest(rows, 1)))
    return out


def _block_norms(block: Floats | sp.csr_array) -> Integers:
    if isinstance(block, sp.csr_array):
        return np.asarray(block.power(2).sum(axis=1)).ravel().astype(np.int64)
    squared: Integers = np.einsum("ij,ij->i", block, block).astype(np.int64)
    return squared


def clip_weights(squared: Integers, radius: Integers | int) -> Integers:
    """The largest weights w <= WEIGHT_ONE with w * norm <= WEIGHT_ONE * radius, norm = sqrt(squared).

    Exact for norms below 2^17 and radii up to 2^16: w^2 * squared < 2^30 * 2^34 would overflow, so the
    test is done on rows outside the radius only, where w^2 * squared <= about 2^30 * radius^2 <= 2^62.
    """
    limit = np.asarray(radius, dtype=np.int64)
    bound = limit * limit
    weights = np.full(squared.shape, WEIGHT_ONE, dtype=np.int64)
    outside = np.flatnonzero(squared > bound)
    if len(outside) == 0:
        return weights
    norms = squared[outside]
    limits = (limit if limit.ndim == 0 else limit[outside]) << WEIGHT_BITS
    guess = np.floor(limits / np.sqrt(norms.astype(np.float64))).astype(np.int64)
    allowed = limits * limits
    guess -= guess * guess * norms > allowed
    # The double is within one unit of the real quotient, so one step down always suffices.
    assert not np.any(guess * guess * norms > allowed)
    weights[outside] = guess
    return weights


def clipped_block(block: Floats, squared: Integers, radius: int) -> Floats:
    """The block with integer rows longer than the radius scaled down to it, truncated towards zero, in place.

    Truncation lowers every absolute value, so the norm stays at most weight * norm / WEIGHT_ONE, which
    `clip_weights` bounds by the radius. The division is by a power of two and exact.
    """
    outside = np.flatnonzero(squared > radius * radius)
    if len(outside) == 0:
        return block
    weights = clip_weights(squared[outside], radius) * (1.0 / WEIGHT_ONE)
    if 2 * len(outside) < len(block):
        block[outside] = np.trunc(block[outside] * weights[:, None])
        return block
    factors = np.ones(len(block))
    factors[outside] = weights
    block *= factors[:, None]
    return np.trunc(block, out=block)


def project(rows: Rows, matrix: Integers, centre: Integers | None, radius: int) -> Rows:
    """(rows - centre) @ matrix / WEIGHT_ONE, truncated towards zero and clipped to the radius.

    |row . column| <= |row| |column| < 2^17 * 2^33 for columns of norm below 2^33: exact. The result is int16
    where the radius allows it: such views are kept for many passes.
    """
    right = matrix.astype(np.float64)
    shift = 0.0 if centre is None else centre.astype(np.float64) @ right
    out = np.empty((rows.shape[0], matrix.shape[1]), dtype=np.int16 if radius < 1 << 15 else np.int32)

    def work(parts: Iterator[slice]) -> None:
        for part, block in _Blocks(rows, parts):
            product = np.asarray(block @ right)
            product -= shift
            product *= 1.0 / WEIGHT_ONE
            np.trunc(product, out=product)
            out[part] = clipped_block(product, _block_norms(product), radius)

    share_blocks(work, row_blocks(rows.shape[0], _widest(rows, matrix.shape[1])))
    return out


def nearest(rows: Rows, centres: Integers) -> tuple[npt.NDArray[np.int32], Integers]:
    """The index of the nearest centre (ties to the lowest) and the exact squared distance to it.

    |c|^2 - 2 x.c and |x|^2 are below 2^38 for norms below 2^18: exact, so ties are real ties.
    """
    labels = np.empty(rows.shape[0], dtype=np.int32)
    squared = np.empty(rows.shape[0], dtype=np.int64)
    turned = np.ascontiguousarray(centres.T.astype(np.float64) * -2.0)
    offsets = np.einsum("ij,ij->i", centres, centres).astype(np.float64)

    def work(parts: Iterator[slice]) -> None:
        for part, block in _Blocks(rows, parts):
            scores = np.asarray(block @ turned)
            scores += offsets
            label = scores.argmin(axis=1)
            labels[part] = label
            squared[part] = scores[np.arange(len(label)), label].astype(np.int64) + _block_norms(block)

    share_blocks(work, row_blocks(rows.shape[0], _widest(rows, len(centres))))
    return labels, squared


def weighted_sums(rows: Rows, labels: npt.NDArray[np.int32], weights: Integers, groups: int) -> Integers:
    """For each group the sum of weight * row over its rows, and nothing else.

    Weights are at most 2^15 and entries below 2^17, so sums over fewer than 2^20 rows stay below 2^52.
    """

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros((groups, rows.shape[1]), dtype=np.int64)
        held, rows_held = np.zeros((groups, rows.shape[1])), 0
        for part, block in _Blocks(rows, parts):
            picked = weights[part].astype(np.float64)
            selector = sp.csc_array(
                (picked, labels[part], np.arange(len(picked) + 1, dtype=np.int32)),
                shape=(groups, len(picked)),
            )
            product = selector @ block
            held += product.toarray() if sp.issparse(product) else product
            rows_held += len(picked)
            if rows_held >= _ROWS_IN_DOUBLES:  # a block adds at most as many rows again
                total += held.astype(np.int64)
                held[:], rows_held = 0, 0
        return total + held.astype(np.int64)

    return _sum_of(share_blocks(work, row_blocks(rows.shape[0], rows.shape[1])))


def second_moments(rows: Rows, centre: Integers, radius: int) -> Integers:
    """The sum of z z^T, z = row - centre clipped to the radius, as its packed upper triangle (row by row).

    Entries of z are at most the radius, below 2^17, so sums over fewer than 2^19 rows stay below 2^53.
    """
    width = rows.shape[1]
    middle = centre.astype(np.float64)

    def work(parts: Iterator[slice]) -> Integers:
        packed = np.zeros(width * (width + 1) // 2, dtype=np.int64)
        held, rows_held = np.zeros((width, width), order="F"), 0
        for _, block in _Blocks(rows, parts):
            dense = block.toarray() if isinstance(block, sp.csr_array) else block
            dense -= middle
            clipped_block(dense, _block_norms(dense), radius)
            # The transpose of a block is what Fortran expects; only the lower triangle is computed, which
            # is the upper one of the transpose, in place.
            held = dsyrk(1.0, dense.T, beta=1.0, c=held, lower=1, overwrite_c=1)
            rows_held += len(dense)
            if rows_held >= _ROWS_IN_DOUBLES:
                _add_packed(packed, held.T)
                held[:], rows_held = 0, 0
        _add_packed(packed, held.T)
        return packed

    return _sum_of(share_blocks(work, row_blocks(rows.shape[0], width, _MOMENT_BYTES)))


def _add_packed(packed: Integers, square: Floats) -> None:
    """Add the upper triangle of a square matrix to its packed form."""
    start = 0
    for i in range(len(square)):
        stop = start + len(square) - i
        packed[start:stop] += square[i, i:].astype(np.int64)
        start = stop


def _sum_of(parts: list[Integers]) -> Integers:
    """The sum of arrays, in the first of them."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


def integer_sqrt(squared: Integers) -> Integers:
    """The largest integers whose squares do not exceed `squared` (below 2^52)."""
    roots = np.sqrt(squared.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squared
    roots += (roots + 1) * (roots + 1) <= squared
    return roots


def top_entries(rows: Rows, entries: int, largest: int) -> sp.csr_array:
    """CSR rows cut to their largest magnitudes (ties to the left), each clipped to `largest`."""
    matrix = sp.csr_array(rows)
    matrix.sort_indices()
    counts = np.diff(matrix.indptr)
    owner = np.repeat(np.arange(matrix.shape[0]), counts)
    magnitude = np.abs(matrix.data.astype(np.int64))
    order = np.lexsort((matrix.indices, -magnitude, owner))
    rank = np.arange(len(order)) - np.repeat(matrix.indptr[:-1], counts)
    kept = np.sort(order[rank < entries])
    pointers = np.concatenate([[0], np.cumsum(np.minimum(counts, entries))])
    data = np.clip(matrix.data[kept], -largest, largest)
    return sp.csr_array((data, matrix.indices[kept], pointers), shape=matrix.shape)
