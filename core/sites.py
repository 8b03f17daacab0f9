"""Public finite sets of sites that centres are chosen from, and the distances of records to them.

Sites are given by their coordinates in the data's units, measured as the domain measures (`euclidean`) or
along the surface of a sphere (`great-circle`: columns are latitude and longitude in degrees), or by a
matrix of distances between sites that records name by number. See `sites.md`.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from core.arithmetic import Integers, integer_sqrt, row_blocks
from core.domain import UNITS, Dense, Domain, Ids
from core.errors import InvalidRequest
from core.source import Chunk
from core.views import View

__all__ = ["SiteDistances", "Sites", "read_sites"]

MOST_SITES = 20_000
MOST_SITES_IN_A_MATRIX = 4_000
EARTH_RADIUS_KM = 6371.0088

Floats = npt.NDArray[np.float64]


def _refuse(message: str) -> InvalidRequest:
    return InvalidRequest(f"sites: {message}", parameter="options.sites")


@dataclass(frozen=True, eq=False)
class Sites:
    """A checked set of public sites; `read_sites` makes one."""

    kind: str
    metric: str
    #: Coordinates in the data's units, or the matrix of distances.
    numbers: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    def to_json(self) -> dict[str, Any]:
        if self.kind == "distances":
            return {"kind": "distances", "matrix": self.numbers.tolist()}
        return {"kind": "coordinates", "metric": self.metric, "points": self.numbers.tolist()}

    @cached_property
    def digest(self) -> str:
        """Names the set; covers every number in it."""
        text = json.dumps(self.to_json(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def centres(self, picked: Integers) -> Floats:
        """The picked sites as centres: their coordinates, or their numbers."""
        if self.kind == "distances":
            return picked.astype(np.float64)[:, None]
        chosen: Floats = self.numbers[picked]
        return chosen


def read_sites(domain: Domain, given: Mapping[str, Any] | None, k: int) -> Sites:
    """The sites of a request, or a refusal that says what is wrong with them."""
    if given is None:
        raise _refuse("give a set of public sites that centres may be chosen from")
    kind = given.get("kind")
    allowed = {"coordinates": {"kind", "metric", "points"}, "distances": {"kind", "matrix"}}
    if kind not in allowed:
        raise _refuse("kind must be coordinates or distances")
    unknown = sorted(set(given) - allowed[kind])
    if unknown:
        raise _refuse(f"there is no field {unknown[0]!r} in sites of kind {kind}")
    sites = _matrix(domain, given) if kind == "distances" else _coordinates(domain, given)
    if len(sites) < k:
        raise _refuse(f"{len(sites)} sites cannot hold k = {k} different centres: give more, or lower k")
    return sites


def _table(given: Mapping[str, Any], field: str, most: int) -> Floats:
    try:
        table = np.array(given.get(field), dtype=np.float64)
    except (TypeError, ValueError):
        table = np.zeros(0)
    if table.ndim != 2 or table.size == 0:
        raise _refuse(f"{field} must be a list of lists of numbers, all of the same length")
    if not np.isfinite(table).all():
        raise _refuse(f"{field} must be finite")
    if len(table) > most:
        raise _refuse(f"at most {most} are possible with {field}")
    return table


def _matrix(domain: Domain, given: Mapping[str, Any]) -> Sites:
    table = _table(given, "matrix", MOST_SITES_IN_A_MATRIX)
    if not isinstance(domain, Ids):
        raise _refuse("a distance matrix is for datasets whose records are site numbers")
    if table.shape[0] != table.shape[1]:
        raise _refuse("the distance matrix must be square")
    if len(table) != domain.count:
        raise _refuse(f"the distance matrix must have one row for each of the {domain.count} sites")
    if table.min() < 0 or np.any(table.diagonal() != 0):
        raise _refuse("distances must be at least zero, and zero from a site to itself")
    if not np.array_equal(table, table.T):
        raise _refuse("the distance matrix must be symmetric")
    if table.max() == 0:
        raise _refuse("at least two sites must lie apart")
    return Sites("distances", "matrix", table)


def _coordinates(domain: Domain, given: Mapping[str, Any]) -> Sites:
    table = _table(given, "points", MOST_SITES)
    metric = given.get("metric", "euclidean")
    if metric not in ("euclidean", "great-circle"):
        raise _refuse("metric must be euclidean or great-circle")
    if not isinstance(domain, Dense):
        raise _refuse("sites with coordinates are for datasets with dense columns")
    if table.shape[1] != domain.dimension:
        raise _refuse(f"points must have {domain.dimension} coordinates each")
    if metric == "great-circle":
        _require_degrees(domain)
    outside = np.flatnonzero(np.abs(domain.decode(domain.encode_points(table)) - table) > _slack(domain))
    if len(outside):
        raise _refuse(f"point {outside[0] // domain.dimension} lies outside the dataset's bounds")
    first: dict[bytes, int] = {}
    for i, row in enumerate(table + 0.0):  # adding zero makes -0.0 and 0.0 one point
        twin = first.setdefault(row.tobytes(), i)
        if twin != i:
            raise _refuse(f"points {twin} and {i} are the same: list each site once")
    return Sites("coordinates", metric, table)


def _slack(domain: Dense) -> Floats:
    """How far a point inside the bounds may move by rounding to encoded units, and a little more."""
    middle = domain.decode(np.zeros((1, domain.dimension)))[0]
    slack: Floats = domain.unit_lengths() * 0.51 + 1e-9 * np.abs(middle)
    return slack


def _require_degrees(domain: Dense) -> None:
    if domain.dimension != 2 or domain.low is None or domain.high is None:
        raise _refuse("great-circle distances need a box of two columns: latitude and longitude in degrees")
    if domain.low[0] < -90 or domain.high[0] > 90 or domain.high[1] - domain.low[1] > 360:
        raise _refuse(
            "great-circle distances need latitudes within -90..90 and longitudes within 360 degrees"
        )


@dataclass(frozen=True, eq=False)
class SiteDistances(View):
    """The distance of each record to every site, as an integer of at most `reach`.

    One step is `unit` of the sites' own measure: encoded units of the domain for `euclidean`, kilometres for
    `great-circle`, the matrix's unit for `distances`.
    """

    domain: str
    sites: Integers
    metric: str
    reach: int
    unit: float
    #: For great-circle distances: each column's cosine and sine for every encoded value.
    tables: Integers | None = None

    @classmethod
    def of(cls, domain: Domain, sites: Sites) -> SiteDistances:
        if isinstance(domain, Ids):
            unit = float(sites.numbers.max()) / UNITS
            steps = np.minimum(np.floor(sites.numbers / unit), UNITS).astype(np.int64)
            return cls(domain.fingerprint, steps, "matrix", UNITS, unit)
        assert isinstance(domain, Dense)
        if sites.metric == "great-circle":
            points, tables = _on_the_sphere(domain, sites)
            unit = EARTH_RADIUS_KM * math.pi / UNITS
            return cls(domain.fingerprint, points, "great-circle", UNITS, unit, tables)
        points = domain.encode_points(sites.numbers)
        return cls(domain.fingerprint, points, "euclidean", _farthest(domain, points), 1.0)

    @property
    def count(self) -> int:
        return len(self.sites)

    def distances(self, rows: npt.NDArray[Any]) -> Integers:
        """One row of distances for each of these encoded records (a chunk's rows, or a slice of them)."""
        if self.metric == "matrix":
            found: Integers = self.sites[rows]
            return found
        if self.metric == "great-circle":
            return _arc_steps(_chords(self._vectors(rows), self.sites))
        return np.minimum(integer_sqrt(_chords(rows, self.sites)), self.reach)

    def between(self, some: Integers) -> Integers:
        """Distances of some of the sites to every site, in steps."""
        if self.metric == "matrix":
            found: Integers = self.sites[some]
            return found
        squared = _chords(self.sites[some], self.sites)
        return _arc_steps(squared) if self.metric == "great-circle" else integer_sqrt(squared)

    def positions(self, rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Integer vectors of encoded records, in the space of `sites`; not for a matrix."""
        return self._vectors(rows) if self.metric == "great-circle" else rows

    def squared_limit(self, steps: int) -> int:
        """The largest squared length, in that space, of a distance of at most this many steps."""
        if steps >= self.reach:
            return 1 << 52  # beyond every squared length there is
        if self.metric == "great-circle":
            return int(_EDGES[steps + 1]) - 1
        return (steps + 1) ** 2 - 1

    def weighted(self, chunk: Chunk) -> tuple[npt.NDArray[Any], Integers]:
        """Encoded records to ask distances of, and how many records of the chunk each stands for."""
        rows = np.asarray(chunk.rows)
        if self.metric == "matrix":
            return np.arange(self.count), np.bincount(rows, minlength=self.count).astype(np.int64)
        return rows, np.ones(len(rows), dtype=np.int64)

    def parts(self, chunk: Chunk) -> list[slice]:
        """Slices of what `weighted` gives, for `payments`."""
        return row_blocks(len(self.weighted(chunk)[0]), self.count)

    def payments(self, chunk: Chunk, part: slice) -> tuple[Floats, Integers]:
        """Distances of a part, with how many records each row of it stands for."""
        rows, weights = self.weighted(chunk)
        return self.distances(rows[part]).astype(np.float64), weights[part]

    def _vectors(self, rows: npt.NDArray[Any]) -> Integers:
        assert self.tables is not None
        latitude, longitude = (np.clip(rows[:, j].astype(np.int64) + UNITS, 0, 2 * UNITS) for j in range(2))
        return _unit_vectors(
            self.tables[0][latitude],
            self.tables[1][latitude],
            self.tables[2][longitude],
            self.tables[3][longitude],
        )


#: Points on the sphere are integers of this length: their squared chords stay below 2^52.
_SPHERE = 1 << 24


def _chords(rows: npt.NDArray[Any], points: Integers) -> Integers:
    """Exact squared distances of rows to points: below 2^52 for norms below 2^25."""
    block, right = rows.astype(np.float64), points.astype(np.float64)
    squared: Floats = block @ (right.T * -2.0)
    squared += np.einsum("ij,ij->i", right, right)
    squared += np.einsum("ij,ij->i", block, block)[:, None]
    return squared.astype(np.int64)


def _unit_vectors(cos_lat: Integers, sin_lat: Integers, cos_lon: Integers, sin_lon: Integers) -> Integers:
    """Points on the sphere; products of two integers of 24 bits, divided exactly and floored."""
    return np.stack([(cos_lat * cos_lon) // _SPHERE, (cos_lat * sin_lon) // _SPHERE, sin_lat], axis=-1)


def _on_the_sphere(domain: Dense, sites: Sites) -> tuple[Integers, Integers]:
    """The sites as points on the sphere, and the tables that records are mapped by."""
    steps = np.arange(-UNITS, UNITS + 1)
    degrees = domain.decode(np.stack([steps, steps], axis=1))
    tables = np.stack([_rounded(f, degrees[:, j]) for j in range(2) for f in (np.cos, np.sin)])
    parts = (_rounded(f, sites.numbers[:, j]) for j in range(2) for f in (np.cos, np.sin))
    return _unit_vectors(*parts), tables


def _rounded(function: Any, degrees: Floats) -> Integers:
    """The function of each angle, as an integer of 24 bits."""
    values: Integers = np.rint(function(np.radians(degrees)) * _SPHERE).astype(np.int64)
    return values


def _edges() -> Integers:
    """The least squared chord that is at least j steps of arc away, for j = 0..UNITS."""
    angles = np.arange(UNITS + 1) * (math.pi / UNITS)
    return np.ceil((2.0 * _SPHERE * np.sin(angles / 2)) ** 2).astype(np.int64)


_EDGES = _edges()


def _arc_steps(chords: Integers) -> Integers:
    """Arcs in steps of pi/UNITS, rounded down: a guess in doubles, settled by integer comparisons."""
    half = np.sqrt(np.minimum(chords / (4.0 * _SPHERE * _SPHERE), 1.0))
    steps = np.clip((np.arcsin(half) * (2 * UNITS / math.pi)).astype(np.int64), 0, UNITS)
    steps -= (steps > 0) & (_EDGES[steps] > chords)
    steps += (steps < UNITS) & (_EDGES[np.minimum(steps + 1, UNITS)] <= chords)
    return steps


def _farthest(domain: Dense, points: Integers) -> int:
    """How far a record inside the bounds can lie from a site, in whole encoded units."""
    if domain.bounds_units is None:
        longest = float(np.sqrt((points.astype(np.float64) ** 2).sum(axis=1)).max()) + UNITS
    else:
        low, high = domain.bounds_units
        away = np.maximum(np.abs(points - low), np.abs(points - high))
        longest = float(np.sqrt((away**2).sum(axis=1)).max())
    return math.ceil(min(longest, 2.0 * UNITS + 2 * math.sqrt(domain.dimension)))
