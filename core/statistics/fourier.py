"""Fourier sums: cosines and sines of rows at some frequencies, summed over rows."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.kernels.fourier import AMPLITUDE, fourier_sums
from core.privacy.sensitivity import Sensitivity
from core.statistics.base import Statistic
from core.views import LONGEST_COLUMN, RowView


@dataclass(frozen=True, eq=False)
class FourierSums(Statistic):
    """The sums of AMPLITUDE cos and AMPLITUDE sin of a row's phases, all cosines first, as one block.

    A column of `matrix` is a frequency: the phase of a row is its product with the column over 2^15, in steps
    of which `core.kernels.fourier.TURN` make a whole turn.
    """

    kind: ClassVar[str] = "fourier-sums"
    view: RowView
    matrix: Integers

    def __post_init__(self) -> None:
        if self.matrix.ndim != 2 or self.matrix.shape[0] != self.view.width or self.matrix.dtype.kind != "i":
            raise ValueError("frequencies are an integer matrix with one row per column of the view")
        if self.matrix.size == 0 or _longest(self.matrix) > LONGEST_COLUMN:
            raise ValueError("there is at least one frequency, and none is too high for exact phases")

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, 2 * self.matrix.shape[1])

    @property
    def length(self) -> int:
        """The norm that a record's vector does not exceed: sqrt(frequencies) * AMPLITUDE, rounded up."""
        return math.isqrt(self.matrix.shape[1] * AMPLITUDE**2 - 1) + 1

    @property
    def sensitivity(self) -> Sensitivity:
        return Sensitivity(np.array([float(self.length)]), l1=math.sqrt(self.shape[1]))

    def of(self, chunk: Chunk) -> Integers:
        return fourier_sums(self.view.rows(chunk), self.matrix).reshape(1, -1)


def _longest(matrix: Integers) -> float:
    return float(np.sqrt((matrix.astype(np.float64) ** 2).sum(axis=0)).max())
