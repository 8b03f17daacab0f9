"""Views of rows: encoded, projected, or cut to some columns or to their largest entries."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from core.arrays import Integers, Rows
from core.data import UNITS, Chunk, Dense, Domain, Geometry, Sparse
from core.kernels.clipping import WEIGHT_ONE, top_entries
from core.kernels.geometry import project
from core.views.base import DerivedView, RowView, checked_points, require_clipping, require_increasing
from core.views.table import TableRows


@dataclass(frozen=True, eq=False)
class Encoded(RowView):
    """The root of every view: the encoded rows themselves."""

    domain: str
    width: int
    sparse: bool = False
    radius: int = UNITS

    @classmethod
    def of(cls, domain: Domain) -> RowView:
        """The rows of a domain; those of a table come from its geometry."""
        if isinstance(domain, Geometry):
            return TableRows(domain)
        if not isinstance(domain, (Dense, Sparse)):
            raise ValueError("only dense and sparse domains have rows of numbers")
        return cls(domain.fingerprint, domain.dimension, isinstance(domain, Sparse))

    def rows(self, chunk: Chunk) -> Rows:
        return chunk.rows


#: Longest column of a matrix that rows are multiplied by, so that products stay exact.
LONGEST_COLUMN = 2.0**31
#: Largest Frobenius norm of a projection's matrix, so that squared norms of projected rows stay below 2^62:
#: |x M / 2^15|^2 <= |x|^2 |M|^2 / 2^30 with |x| < 2^17. `clip_weights` needs that.
LARGEST_MATRIX = 2.0**29


@dataclass(frozen=True, eq=False)
class Projected(DerivedView, RowView):
    """(rows - centre) @ matrix / 2^15, truncated towards zero and clipped to `radius`."""

    base: RowView
    matrix: Integers
    radius: int
    centre: Integers | None = None

    def __post_init__(self) -> None:
        if self.matrix.shape[0] != self.base.width or self.matrix.dtype.kind != "i":
            raise ValueError("a projection is an integer matrix with one row per column of its base")
        if np.linalg.norm(self.matrix.astype(np.float64)) > LARGEST_MATRIX:
            raise ValueError("the matrix of a projection is too large: squared norms would overflow")
        require_clipping(self.radius, self.radius)
        if self.centre is not None:
            object.__setattr__(self, "centre", checked_points(self.centre, self.base.width, "centre", 1))

    @property
    def width(self) -> int:  # type: ignore[override]  # as above
        return int(self.matrix.shape[1])

    @cached_property
    def _keeps_rows(self) -> bool:
        """Whether a row comes out as it went in: nothing is computed then, and nothing kept twice."""
        unmoved = self.centre is None or not self.centre.any()
        reaches = self.base.radius <= self.radius and self.radius < 1 << 15
        return unmoved and reaches and np.array_equal(self.matrix, np.eye(self.base.width) * WEIGHT_ONE)

    def rows(self, chunk: Chunk) -> Rows:
        if self._keeps_rows and not isinstance(rows := self.base.rows(chunk), sp.csr_array):
            return rows
        return self.cached(
            chunk,
            lambda: project(self.base.rows(chunk), self.matrix, self.centre, self.radius, self.base.radius),
        )


@dataclass(frozen=True, eq=False)
class ChosenColumns(DerivedView, RowView):
    """Some columns of rows, in the order of the rows; what is left of a row is no longer than it was."""

    base: RowView
    chosen: Integers

    def __post_init__(self) -> None:
        require_increasing(self.chosen, "chosen columns")
        if len(self.chosen) == 0 or self.chosen[-1] >= self.base.width:
            raise ValueError("chosen columns are some of those that the rows have, and at least one")

    @property
    def width(self) -> int:  # type: ignore[override]  # as above
        return len(self.chosen)

    @property
    def radius(self) -> int:  # type: ignore[override]  # as above
        return self.base.radius

    def rows(self, chunk: Chunk) -> Rows:
        chosen: Rows = self.base.rows(chunk)[:, self.chosen]
        return chosen


@dataclass(frozen=True, eq=False)
class TopEntries(DerivedView, RowView):
    """Sparse rows cut to their `entries` largest magnitudes (ties to the left), each clipped to `largest`."""

    base: RowView
    entries: int
    largest: int

    def __post_init__(self) -> None:
        if self.entries < 1 or not 1 <= self.largest <= UNITS:
            raise ValueError("at least one entry is kept, clipped to between 1 and the radius of the domain")

    @property
    def width(self) -> int:  # type: ignore[override]  # as above
        return self.base.width

    @property
    def radius(self) -> int:  # type: ignore[override]  # as above
        return self.base.radius

    def rows(self, chunk: Chunk) -> Rows:
        return top_entries(self.base.rows(chunk), self.entries, self.largest)
