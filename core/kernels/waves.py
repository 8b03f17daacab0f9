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


@lru_cache(maxsize=1)
def wave_table() -> npt.NDArray[np.int16]:
    """For each phase of a turn its cosine and its sine, times `AMPLITUDE`, truncated towards zero.

    Their squares add up to at most the square of `AMPLITUDE`: truncation shortens, and rounding of doubles
    cannot lengthen a vector of integers by less than one.
    """
    angles = np.arange(TURN) * (2 * np.pi / TURN)
    table: npt.NDArray[np.int16] = np.trunc(AMPLITUDE * np.stack([np.cos(angles), np.sin(angles)])).astype(
        np.int16
    )
    return table


def wave_sums(rows: Rows, matrix: Integers) -> Integers:
    """Sums over rows of the cosines (first row) and sines (second) at their phases, one for each column.

    The phase of a row is floor(row @ column / WEIGHT_ONE), in steps of a turn. |row . column| < 2^17 * 2^33
    for columns of norm below 2^33, and a division by a power of two is exact.
    """
    right = matrix.astype(np.float64) * (1.0 / WEIGHT_ONE)
    cosines, sines = wave_table()

    def work(parts: Iterator[slice]) -> Integers:
        total = np.zeros((2, matrix.shape[1]), dtype=np.int64)
        for _, block in FloatBlocks(rows, parts):
            phases = np.floor(np.asarray(block @ right)).astype(np.int64) & (TURN - 1)
            total[0] += cosines[phases].sum(axis=0, dtype=np.int64)
            total[1] += sines[phases].sum(axis=0, dtype=np.int64)
        return total

    return sum_blocks(work, row_blocks(rows.shape[0], matrix.shape[1]))
