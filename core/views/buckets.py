"""Buckets of a locality-sensitive hash: cells of a rotated and shifted grid."""

import math
from dataclasses import dataclass

import numpy as np

from core.arrays import Integers
from core.data import Chunk
from core.kernels.geometry import cell_numbers, numbered_cells
from core.kernels.sparse_counts import LARGEST_FAMILY
from core.views.base import DerivedView, RowView


@dataclass(frozen=True, eq=False)
class Buckets(DerivedView):
    """The bucket of each row: floor((row + shift) / width) by coordinate, as one number.

    The base is rows that were rotated at random; `shift` is random in [0, width). Rows have norms of at most
    the base's radius, so coordinates run from -half to half, whatever the data.
    """

    base: RowView
    shift: Integers
    width: int

    def __post_init__(self) -> None:
        if self.width < 1 or self.shift.shape != (self.base.width,) or self.shift.dtype.kind != "i":
            raise ValueError("buckets have a width of at least one and an integer shift for each coordinate")
        if self.shift.min() < 0 or self.shift.max() >= self.width:
            raise ValueError("a shift lies between zero and the width of a bucket")
        if self.family > LARGEST_FAMILY:
            raise ValueError("there are too many buckets: make them wider")

    @property
    def half(self) -> int:
        return -(-(self.base.radius + self.width) // self.width)

    @property
    def family(self) -> int:
        """Number of buckets."""
        return int((2 * self.half + 1) ** self.base.width)

    def numbers(self, chunk: Chunk) -> Integers:
        """The bucket of each record of a chunk."""
        rows = np.asarray(self.base.rows(chunk)).astype(np.int64)
        return cell_numbers((rows + self.shift) // self.width, self.half)

    def middles(self, numbers: Integers) -> Integers:
        """The middles of some buckets, in the units of the base."""
        cells = numbered_cells(numbers, self.half, self.base.width)
        return cells * self.width - self.shift + self.width // 2

    @property
    def radius(self) -> int:
        """Bound on the distance of a bucket's rows from its middle."""
        return max(1, math.ceil(math.sqrt(self.base.width) * (self.width // 2 + 1)))
