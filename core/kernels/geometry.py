"""Exact norms, projections and distances of integer rows."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arrays import Floats, Integers, Labels, Rows
from core.kernels.backend import kernel
from core.kernels.clipping import WEIGHT_ONE, clip_weights, clipped_block
from core.kernels.rows import FloatBlocks, as_floats, row_blocks, widest
from core.kernels.threads import share_blocks

#: Centres to which distances are computed at once.
_MOST_CENTRES = 1 << 12


def block_norms(block: npt.NDArray[np.floating[Any]] | sp.csr_array) -> Integers:
    """Exact squared norms of a block, below 2^53 in doubles and below 2^24 in singles."""
    if isinstance(block, sp.csr_array):
        return np.asarray(block.power(2).sum(axis=1)).ravel().astype(np.int64)
    squared: Integers = np.einsum("ij,ij->i", block, block).astype(np.int64)
    return squared


@kernel
def project(
    rows: Rows, matrix: Integers, centre: Integers | None, radius: int, reach: int
) -> npt.NDArray[np.int16] | npt.NDArray[np.int32]:
    """(rows - centre) @ matrix / WEIGHT_ONE, truncated towards zero and clipped to the radius.

    Norms of rows are at most `reach`, and below 2^17. |row . column| <= |row| |column| < 2^17 * 2^29, and a
    division by a power of two is exact. Squared norms of the products are below 2^62
    (`core.views.rows.LARGEST_MATRIX`). The result is int16 where the radius allows it: such views are kept
    for many passes.
    """
    width, columns = matrix.shape
    right = with_constants(matrix, centre)
    out = np.empty((rows.shape[0], columns), dtype=np.int16 if radius < 1 << 15 else np.int32)

    def work(parts: Iterator[slice]) -> None:
        for part, block in FloatBlocks(rows, parts, one=True):
            if isinstance(block, sp.csr_array):
                product = np.asarray(block @ right[:width]) + right[width]
            else:
                product = block @ right
            np.trunc(product, out=product)
            out[part] = clipped_block(product, block_norms(product), radius)

    share_blocks(work, row_blocks(rows.shape[0], widest(rows, columns)))
    return out


def with_constants(matrix: Integers, centre: Integers | None) -> Floats:
    """The matrix over WEIGHT_ONE, and a last row by which (row - centre) @ matrix is (row, 1) @ this."""
    right = np.zeros((matrix.shape[0] + 1, matrix.shape[1]))
    right[:-1] = matrix
    if centre is not None:
        right[-1] = -(centre.astype(np.float64) @ right[:-1])
    right *= 1.0 / WEIGHT_ONE
    return right


def clip_rows(rows: Rows, radius: int) -> Rows:
    """Return the rows with those longer than the radius clipped to it; not copied where there are none.

    Rows that a domain encoded are never longer. This is for rows that come from storage: the noise is
    calibrated to the radius, so it must hold whatever was read.
    """
    squared = np.concatenate([np.zeros(0, np.int64), *(block_norms(b) for _, b in _float_blocks(rows))])
    if not np.any(squared > radius * radius):
        return rows
    weights = clip_weights(squared, radius) * (1.0 / WEIGHT_ONE)
    if isinstance(rows, sp.csr_array):
        values = np.trunc(rows.data * np.repeat(weights, np.diff(rows.indptr)))
        return sp.csr_array((values.astype(rows.dtype), rows.indices, rows.indptr), shape=rows.shape)
    clipped = np.empty_like(rows)
    for part, block in _float_blocks(rows):
        clipped[part] = np.trunc(block * weights[part, None])
    return clipped


def _float_blocks(rows: Rows) -> FloatBlocks:
    return FloatBlocks(rows, iter(row_blocks(rows.shape[0], rows.shape[1])))


class _Scoring:
    """Finds the nearest of some centres by scores |c|^2 - 2 x.c, with the centre's number in the low bits.

    The least `score * unit + number` gives both; among equal scores, real ties, the lowest number wins.
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
    """Number of centres whose index fits below their score, for rows of norm at most `reach`: a power of two.

    |score| <= |c|^2 + 2 |x| |c| and all partial sums; with the number below it stays below 2^53.
    """
    longest = int(np.einsum("ij,ij->i", centres, centres).max())
    bound = longest + 2 * reach * (math.isqrt(longest) + 1) + 1
    return min(_MOST_CENTRES, 1 << max(0, ((1 << 53) // bound).bit_length() - 1))


def distance_types(
    centres: Integers, reach: int
) -> tuple[type[np.signedinteger[Any]], type[np.integer[Any]]]:
    """The narrowest types for the index of a centre, and for the squared distance of any row within `reach`.

    The nearest centre is no farther than the one with the shortest norm, thus than `reach` and that norm.
    """
    shortest = math.isqrt(int(np.einsum("ij,ij->i", centres, centres).min())) + 1
    return (
        np.int16 if len(centres) <= 1 << 15 else np.int32,
        np.uint32 if reach + shortest < 1 << 16 else np.int64,
    )


@kernel
def nearest(rows: Rows, centres: Integers, reach: int) -> tuple[Labels, Labels]:
    """The index of the nearest centre (ties to the lowest) and the exact squared distance to it.

    Norms of rows are at most `reach`, and they and those of the centres below 2^25: distances are exact.
    """
    label_type, squared_type = distance_types(centres, reach)
    labels = np.empty(rows.shape[0], dtype=label_type)
    squared = np.empty(rows.shape[0], dtype=squared_type)
    step = _centres_at_once(centres, reach)
    groups = [(first, _Scoring(centres[first : first + step])) for first in range(0, len(centres), step)]

    def work(parts: Iterator[slice]) -> None:
        for part, block in FloatBlocks(rows, parts, one=True):
            score, label = groups[0][1].best(block)
            for first, group in groups[1:]:
                other, number = group.best(block)
                label = np.where(other < score, first + number, label)
                score = np.minimum(score, other)
            labels[part] = label
            score += block_norms(block if isinstance(block, sp.csr_array) else block[:, :-1])
            squared[part] = score

    share_blocks(work, row_blocks(rows.shape[0], widest(rows, min(len(centres), step))))
    return labels, squared


def integer_sqrt(squared: Integers) -> Integers:
    """The largest integers whose squares do not exceed `squared` (below 2^52)."""
    return floor_sqrt(squared.astype(np.float64)).astype(np.int64)


def floor_sqrt(squared: Floats) -> Floats:
    """Replace whole numbers below 2^52 by their square roots, rounded down, in place.

    Square roots are correctly rounded. That of m^2 - 1 is below m - 1/(2m), and for m up to 2^26 there is a
    double between that and m: no root is rounded up to the next whole number.
    """
    np.sqrt(squared, out=squared)
    return np.floor(squared, out=squared)


def squared_distances(rows: Rows | Integers, points: Integers) -> Floats:
    """Exact squared distances of integer rows to integer points: below 2^52 for norms below 2^25."""
    block, right = as_floats(rows), points.astype(np.float64)
    squared: Floats = np.asarray(block @ (right.T * -2.0))
    squared += np.einsum("ij,ij->i", right, right)
    squared += block_norms(block)[:, None]
    return squared


def cell_numbers(cells: Integers, half: int) -> Integers:
    """The numbers of grid cells, given by coordinates from -half to half along the last axis."""
    numbers = np.zeros(cells.shape[:-1], dtype=np.int64)
    for axis in range(cells.shape[-1]):
        numbers = numbers * (2 * half + 1) + (cells[..., axis] + half)
    return numbers


def numbered_cells(numbers: Integers, half: int, width: int) -> Integers:
    """The coordinates of grid cells, given by their numbers."""
    rest, columns = np.asarray(numbers, dtype=np.int64), []
    for _ in range(width):
        rest, column = np.divmod(rest, 2 * half + 1)
        columns.append(column)
    return np.stack(columns[::-1], axis=-1) - half
