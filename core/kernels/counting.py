"""Counts of labels, distances and codes that were derived from rows: passes without products, in threads."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Labels
from core.kernels.backend import kernel
from core.kernels.rows import row_blocks
from core.kernels.threads import sum_blocks

#: Records in a block: few enough for the processor's cache, many enough for numpy.
_BLOCK = 1 << 15
#: Most bins for which comparing values with every limit is faster than searching for the right one.
_FEW_BINS = 64
#: Bits of the longest codes that are looked up in a table.
TABLE_BITS = 20


@kernel
def bin_counts(labels: Labels, values: Labels, limits: Integers, groups: int) -> Integers:
    """For each group the number of its values in each bin: bin b ends at limits[b], the last has no end."""
    bins = len(limits)
    ends = bin_ends(limits, values.dtype)

    def places(part: slice) -> Labels:
        cells = labels[part].astype(np.int64)
        cells *= bins
        if bins <= _FEW_BINS:
            above = np.zeros(len(cells), dtype=np.uint8)
            for end in ends:
                above += (values[part] > end).view(np.uint8)
            cells += above
        else:
            cells += np.searchsorted(ends, values[part], side="left")
        return cells

    return _counts(places, len(labels), groups * bins).reshape(groups, bins)


def bin_ends(limits: Integers, kind: np.dtype[Any]) -> Labels:
    """The last number of each bin but the last one, in the type of the values that are compared with it."""
    # No value exceeds the largest number of its own type.
    ends: Labels = np.minimum(limits[:-1], np.iinfo(kind).max).astype(kind)
    return ends


@kernel
def value_counts(values: Labels, shift: int, listed: Integers, bits: int) -> Integers:
    """Number of values that, shifted to the right, equal each of some increasing numbers below 2^bits."""
    other = len(listed)  # values that are not listed are counted in one more place, which is dropped
    if bits <= TABLE_BITS:
        table = lookup_table(listed, bits)

        def places(part: slice) -> Labels:
            found: Labels = table[values[part] >> shift]
            return found

    else:

        def places(part: slice) -> Labels:
            found = values[part] >> shift
            near = np.searchsorted(listed, found)
            return np.where(listed[np.minimum(near, other - 1)] == found, near, other)

    return _counts(places, len(values), other + 1)[:-1]


def lookup_table(listed: Integers, bits: int) -> npt.NDArray[np.int32]:
    """The place of each number below 2^bits among those listed, in order; others share one more place."""
    table = np.full(1 << bits, len(listed), dtype=np.int32)
    table[listed] = np.arange(len(listed), dtype=np.int32)
    return table


#: A column's place in a row, and the bin of each of its 2^16 values (signed ones as they are stored).
Lookup = tuple[int, Labels]


def histograms(
    rows: Labels, lookups: Sequence[Lookup], widths: Sequence[int], labels: Labels | None, groups: int
) -> Integers:
    """For each group of rows a histogram of each column that is looked up, of these widths, side by side."""
    starts = np.cumsum([0, *widths])

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros((groups, int(starts[-1])), dtype=np.int64)
        for part in parts:
            group = None if labels is None else labels[part].astype(np.int64)
            for (place, table), start, width in zip(lookups, starts, widths, strict=False):
                cells = table[rows[part, place].view(np.uint16)]
                if group is not None:
                    cells = cells + group * width
                counted = np.bincount(cells, minlength=groups * width)
                total[:, start : start + width] += counted.reshape(groups, width)
        return total

    return sum_blocks(work, row_blocks(len(rows), 1, 8 * _BLOCK))


def cell_counts(
    rows: Labels, lookups: Sequence[Lookup], labels: Sequence[Labels], shape: Sequence[int]
) -> Integers:
    """Number of rows in each cell: labels come first, then the bins of columns that are looked up."""

    def places(part: slice) -> Labels:
        cells = np.zeros(part.stop - part.start, dtype=np.int64)
        found = [each[part] for each in labels]
        found += [table[rows[part, place].view(np.uint16)] for place, table in lookups]
        for each, width in zip(found, shape, strict=True):
            cells *= width
            cells += each
        return cells

    return _counts(places, len(rows), math.prod(shape)).reshape(shape)


def _counts(places: Callable[[slice], Labels], records: int, cells: int) -> Integers:
    """Number of records in each cell; `places` returns the cells of a slice of records."""

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros(cells, dtype=np.int64)
        for part in parts:
            total += np.bincount(places(part), minlength=cells)
        return total

    return sum_blocks(work, row_blocks(records, 1, 8 * _BLOCK))
