"""Rows with the nearest of some released centres."""

import math
from dataclasses import dataclass

import numpy as np

from core.arrays import Integers, Labels
from core.data import Chunk
from core.kernels.geometry import nearest
from core.views.base import DerivedView, RowView, checked_points


@dataclass(frozen=True, eq=False)
class Assignment:
    """The nearest centre of each row and the squared distance to it, in the narrowest types for any rows."""

    labels: Labels
    squared: Labels

    @property
    def nbytes(self) -> int:
        return self.labels.nbytes + self.squared.nbytes


@dataclass(frozen=True, eq=False)
class Assigned(DerivedView):
    """Rows with the nearest of some released centres; ties go to the lowest index."""

    base: RowView
    centres: Integers

    def __post_init__(self) -> None:
        object.__setattr__(self, "centres", checked_points(self.centres, self.base.width, "centres"))

    def assignment(self, chunk: Chunk) -> Assignment:
        return self.cached(chunk, lambda: self._assign(chunk))

    def _assign(self, chunk: Chunk) -> Assignment:
        labels, squared = nearest(self.base.rows(chunk), self.centres, self.base.radius)
        reach = self.base.radius + math.isqrt(int((self.centres**2).sum(axis=1).max())) + 1
        return Assignment(
            labels.astype(np.int16) if len(self.centres) <= 1 << 15 else labels,
            squared.astype(np.uint32) if reach < 1 << 16 else squared,
        )
