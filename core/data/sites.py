"""Public sets of sites that centres are chosen from, and the checks they must pass (see `sites.md`)."""

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from core.arrays import Floats, Integers
from core.data.dense import Dense
from core.data.domain import Domain, Ids, Stored
from core.errors import InvalidRequest
from core.kernels.rows import UNITS

MOST_SITES = 20_000
MOST_SITES_IN_A_MATRIX = 4_000


def digest_of(numbers: Floats) -> str:
    """SHA-256 of numbers as little-endian doubles, row by row."""
    return hashlib.sha256(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).hexdigest()


def _refuse(message: str) -> InvalidRequest:
    return InvalidRequest(f"sites: {message}", parameter="options.sites")


@dataclass(frozen=True)
class SiteFacts:
    """The public facts of a set of sites that a plan needs; the digest names the set."""

    #: `euclidean` or `great-circle` for coordinates, `matrix` for distances between sites.
    metric: str
    count: int
    digest: str
    #: The most whole steps that a record can lie from a site; see `SiteDistances`.
    reach: int

    def __len__(self) -> int:
        return self.count

    def facts(self, _domain: Domain | Stored) -> Self:
        return self


@dataclass(frozen=True, eq=False)
class Sites:
    """A checked set of public sites; `read_sites` makes one."""

    metric: str
    #: Coordinates in the data's units, or the matrix of distances.
    numbers: Floats

    def __len__(self) -> int:
        return len(self.numbers)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the numbers as little-endian doubles, row by row."""
        return digest_of(self.numbers)

    def facts(self, domain: Domain | Stored) -> SiteFacts:
        """Describe this set for plans on a domain."""
        return SiteFacts(self.metric, len(self), self.digest, self.reach(domain))

    def reach(self, domain: Domain | Stored) -> int:
        """The most whole steps that a record inside the domain can lie from a site."""
        if not isinstance(domain, Dense) or self.metric != "euclidean":
            return UNITS
        points = domain.encode_points(self.numbers)
        if domain.bounds_units is None:
            longest = float(np.sqrt((points.astype(np.float64) ** 2).sum(axis=1)).max()) + UNITS
        else:
            low, high = domain.bounds_units
            away = np.maximum(np.abs(points - low), np.abs(points - high))
            longest = float(np.sqrt((away**2).sum(axis=1)).max())
        return math.ceil(min(longest, 2.0 * UNITS + 2 * math.sqrt(domain.dimension)))

    def centres(self, picked: Integers) -> Floats:
        """The picked sites as centres: their coordinates, or their numbers."""
        if self.metric == "matrix":
            return picked.astype(np.float64)[:, None]
        chosen: Floats = self.numbers[picked]
        return chosen


def read_sites(domain: Domain | Stored, given: Mapping[str, Any]) -> Sites:
    """Check sites that were sent with a request; a refusal says what is wrong with them."""
    kind = given.get("kind")
    allowed = {"coordinates": {"kind", "metric", "points"}, "distances": {"kind", "matrix"}}
    if kind not in allowed:
        raise _refuse("kind must be coordinates or distances")
    unknown = sorted(set(given) - allowed[kind])
    if unknown:
        raise _refuse(f"there is no field {unknown[0]!r} in sites of kind {kind}")
    return _matrix(domain, given) if kind == "distances" else _coordinates(domain, given)


def choose_sites(
    domain: Domain | Stored, given: Mapping[str, Any] | Sites | SiteFacts | None, k: int
) -> Sites | SiteFacts:
    """The sites of a request: checked ones as they are, others after a check; enough for k centres."""
    if given is None:
        raise _refuse("give a set of public sites that centres may be chosen from")
    sites = given if isinstance(given, Sites | SiteFacts) else read_sites(domain, given)
    if (sites.metric == "matrix") != isinstance(domain, Ids):
        raise _refuse("a matrix of distances is for site numbers, coordinates are for dense columns")
    if isinstance(domain, Ids) and len(sites) != domain.count:
        raise _refuse(f"the distance matrix must have one row for each of the {domain.count} sites")
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


def _matrix(domain: Domain | Stored, given: Mapping[str, Any]) -> Sites:
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
    return Sites("matrix", table)


def _coordinates(domain: Domain | Stored, given: Mapping[str, Any]) -> Sites:
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
    return Sites(metric, table)


def _slack(domain: Dense) -> Floats:
    """Bound on how far rounding to encoded units moves a point inside the bounds."""
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
