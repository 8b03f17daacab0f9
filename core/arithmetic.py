"""Exact integer kernels over blocks of rows, carried by float64 BLAS.

Every number that appears in a product or a partial sum here is an integer below 2^53, so float64
arithmetic is exact and the order of summation (threads, chunking, engine) cannot matter. The bounds
are stated where they are used. Rows are int16 or int32 arrays, or CSR matrices of int16.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

__all__ = [
    "WEIGHT_BITS",
    "WEIGHT_ONE",
    "Integers",
    "Rows",
    "clip_weights",
    "clipped_block",
    "integer_sqrt",
    "nearest",
    "project",
    "row_blocks",
    "second_moments",
    "squared_norms",
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
#: Second moments gain from taller blocks.
_MOMENT_ROWS = 1 << 12


def row_blocks(rows: Rows, width: int | None = None) -> Iterator[slice]:
    """Slices that cut rows into blocks of about `_BLOCK_BYTES`."""
    count = rows.shape[0]
    step = max(256, _BLOCK_BYTES // (8 * max(1, width or rows.shape[1])))
    return (slice(start, min(start + step, count)) for start in range(0, count, step))


def as_floats(rows: Rows) -> Floats | sp.csr_array:
    """A block in the type that BLAS (or scipy.sparse) multiplies; integers stay integers."""
    return rows.astype(np.float64)


def squared_norms(rows: Rows) -> Integers:
    """Exact squared norms; the caller's rows have norms below 2^26."""
    out = np.empty(rows.shape[0], dtype=np.int64)
    for part in row_blocks(rows):
        out[part] = _block_norms(as_floats(rows[part]))
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
    """Integer rows with norms of at most `radius`: those outside are scaled down and truncated to zero.

    Truncation lowers every absolute value, so the norm stays at most weight * norm / WEIGHT_ONE, which
    `clip_weights` bounds by the radius. The division is by a power of two and exact.
    """
    outside = squared > radius * radius
    if outside.any():
        weights = clip_weights(squared, radius).astype(np.float64)
        block *= (weights * (1.0 / WEIGHT_ONE))[:, None]
        np.trunc(block, out=block)
    return block


def project(rows: Rows, matrix: Integers, centre: Integers | None, radius: int) -> npt.NDArray[np.int32]:
    """(rows - centre) @ matrix / WEIGHT_ONE, truncated towards zero and clipped to the radius.

    |row . column| <= |row| |column| < 2^17 * 2^33 for columns of norm below 2^33: exact.
    """
    right = matrix.astype(np.float64)
    shift = 0.0 if centre is None else centre.astype(np.float64) @ right
    out = np.empty((rows.shape[0], matrix.shape[1]), dtype=np.int32)
    for part in row_blocks(rows, None if not sp.issparse(rows) else matrix.shape[1]):
        product = np.asarray(as_floats(rows[part]) @ right)
        product -= shift
        product *= 1.0 / WEIGHT_ONE
        np.trunc(product, out=product)
        out[part] = clipped_block(product, _block_norms(product), radius)
    return out


def nearest(rows: Rows, centres: Integers) -> tuple[npt.NDArray[np.int32], Integers]:
    """The index of the nearest centre (ties to the lowest) and the exact squared distance to it.

    |c|^2 - 2 x.c and |x|^2 are below 2^38 for norms below 2^18: exact, so ties are real ties.
    """
    labels = np.empty(rows.shape[0], dtype=np.int32)
    squared = np.empty(rows.shape[0], dtype=np.int64)
    turned = np.ascontiguousarray(centres.T.astype(np.float64) * -2.0)
    offsets = np.einsum("ij,ij->i", centres, centres).astype(np.float64)
    for part in row_blocks(rows, max(rows.shape[1] if not sp.issparse(rows) else 0, len(centres))):
        block = as_floats(rows[part])
        scores = np.asarray(block @ turned)
        scores += offsets
        label = scores.argmin(axis=1)
        labels[part] = label
        squared[part] = np.take_along_axis(scores, label[:, None], axis=1)[:, 0].astype(np.int64)
        squared[part] += _block_norms(block)
    return labels, squared


def weighted_sums(rows: Rows, labels: npt.NDArray[np.int32], weights: Integers, groups: int) -> Integers:
    """For each group the sum of weight * row over its rows, and nothing else.

    Blocks hold fewer than 2^18 rows, weights are at most 2^15 and entries below 2^18: sums below 2^51.
    """
    total = np.zeros((groups, rows.shape[1]), dtype=np.int64)
    for part in row_blocks(rows):
        block = as_floats(rows[part])
        picked = weights[part].astype(np.float64)
        selector = sp.csc_array(
            (picked, labels[part], np.arange(len(picked) + 1, dtype=np.int32)), shape=(groups, len(picked))
        )
        product = selector @ block
        total += (product.toarray() if sp.issparse(product) else product).astype(np.int64)
    return total


def second_moments(rows: Rows, centre: Integers, radius: int) -> Integers:
    """The sum of z z^T, z = row - centre clipped to the radius, as its packed upper triangle (row by row).

    Entries of a block's product are at most _MOMENT_ROWS * radius^2 < 2^12 * 2^34: exact.
    """
    width = rows.shape[1]
    total = np.zeros((width, width))
    middle = centre.astype(np.float64)
    packed = np.zeros(width * (width + 1) // 2, dtype=np.int64)
    upper = np.triu_indices(width)
    blocks_held = 0
    for start in range(0, rows.shape[0], _MOMENT_ROWS):
        block = as_floats(rows[start : start + _MOMENT_ROWS])
        dense = block.toarray() if isinstance(block, sp.csr_array) else block
        dense -= middle
        dense = clipped_block(dense, _block_norms(dense), radius)
        total += dense.T @ dense
        blocks_held += 1
        if blocks_held == 64:  # 2^6 blocks stay below 2^52
            packed += total[upper].astype(np.int64)
            total[:] = 0
            blocks_held = 0
    return packed + total[upper].astype(np.int64)


def integer_sqrt(squared: Integers) -> Integers:
    """The largest integers whose squares do not exceed `squared` (below 2^52)."""
    roots = np.sqrt(squared.astype(np.float64)).astype(np.int64)
    roots -= roots * roots > squared
    roots += (roots + 1) * (roots + 1) <= squared
    return roots
