"""Distances of records to public or released points: to candidates, or to sites."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arrays import Floats, Integers
from core.data import UNITS, Chunk, Dense, Domain, Ids, Sites
from core.kernels.geometry import floor_sqrt, integer_sqrt, squared_distances
from core.kernels.rows import row_blocks
from core.kernels.sphere import ARC_EDGES, angle_tables, arc_steps, unit_vectors
from core.views.base import Parametrised, RowView, View, require_in_ball


@dataclass(frozen=True, eq=False)
class CandidateDistances(Parametrised):
    """Squared distances, or distances rounded down, of a view's rows to candidates inside its ball."""

    view: RowView
    candidates: Integers
    objective: str

    def __post_init__(self) -> None:
        require_in_ball(self.candidates, self.view, "candidates")
        if self.objective not in ("means", "medians"):
            raise ValueError("losses are of means or of medians")

    @property
    def domain(self) -> str:
        return self.view.domain

    @property
    def count(self) -> int:
        return len(self.candidates)

    @property
    def reach(self) -> int:
        return 4 * self.view.radius**2 if self.objective == "means" else 2 * self.view.radius

    def parts(self, chunk: Chunk) -> list[slice]:
        """Parts for `payments`, of a size that fits the processor's cache."""
        return row_blocks(len(chunk), self.count + (0 if sp.issparse(chunk.rows) else self.view.width))

    def payments(self, chunk: Chunk, part: slice) -> tuple[Floats, Integers]:
        """The payments of a part, from 0 to `reach`, and how many records each row represents."""
        squared = squared_distances(self.view.rows(chunk)[part], self.candidates)
        if self.objective == "medians":
            squared = floor_sqrt(squared)
        return squared, np.ones(len(squared), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SiteDistances(View):
    """The distance of each record to every site, as an integer of at most `reach`.

    One step is an encoded unit of the domain for `euclidean`, pi / UNITS of arc for `great-circle`, and the
    largest distance over UNITS for a matrix.
    """

    domain: str
    sites: Integers
    metric: str
    reach: int
    #: For great-circle distances: each column's cosine and sine for every encoded value.
    tables: Integers | None = None

    @classmethod
    def of(cls, domain: Domain, sites: Sites) -> Self:
        if isinstance(domain, Ids):
            unit = float(sites.numbers.max()) / UNITS
            steps = np.minimum(np.floor(sites.numbers / unit), UNITS).astype(np.int64)
            return cls(domain.fingerprint, steps, "matrix", UNITS)
        assert isinstance(domain, Dense)
        if sites.metric == "great-circle":
            steps = np.arange(-UNITS, UNITS + 1)
            tables = angle_tables(domain.decode(np.stack([steps, steps], axis=1)))
            points = unit_vectors(*angle_tables(sites.numbers))
            return cls(domain.fingerprint, points, "great-circle", UNITS, tables)
        points = domain.encode_points(sites.numbers)
        return cls(domain.fingerprint, points, "euclidean", sites.reach(domain))

    @property
    def count(self) -> int:
        return len(self.sites)

    def distances(self, rows: npt.NDArray[Any]) -> Integers:
        """One row of distances for each of these encoded records (a chunk's rows, or a slice of them)."""
        if self.metric == "matrix":
            found: Integers = self.sites[rows]
            return found
        return np.minimum(self._steps(self.positions(rows)), self.reach)

    def between(self, some: Integers) -> Integers:
        """Distances of some of the sites to every site, in steps."""
        return self.distances(some) if self.metric == "matrix" else self._steps(self.sites[some])

    def _steps(self, points: npt.NDArray[Any]) -> Integers:
        """Distances in steps of integer vectors in the space of `sites` to each of them."""
        exact = squared_distances(points, self.sites).astype(np.int64)
        return arc_steps(exact) if self.metric == "great-circle" else integer_sqrt(exact)

    def positions(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Integer vectors of encoded records, in the space of `sites`; not for a matrix."""
        if self.tables is None:
            return rows
        latitude, longitude = (np.clip(rows[:, j].astype(np.int64) + UNITS, 0, 2 * UNITS) for j in range(2))
        return unit_vectors(*self.tables[:2, latitude], *self.tables[2:, longitude])

    def squared_limit(self, steps: int) -> int:
        """The largest squared length, in that space, of a distance of at most this many steps."""
        if steps >= self.reach:
            return 1 << 52  # larger than any squared length
        if self.metric == "great-circle":
            return int(ARC_EDGES[steps + 1]) - 1
        return (steps + 1) ** 2 - 1

    def weighted(self, chunk: Chunk) -> tuple[npt.NDArray[Any], Integers]:
        """Encoded records to compute distances of, and how many records of the chunk each represents."""
        rows = np.asarray(chunk.rows)
        if self.metric == "matrix":
            return np.arange(self.count), np.bincount(rows, minlength=self.count).astype(np.int64)
        return rows, np.ones(len(rows), dtype=np.int64)

    def parts(self, chunk: Chunk) -> list[slice]:
        return row_blocks(len(self.weighted(chunk)[0]), self.count)

    def payments(self, chunk: Chunk, part: slice) -> tuple[Floats, Integers]:
        rows, weights = self.weighted(chunk)
        return self.distances(rows[part]).astype(np.float64), weights[part]


#: The payment of each record for each of `count` public or released candidates: whole numbers up to `reach`.
Distances = CandidateDistances | SiteDistances
