"""Exact clipping of integer rows: to a radius, or to a few entries of bounded size."""

import numpy as np
import scipy.sparse as sp

from core.arrays import Floats, Integers, Labels, Rows

#: Clipping multiplies a row by an integer weight of at most WEIGHT_ONE and divides by WEIGHT_ONE.
WEIGHT_BITS = 15
WEIGHT_ONE = 1 << WEIGHT_BITS


def clip_weights(squared: Labels, radius: Integers | int) -> Integers:
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
    norms = squared[outside].astype(np.int64, copy=False)
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
