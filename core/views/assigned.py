"""Rows with the nearest of some released centres."""

from dataclasses import dataclass

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
        return Assignment(*nearest(self.base.rows(chunk), self.centres, self.base.radius))
