"""Exact sums over rows: by column, by group, and of second moments."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arrays import Floats, Integers, Labels, Rows
from core.kernels.clipping import clip_weights, clipped_block
from core.kernels.geometry import block_norms
from core.kernels.rows import BLOCK_BYTES, FloatBlocks, row_blocks
from core.kernels.threads import share_blocks

#: Sums by group make a small matrix of every block, which costs as much for few rows as for many.
_SUM_BYTES = 1 << 22
#: Products of second moments gain from blocks that are taller than wide.
_MOMENT_BYTES = 1 << 24
#: Rows of at most this length may be multiplied in single precision: most sums of products then stay exact.
_SINGLE_REACH = 1 << 11
#: Rows whose products are summed in doubles before they move to int64; see the bounds where it is used.
_ROWS_IN_DOUBLES = 1 << 18


def column_sums(rows: Rows) -> Integers:
    """The sum of all rows; entries below 2^17, so sums over fewer than 2^20 rows stay exact in doubles."""

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros(rows.shape[1], dtype=np.int64)
        for _, block in FloatBlocks(rows, parts):
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
        partial, rows_summed = np.zeros((groups, width)), 0
        for part, block in FloatBlocks(rows, parts, one=one):
            picked = weigh(part).astype(np.float64)
            places = labels[part].astype(np.int32, copy=False)
            selector = sp.csc_array(
                (picked, places, np.arange(len(picked) + 1, dtype=np.int32)), shape=(groups, len(picked))
            )
            product = selector @ block
            partial += product.toarray() if sp.issparse(product) else product
            rows_summed += len(picked)
            if rows_summed >= _ROWS_IN_DOUBLES:  # a block adds at most as many rows again
                total += partial.astype(np.int64)
                partial[:], rows_summed = 0, 0
        return total + partial.astype(np.int64)

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
        blocks = FloatBlocks(rows, (slice(part.start + at.start, part.start + at.stop) for at in few))
        for at, (_, block) in zip(few, blocks, strict=True):
            dense = block.toarray() if isinstance(block, sp.csr_array) else block
            dense -= middle
            clipped_block(dense, block_norms(dense), radius)
            if shift:
                dense *= 2.0**-shift
                np.rint(dense, out=dense)
                clipped_block(dense, block_norms(dense), reach)
            out[at] = dense

    precision = np.float32 if reach <= _SINGLE_REACH else np.float64
    blocks = row_blocks(rows.shape[0], width, min(max(32 * width * width, BLOCK_BYTES), _MOMENT_BYTES))

    def work(parts: Iterator[slice]) -> Integers:
        packed = np.zeros(width * (width + 1) // 2, dtype=np.int64)
        partial, rows_summed = np.zeros((width, width)), 0
        buffer = np.empty((blocks[0].stop if blocks else 0, width), dtype=precision)
        for part in parts:
            block = buffer[: part.stop - part.start]
            residuals(part, block)
            partial += _own_product(block)
            rows_summed += len(block)
            if rows_summed >= _ROWS_IN_DOUBLES:
                _add_packed(packed, partial)
                partial[:], rows_summed = 0, 0
        _add_packed(packed, partial)
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


def sparse_sums(rows: sp.csr_array, labels: Labels, groups: int) -> Integers:
    """Column sums by group; fewer than 2^30 entries below 2^16 each, so doubles carry them exactly."""
    owner = np.repeat(labels.astype(np.int64), np.diff(rows.indptr))
    cells = owner * rows.shape[1] + rows.indices
    sums = np.bincount(cells, rows.data.astype(np.float64), minlength=groups * rows.shape[1])
    return sums.reshape(groups, rows.shape[1]).astype(np.int64)
