"""Views of the rows of a table: in the geometry of a job, or as bins of each column."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.arrays import Integers, Rows
from core.columns.axes import Line
from core.data import UNITS, Chunk, Geometry
from core.views.base import RowView, View


@dataclass(frozen=True, eq=False)
class TableRows(RowView):
    """The rows of a table in the geometry of a job."""

    geometry: Geometry
    radius: int = UNITS

    def __post_init__(self) -> None:
        # No record can be longer than all of its parts at their longest.
        if sum(axis.longest for axis in self.geometry.axes) > self.radius**2:
            raise ValueError("the columns of a geometry reach beyond its radius")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the geometry
        return self.geometry.fingerprint

    @property
    def width(self) -> int:  # type: ignore[override]  # as above
        return self.geometry.dimension

    def rows(self, chunk: Chunk) -> Rows:
        codes = chunk.rows
        assert isinstance(codes, np.ndarray)
        return self.cached(chunk, lambda: self.geometry.rows(codes))


@dataclass(frozen=True, eq=False)
class ColumnBins(View):
    """The bin of each record in each column that lies on a line, the columns divided into even bins."""

    geometry: Geometry
    bins: int

    def __post_init__(self) -> None:
        if self.bins < 1 or not self.lines:
            raise ValueError("there is at least one bin, in at least one column that lies on a line")

    @property
    def domain(self) -> str:  # type: ignore[override]  # derived from the geometry
        return self.geometry.fingerprint

    @property
    def lines(self) -> list[Line]:
        """The axes that are divided."""
        return self.geometry.lines

    def of(self, chunk: Chunk) -> Integers:
        """The bins of each record, one for each column."""
        assert isinstance(chunk.rows, np.ndarray)
        return np.stack([self._bin(chunk.rows[:, line.place], line) for line in self.lines], axis=1)

    def _bin(self, codes: npt.NDArray[np.integer], line: Line) -> Integers:
        last = line.column.codes - 1
        bins: Integers = np.clip(codes, 0, last).astype(np.int64) * self.bins // (last + 1)
        return bins
