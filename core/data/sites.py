"""Public sets of sites that centres are chosen from, and the checks they must pass.

Sites are given by their coordinates in the data's units, measured as the domain measures (`euclidean`) or
along the surface of a sphere (`great-circle`: columns are latitude and longitude in degrees), or by a
matrix of distances between sites that records name by number. See `sites.md`.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.arrays import Floats, Integers
from core.data.dense import Dense
from core.data.domain import Domain, Ids
from core.errors import InvalidRequest

MOST_SITES = 20_000
MOST_SITES_IN_A_MATRIX = 4_000


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
        """SHA-256 of the set: covers every number in it."""
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
