"""Exact sums of cosines and sines of rows: each row adds integers looked up by its integer phases."""

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Rows
from core.kernels.clipping import WEIGHT_ONE
from core.kernels.rows import FloatBlocks, row_blocks
from core.kernels.threads import sum_blocks

#: Steps of a whole turn.
TURN = 1 << 12
#: The length of a cosine and its sine, as a vector of integers.
AMPLITUDE = 1 << 12
#: Bits of the sines in a packed number.
_HALF = 32


@lru_cache(maxsize=1)
def trigonometric_table() -> npt.NDArray[np.int16]:
    """For each phase of a turn its cosine and its sine, times `AMPLITUDE`, truncated towards zero.

    Their squares add up to at most the square of `AMPLITUDE`: truncation shortens, and rounding of doubles
    cannot lengthen a vector of integers by less than one.
    """
    angles = np.arange(TURN) * (2 * np.pi / TURN)
    table: npt.NDArray[np.int16] = np.trunc(AMPLITUDE * np.stack([np.cos(angles), np.sin(angles)])).astype(
        np.int16
    )
    return table


@lru_cache(maxsize=1)
def _packed_table() -> npt.NDArray[np.int64]:
    """Both numbers of each phase in one, so that a row looks up a single number for each frequency."""
    cosines, sines = trigonometric_table().astype(np.int64)
    packed: npt.NDArray[np.int64] = (cosines << _HALF) + sines
    return packed


def fourier_sums(rows: Rows, matrix: Integers) -> Integers:
    """Sums over rows of the cosines (first row) and sines (second) at their phases, one for each column.

    The phase of a row is floor(row @ column / WEIGHT_ONE), in steps of a turn. |row . column| < 2^17 * 2^33
    for columns of norm below 2^33, and a division by a power of two is exact. A block has at most 2^18 rows:
    its sums stay below 2^30, so that packed ones fit into 64 bits and come apart again.
    """
    right = matrix.astype(np.float64) * (1.0 / WEIGHT_ONE)
    table = _packed_table()

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros((2, matrix.shape[1]), dtype=np.int64)
        for _, block in FloatBlocks(rows, parts):
            products = np.asarray(block @ right)
            phases = np.floor(products, out=products).astype(np.int64)
            phases &= TURN - 1
            packed = table.take(phases).sum(axis=0)
            sines = ((packed + (1 << _HALF - 1)) & ((1 << _HALF) - 1)) - (1 << _HALF - 1)
            total += (packed - sines) >> _HALF, sines
        return total

    return sum_blocks(work, row_blocks(rows.shape[0], matrix.shape[1]))
