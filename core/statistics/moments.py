"""Second moments of clipped residuals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from core.arrays import Integers
from core.data import UNITS, Chunk
from core.kernels.accumulate import coarse_radius, second_moments
from core.privacy import Sensitivity
from core.views import RowView


@dataclass(frozen=True, eq=False)
class SecondMoments:
    """The sum of z z^T, z = row - centre clipped to `radius`, as its packed upper triangle.

    With a shift z is rounded to steps of 2^shift, and clipped once more: coarse rows are multiplied faster.
    A record's vector of diagonal entries and sqrt(2) times the others has norm |z|^2 <= `steps`^2.
    """

    kind: ClassVar[str] = "second-moments"
    view: RowView
    centre: Integers
    radius: int
    shift: int = 0

    def __post_init__(self) -> None:
        if self.centre.shape != (self.view.width,) or self.centre.dtype.kind != "i":
            raise ValueError("the centre of second moments is one integer row")
        if not 1 <= self.radius <= 2 * UNITS:
            raise ValueError("a clipping radius lies between 1 and the diameter of the domain")
        if not 0 <= self.shift <= 15 or self.radius >> self.shift == 0:
            raise ValueError("steps are powers of two of at most the clipping radius")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def shape(self) -> tuple[int, ...]:
        return (1, self.view.width * (self.view.width + 1) // 2)

    @property
    def steps(self) -> int:
        """What z is clipped to, in its own steps."""
        return coarse_radius(self.radius, self.shift, self.view.width)

    @property
    def sensitivity(self) -> Sensitivity:
        width = self.view.width
        rows, columns = np.triu_indices(width)
        scales = np.where(rows == columns, 1.0, math.sqrt(0.5)) * float(self.steps) ** 2
        return Sensitivity(scales[None, :], l1=float(width))

    def of(self, chunk: Chunk) -> Integers:
        return second_moments(self.view.rows(chunk), self.centre, self.radius, self.shift)[None, :]
