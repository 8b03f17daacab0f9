"""The kernels by a body of `cairn-dp-kernels`, which returns the integers of numpy's.

Each method has the parameters of the kernel whose name it bears, and returns None where types do
not fit, or where the bounds that `exactness.md` of that distribution asks for do not hold. Both follow from
public and released numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Labels, Rows
from core.kernels.accumulate import ROWS_IN_DOUBLES
from core.kernels.clipping import WEIGHT_BITS, WEIGHT_ONE
from core.kernels.counting import TABLE_BITS, bin_ends, lookup_table
from core.kernels.geometry import distance_types, with_constants
from core.kernels.paths import PathTables
from core.kernels.rows import row_blocks
from core.kernels.threads import share_blocks, sum_blocks

#: Rows of a block: what a thread does between two that it fetches.
_MOST_ROWS = 1 << 16
#: Bytes of a block, counted as doubles.
_BLOCK_BYTES = 1 << 24
#: The squares of distances up to this one are below 2^33.
_FARTHEST = 92_681
#: Squared norms of projected rows stay exact in doubles below the square of this.
_LONGEST_PROJECTED = 1 << 26
#: From more columns on BLAS multiplies faster.
_MOST_MOMENT_COLUMNS = 128
#: Up to this number of cells is counted in several tables.
_FEW_CELLS = 1 << 14
#: Number of those tables, a power of two.
_COPIES = 4


class CompiledKernels:
    """Blocks of rows are shared among threads as in numpy's kernels; a body computes each block."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def nearest(self, rows: Rows, centres: Integers, reach: int) -> tuple[Labels, Labels] | None:
        kinds = distance_types(centres, reach)
        longest = math.isqrt(int(np.einsum("ij,ij->i", centres, centres).max())) + 1
        narrow_centres = np.abs(centres).max() < 1 << 15 and reach + longest <= _FARTHEST
        if not _fits(rows, np.int16, 2) or kinds != (np.int16, np.uint32) or not narrow_centres:
            return None
        narrow = np.ascontiguousarray(centres, dtype=np.int16)
        labels, squared = (np.empty(len(rows), dtype=kind) for kind in kinds)

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                self._body.nearest(rows[part], narrow, reach, labels[part], squared[part])

        share_blocks(work, _blocks(rows))
        return labels, squared

    def project(
        self, rows: Rows, matrix: Integers, centre: Integers | None, radius: int, reach: int
    ) -> npt.NDArray[np.int16] | None:
        offset = 0.0 if centre is None else float(np.linalg.norm(centre.astype(np.float64)))
        longest = (reach + offset) * float(np.linalg.norm(matrix.astype(np.float64))) / WEIGHT_ONE
        if not _fits(rows, np.int16, 2) or radius >= 1 << 15 or 1.01 * longest >= _LONGEST_PROJECTED:
            return None
        right = _filled_up(with_constants(matrix, centre))
        out = np.empty((len(rows), matrix.shape[1]), dtype=np.int16)

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                self._body.project(rows[part], right, radius, out[part])

        share_blocks(work, _blocks(rows))
        return out

    def column_sums(self, rows: Rows) -> Integers | None:
        if not _fits(rows, np.int16, 2):
            return None
        together = np.zeros(min(len(rows), _MOST_ROWS), dtype=np.int16)
        ones = np.ones(len(together), dtype=np.int32)

        def labels_and_weights(part: slice) -> tuple[Labels, Labels]:
            count = part.stop - part.start
            return together[:count], ones[:count]

        summed: Integers = self._grouped_sums(rows, labels_and_weights, 1)[0][0]
        return summed

    def weighted_sums(self, rows: Rows, labels: Labels, weights: Integers, groups: int) -> Integers | None:
        if not _fits(rows, np.int16, 2) or not _fits(labels, np.int16, 1):
            return None

        def labels_and_weights(part: slice) -> tuple[Labels, Labels]:
            return labels[part], weights[part].astype(np.int32)

        return self._grouped_sums(rows, labels_and_weights, groups)[0]

    def clipped_sums(
        self, rows: Rows, labels: Labels, squared: Labels, radii: Integers, centres: Integers
    ) -> Integers | None:
        narrow = _fits(labels, np.int16, 1) and _fits(squared, np.uint32, 1)
        if not _fits(rows, np.int16, 2) or not narrow:
            return None
        limits = radii.astype(np.int64) << WEIGHT_BITS
        allowed, limits_in_doubles = (limits * limits).astype(np.uint64), limits.astype(np.float64)

        def labels_and_weights(part: slice) -> tuple[Labels, Labels]:
            weights = np.empty(part.stop - part.start, dtype=np.int32)
            self._body.clip_weights(labels[part], squared[part], limits_in_doubles, allowed, weights)
            return labels[part], weights

        sums, mass = self._grouped_sums(rows, labels_and_weights, len(radii))
        residuals: Integers = sums - mass[:, None] * centres
        return residuals

    def _grouped_sums(
        self, rows: Any, labels_and_weights: Callable[[slice], tuple[Labels, Labels]], groups: int
    ) -> tuple[Integers, Integers]:
        """For each group the sum of weight * row, and of weights: at most 2^30 for each of 2^30 rows."""
        cells = groups * rows.shape[1]

        def work(parts: Iterator[slice]) -> Integers:
            total = np.zeros(cells + groups, dtype=np.int64)
            for part in parts:
                self._body.grouped_sums(rows[part], *labels_and_weights(part), total[:cells], total[cells:])
            return total

        total = sum_blocks(work, _blocks(rows))
        return total[:cells].reshape(groups, -1), total[cells:]

    def second_moments(self, rows: Rows, centre: Integers, radius: int, shift: int = 0) -> Integers | None:
        width = rows.shape[1]
        if not _fits(rows, np.int16, 2) or width > _MOST_MOMENT_COLUMNS or shift:
            return None
        middle = _filled_up(centre.astype(np.float64)[None, :])

        def work(parts: Iterator[slice]) -> Integers:
            total = np.zeros((width, middle.shape[1]), dtype=np.int64)
            partial, rows_summed = np.zeros(total.shape), 0
            for part in parts:
                self._body.second_moments(rows[part], middle, radius, partial)
                rows_summed += part.stop - part.start
                if rows_summed >= ROWS_IN_DOUBLES:  # a block adds at most as many rows again
                    total += partial.astype(np.int64)
                    partial[:], rows_summed = 0, 0
            return total + partial.astype(np.int64)

        packed: Integers = sum_blocks(work, _blocks(rows))[np.triu_indices(width)]
        return packed

    def bin_counts(self, labels: Labels, values: Labels, limits: Integers, groups: int) -> Integers | None:
        if not _fits(labels, np.int16, 1) or not _fits(values, np.uint32, 1):
            return None
        ends = bin_ends(limits, values.dtype)

        def count(part: slice, tables: Labels) -> None:
            self._body.bin_counts(labels[part], values[part], ends, tables)

        return _counts(count, len(labels), groups * len(limits)).reshape(groups, -1)

    def value_counts(self, values: Labels, shift: int, listed: Integers, bits: int) -> Integers | None:
        if not _fits(values, np.int32, 1) or bits > TABLE_BITS:
            return None
        table = lookup_table(listed, bits)

        def count(part: slice, tables: Labels) -> None:
            self._body.value_counts(values[part], shift, table, tables)

        return _counts(count, len(values), len(listed) + 1)[:-1]

    def path_codes(self, rows: Rows, tables: PathTables) -> Labels | None:
        if not _fits(rows, np.int16, 2) or not _fits(tables.bits, np.int32, 2):
            return None
        codes = np.empty(len(rows), dtype=np.int32)

        def work(parts: Iterator[slice]) -> None:
            for part in parts:
                self._body.path_codes(rows[part], tables.axes, tables.bits, codes[part])

        share_blocks(work, _blocks(rows))
        return codes


def _fits(array: Any, kind: type[np.generic], dimensions: int) -> bool:
    """Whether an array is dense, of this type, and stored row by row without gaps."""
    return (
        isinstance(array, np.ndarray)
        and array.dtype == kind
        and array.ndim == dimensions
        and array.flags.c_contiguous
    )


def _blocks(rows: Any) -> list[slice]:
    return row_blocks(rows.shape[0], rows.shape[1], _BLOCK_BYTES, _MOST_ROWS)


def _filled_up(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The matrix with columns of zeros up to a multiple of eight."""
    filled = np.zeros((len(matrix), 8 * math.ceil(matrix.shape[1] / 8)))
    filled[:, : matrix.shape[1]] = matrix
    return filled


def _counts(count: Callable[[slice, Labels], None], records: int, cells: int) -> Integers:
    """Number of records in each cell; `count` adds those of a slice to some tables, which are added up."""

    def work(parts: Iterator[slice]) -> Integers:
        tables = np.zeros((_COPIES if cells <= _FEW_CELLS else 1, cells), dtype=np.uint32)
        for part in parts:
            count(part, tables)
        total: Integers = tables.sum(axis=0, dtype=np.int64)
        return total

    return sum_blocks(work, row_blocks(records, 1, 8 * _MOST_ROWS))
