"""Exact integer kernels over blocks of rows, carried by float64 BLAS.

Every number that appears in a product or a partial sum here is an integer below 2^53, so float64
arithmetic is exact and the order of summation (threads, chunking, engine) cannot matter. The bounds
are stated where they are used. Rows are int16 or int32 arrays with entries below 2^17, or CSR matrices of
int16. Blocks of rows are shared among threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.threads import share_blocks

__all__ = [
    "WEIGHT_BITS",
    "WEIGHT_ONE",
    "Integers",
    "Labels",
    "Rows",
    "as_floats",
    "clip_weights",
    "clipped_block",
    "clipped_sums",
    "coarse_radius",
    "column_sums",
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
Labels = npt.NDArray[np.integer[Any]]
Rows = npt.NDArray[np.int16] | npt.NDArray[np.int32] | sp.csr_array

#: Clipping multiplies a row by an integer weight of at most WEIGHT_ONE and divides by WEIGHT_ONE.
WEIGHT_BITS = 15
WEIGHT_ONE = 1 << WEIGHT_BITS

#: Bytes of one block as float64: small enough for the cache, large enough for BLAS.
_BLOCK_BYTES = 1 << 20
#: Sums by group make a small matrix of every block, which costs as much for few rows as for many.
_SUM_BYTES = 1 << 22
#: Products of second moments gain from blocks that are taller than wide.
_MOMENT_BYTES = 1 << 24
#: Centres to which distances are computed at once.
_MOST_CENTRES = 1 << 12
#: Rows of at most this length may be multiplied in single precision: most sums of products then stay exact.
_SINGLE_REACH = 1 << 11
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


def project(rows: Rows, matrix: Integers, centre: Integers | None, radius: int) -> Rows:
    """(rows - centre) @ matrix / WEIGHT_ONE, truncated towards zero and clipped to the radius.

    |row . column| <= |row| |column| < 2^17 * 2^33 for columns of norm below 2^33, and a division by a power
    of two is exact. The result is int16 where the radius allows it: such views are kept for many passes.
    """
    width, columns = matrix.shape
    right = np.zeros((width + 1, columns))
    right[:width] = matrix
    if centre is not None:
        right[width] = -(centre.astype(np.float64) @ right[:width])
    right *= 1.0 / WEIGHT_ONE
    out = np.empty((rows.shape[0], columns), dtype=np.int16 if radius < 1 << 15 else np.int32)

    def work(parts: Iterator[slice]) -> None:
        for part, block in _Blocks(rows, parts, one=True):
            if isinstance(block, sp.csr_array):
                product = np.asarray(block @ right[:width]) + right[width]
            else:
                product = block @ right
            np.trunc(product, out=product)
            out[part] = clipped_block(product, _block_norms(product), radius)

    share_blocks(work, row_blocks(rows.shape[0], _widest(rows, columns)))
    return out


class _Scoring:
    """Finds the nearest of some centres: scores |c|^2 - 2 x.c, with the centre's number below them.

    The least `score * unit + number` tells both at once; among equal scores, which are real ties, the lowest
    number wins.
    """

    def __init__(self, centres: Integers) -> None:
        count, width = centres.shape
        self._unit = float(1 << (count - 1).bit_length())
        self._left = np.empty((count, width + 1))
        self._left[:, :width] = centres * (-2.0 * self._unit)
        self._left[:, width] = np.einsum("ij,ij->i", centres, centres) * self._unit + np.arange(count)

    def best(self, block: Floats | sp.csr_array) -> tuple[Floats, Floats]:
        """For each row of a block (dense ones end in a one) the least score, and whose it is."""
        if isinstance(block, sp.csr_array):
            found = (np.asarray(block @ self._left[:, :-1].T) + self._left[:, -1]).min(axis=1)
        else:  # centres by rows: the least along the first axis is found for many rows at once
            found = np.asarray(self._left @ block.T).min(axis=0)
        scores = np.floor(found * (1.0 / self._unit))
        return scores, found - scores * self._unit


def _centres_at_once(centres: Integers, reach: int) -> int:
    """How many centres can be numbered below their scores for rows of norm at most `reach`: a power of two.

    |score| <= |c|^2 + 2 |x| |c| and all partial sums; with the number below it stays below 2^53.
    """
    longest = int(np.einsum("ij,ij->i", centres, centres).max())
    bound = longest + 2 * reach * (math.isqrt(longest) + 1) + 1
    return min(_MOST_CENTRES, 1 << max(0, ((1 << 53) // bound).bit_length() - 1))


def nearest(rows: Rows, centres: Integers, reach: int) -> tuple[npt.NDArray[np.int32], Integers]:
    """The index of the nearest centre (ties to the lowest) and the exact squared distance to it.

    Norms of rows are at most `reach`, and they and those of the centres below 2^25: distances are exact.
    """
    labels = np.empty(rows.shape[0], dtype=np.int32)
    squared = np.empty(rows.shape[0], dtype=np.int64)
    step = _centres_at_once(centres, reach)
    groups = [(first, _Scoring(centres[first : first + step])) for first in range(0, len(centres), step)]

    def work(parts: Iterator[slice]) -> None:
        for part, block in _Blocks(rows, parts, one=True):
            score, label = groups[0][1].best(block)
            for first, group in groups[1:]:
                other, number = group.best(block)
                label = np.where(other < score, first + number, label)
                score = np.minimum(score, other)
            labels[part] = label
            score += _block_norms(block if isinstance(block, sp.csr_array) else block[:, :-1])
            squared[part] = score

    share_blocks(work, row_blocks(rows.shape[0], _widest(rows, min(len(centres), step))))
    return labels, squared


def column_sums(rows: Rows) -> Integers:
    """The sum of all rows; entries below 2^17, so sums over fewer than 2^20 rows stay exact in doubles."""

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros(rows.shape[1], dtype=np.int64)
        for _, block in _Blocks(rows, parts):
            total += np.asarray(np.ones(block.shape[0]) @ block).astype(np.int64)
        return total

    return _sum_of(share_blocks(work, row_blocks(rows.shape[0], rows.shape[1])))


def weighted_sums(rows: Rows, labels: Labels, weights: Integers, groups: int) -> Integers:
    """For each group the sum of weight * row over its rows, and nothing else; weights are at most 2^15."""
    return _grouped_sums(rows, labels, lambda part: weights[part], groups, one=False)


def clipped_sums(rows: Rows, labels: Labels, squared: Labels, radii: Integers, centres: Integers) -> Integers:
    """For each centre the sum of its rows' residuals, clipped to its radius, in units of 1 / WEIGHT_ONE.

    `squared` holds the squared lengths of the residuals. The weights of a centre's rows add up in a last
    column of ones: sum of w (x - c) = sum of w x - c * sum of w.
    """

    def weigh(part: slice) -> Integers:
        return clip_weights(squared[part], radii[labels[part]])

    if sp.issparse(rows):
        weights = weigh(slice(None))
        sums = weighted_sums(rows, labels, weights, len(centres))
        mass = np.bincount(labels, weights, minlength=len(centres)).astype(np.int64)
    else:
        both = _grouped_sums(rows, labels, weigh, len(centres), one=True)
        sums, mass = both[:, :-1], both[:, -1]
    residuals: Integers = sums - mass[:, None] * centres
    return residuals


def _grouped_sums(
    rows: Rows, labels: Labels, weigh: Callable[[slice], Integers], groups: int, *, one: bool
) -> Integers:
    """Weights are at most 2^15 and entries below 2^17, so sums over fewer than 2^20 rows stay below 2^52."""
    width = rows.shape[1] + one

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros((groups, width), dtype=np.int64)
        held, rows_held = np.zeros((groups, width)), 0
        for part, block in _Blocks(rows, parts, one=one):
            picked = weigh(part).astype(np.float64)
            places = labels[part].astype(np.int32, copy=False)
            selector = sp.csc_array(
                (picked, places, np.arange(len(picked) + 1, dtype=np.int32)), shape=(groups, len(picked))
            )
            product = selector @ block
            held += product.toarray() if sp.issparse(product) else product
            rows_held += len(picked)
            if rows_held >= _ROWS_IN_DOUBLES:  # a block adds at most as many rows again
                total += held.astype(np.int64)
                held[:], rows_held = 0, 0
        return total + held.astype(np.int64)

    return _sum_of(share_blocks(work, row_blocks(rows.shape[0], rows.shape[1], _SUM_BYTES)))


def second_moments(rows: Rows, centre: Integers, radius: int, shift: int = 0) -> Integers:
    """The sum of z z^T, z = row - centre clipped to the radius, as its packed upper triangle (row by row).

    With a shift z is rounded to steps of 2^shift and clipped to `coarse_radius`. Its entries are at most the
    radius, below 2^17, so sums over fewer than 2^19 rows stay below 2^53.
    """
    width = rows.shape[1]
    reach = coarse_radius(radius, shift, width)
    middle = centre.astype(np.float64)

    def residuals(part: slice, out: npt.NDArray[np.floating[Any]]) -> None:
        """The z of some rows, a few at a time: they stay in the cache from pass to pass."""
        few = row_blocks(len(out), width)
        blocks = _Blocks(rows, (slice(part.start + at.start, part.start + at.stop) for at in few))
        for at, (_, block) in zip(few, blocks, strict=True):
            dense = block.toarray() if isinstance(block, sp.csr_array) else block
            dense -= middle
            clipped_block(dense, _block_norms(dense), radius)
            if shift:
                dense *= 2.0**-shift
                np.rint(dense, out=dense)
                clipped_block(dense, _block_norms(dense), reach)
            out[at] = dense

    precision = np.float32 if reach <= _SINGLE_REACH else np.float64
    blocks = row_blocks(rows.shape[0], width, min(max(32 * width * width, _BLOCK_BYTES), _MOMENT_BYTES))

    def work(parts: Iterator[slice]) -> Integers:
        packed = np.zeros(width * (width + 1) // 2, dtype=np.int64)
        held, rows_held = np.zeros((width, width)), 0
        buffer = np.empty((blocks[0].stop if blocks else 0, width), dtype=precision)
        for part in parts:
            block = buffer[: part.stop - part.start]
            residuals(part, block)
            held += _own_product(block)
            rows_held += len(block)
            if rows_held >= _ROWS_IN_DOUBLES:
                _add_packed(packed, held)
                held[:], rows_held = 0, 0
        _add_packed(packed, held)
        return packed

    return _sum_of(share_blocks(work, blocks))


def coarse_radius(radius: int, shift: int, width: int) -> int:
    """In steps of 2^shift the length to which rows are clipped that were no longer than the radius.

    Rounding moves each of `width` entries by at most half a step and lengthens hardly any row by more.
    """
    return radius if shift == 0 else math.isqrt((radius >> shift) ** 2 + width // 4) + 1


def _own_product(block: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.floating[Any]]:
    """block^T block, exactly, in single precision where that is possible.

    The diagonal sums squares of integers. Rounding is monotone and 2^24 a single, so a sum computed below
    2^24 was never rounded and is below it. Then so is, by Cauchy and Schwarz, every sum of products off the
    diagonal over any of the rows, in whatever order: nothing was rounded at all.

    numpy sees a block times itself and computes one triangle only; unlike scipy's wrappers of BLAS it lets
    other threads run meanwhile.
    """
    product = block.T @ block
    if block.dtype == np.float32 and not (np.diagonal(product) < 2**24).all():
        doubles = block.astype(np.float64)
        return np.asarray(doubles.T @ doubles)
    return product


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
