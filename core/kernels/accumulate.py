"""Exact sums over rows: by column, by group, and of second moments."""

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arrays import Floats, Integers, Labels, Rows
from core.kernels.backend import kernel
from core.kernels.clipping import WEIGHT_ONE, clip_weights, clipped_block
from core.kernels.geometry import block_norms
from core.kernels.rows import BLOCK_BYTES, FloatBlocks, row_blocks
from core.kernels.threads import sum_blocks

#: Sums by group make a small matrix of every block, which costs as much for few rows as for many.
_SUM_BYTES = 1 << 22
#: Products of second moments gain from blocks that are taller than wide.
_MOMENT_BYTES = 1 << 24
#: Products of fewer rows than this take longer to add up than single precision saves.
_FEWEST_ROWS = 256
#: Rows whose products are summed in doubles before they move to int64; see the bounds where it is used.
ROWS_IN_DOUBLES = 1 << 18


@kernel
def column_sums(rows: Rows) -> Integers:
    """The sum of all rows; entries below 2^17, so sums over fewer than 2^20 rows stay exact in doubles."""

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros(rows.shape[1], dtype=np.int64)
        for _, block in FloatBlocks(rows, parts):
            total += np.asarray(np.ones(block.shape[0]) @ block).astype(np.int64)
        return total

    return sum_blocks(work, row_blocks(rows.shape[0], rows.shape[1]))


@kernel
def weighted_sums(rows: Rows, labels: Labels, weights: Integers, groups: int) -> Integers:
    """For each group the sum of weight * row over its rows, and nothing else; weights are at most 2^15."""
    if isinstance(rows, sp.csr_array):
        return _sparse_sums(rows, labels, weights, groups)
    return _grouped_sums(rows, labels, lambda part: weights[part], groups, one=False)


@kernel
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
    """Sums of dense rows: weights up to 2^15, entries below 2^17 and fewer than 2^20 rows stay below 2^52."""
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
            partial += selector @ block
            rows_summed += len(picked)
            if rows_summed >= ROWS_IN_DOUBLES:  # a block adds at most as many rows again
                total += partial.astype(np.int64)
                partial[:], rows_summed = 0, 0
        return total + partial.astype(np.int64)

    return sum_blocks(work, row_blocks(rows.shape[0], rows.shape[1], _SUM_BYTES))


def _sparse_sums(rows: sp.csr_array, labels: Labels, weights: Integers, groups: int) -> Integers:
    """Sums of sparse rows, entry by entry.

    A sparse product would take the longer the more sums differ from zero, which rows decide. Weights and
    entries are at most 2^15, so sums over at most 2^18 rows stay below 2^53.
    """
    width = rows.shape[1]
    total = np.zeros(groups * width, dtype=np.int64)
    for part in row_blocks(rows.shape[0], 1, 8 << 18):
        block = rows[part]
        entries = np.diff(block.indptr)
        cells = np.repeat(labels[part].astype(np.int64) * width, entries)
        cells += block.indices
        values = np.repeat(weights[part].astype(np.float64), entries)
        values *= block.data
        total += np.bincount(cells, values, minlength=len(total)).astype(np.int64)
    return total.reshape(groups, width)


def absolute_sums(rows: Rows, centre: Integers, radius: int) -> Integers:
    """The sum of |z|, entry by entry, z = row - centre clipped to the radius.

    Entries of z are integers of at most the radius, below 2^17: sums over fewer than 2^20 rows stay exact.
    """
    middle = centre.astype(np.float64)

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros(rows.shape[1], dtype=np.int64)
        for _, block in FloatBlocks(rows, parts):
            dense = block.toarray() if isinstance(block, sp.csr_array) else block
            dense -= middle
            clipped_block(dense, block_norms(dense), radius)
            np.abs(dense, out=dense)
            total += (np.ones(len(dense)) @ dense).astype(np.int64)
        return total

    return sum_blocks(work, row_blocks(rows.shape[0], rows.shape[1]))


@kernel
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
            if shift:
                weights = clip_weights(block_norms(dense), radius)
                dense *= (weights * (2.0**-shift / WEIGHT_ONE))[:, None]
                np.rint(dense, out=out[at], casting="same_kind")
                clipped_block(out[at], block_norms(out[at]), reach)
            else:
                out[at] = clipped_block(dense, block_norms(dense), radius)

    few = rows_in_singles(reach)
    precision, most_rows = (np.float32, few) if few >= _FEWEST_ROWS else (np.float64, ROWS_IN_DOUBLES)
    block_bytes = min(max(32 * width * width, BLOCK_BYTES), _MOMENT_BYTES)
    blocks = row_blocks(rows.shape[0], width, block_bytes, most_rows)

    def work(parts: Iterator[slice]) -> Integers:
        packed = np.zeros(width * (width + 1) // 2, dtype=np.int64)
        partial, rows_summed = np.zeros((width, width)), 0
        buffer = np.empty((blocks[0].stop if blocks else 0, width), dtype=precision)
        for part in parts:
            block = buffer[: part.stop - part.start]
            residuals(part, block)
            # numpy sees a block times itself and computes one triangle only; unlike scipy's wrappers of
            # BLAS it lets other threads run meanwhile.
            partial += block.T @ block
            rows_summed += len(block)
            if rows_summed >= ROWS_IN_DOUBLES:
                _add_packed(packed, partial)
                partial[:], rows_summed = 0, 0
        _add_packed(packed, partial)
        return packed

    return sum_blocks(work, blocks)


def rows_in_singles(reach: int) -> int:
    """Number of integer rows of norm at most `reach` that can be multiplied in single precision.

    A sum of products of two columns over m rows is an integer of at most m * reach^2, and singles hold every
    integer up to 2^24. The precision follows from this bound alone, never from the rows.
    """
    return (1 << 24) // reach**2


def coarse_radius(radius: int, shift: int, width: int) -> int:
    """In steps of 2^shift the length to which rows are clipped that were no longer than the radius.

    Rounding moves each of `width` entries by at most half a step and lengthens hardly any row by more.
    """
    return radius if shift == 0 else math.isqrt((radius >> shift) ** 2 + width // 4) + 1


def _add_packed(packed: Integers, square: Floats) -> None:
    """Add the upper triangle of a square matrix to its packed form."""
    start = 0
    for i in range(len(square)):
        stop = start + len(square) - i
        packed[start:stop] += square[i, i:].astype(np.int64)
        start = stop
