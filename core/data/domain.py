"""Kinds of domains: public facts about a dataset, and the one way its rows become integers.

A curator gives them before any row is read: nothing in a domain is ever taken from data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from core.arrays import Floats
from core.data.base import LARGEST_DIMENSION, PublicFacts, positive, whole
from core.data.dense import Dense
from core.data.tables.geometry import Geometry
from core.data.tables.table import Table
from core.errors import InvalidData, InvalidDomain
from core.kernels.clipping import WEIGHT_ONE, clip_weights, into_ball
from core.kernels.geometry import clip_rows
from core.kernels.rows import UNITS


@dataclass(frozen=True, kw_only=True)
class Ids(PublicFacts):
    """Rows that name one of `count` public sites by its number."""

    kind: ClassVar[str] = "ids"
    dimension: ClassVar[int] = 1
    columns: ClassVar[tuple[str, ...]] = ("site",)
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.count, "count", 1, LARGEST_DIMENSION)

    def encode(self, rows: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Site numbers as int32; numbers outside 0..count-1 are clipped to the nearest site."""
        array = np.asarray(rows)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            raise InvalidData("rows must be one column of site numbers")
        if not np.isfinite(array).all() or np.any(array != np.floor(array)):
            raise InvalidData("site numbers must be whole numbers")
        sites: npt.NDArray[np.int32] = np.clip(array, 0, self.count - 1).astype(np.int32)
        return sites

    def decode(self, units: npt.ArrayLike) -> Floats:
        """Centres among sites are the numbers of those sites."""
        return np.clip(np.asarray(units, dtype=np.float64), 0, self.count - 1)


@dataclass(frozen=True, kw_only=True)
class Sparse(PublicFacts):
    """Rows of a CSR matrix inside a ball about the origin."""

    kind: ClassVar[str] = "sparse"
    dimension: int
    radius: float

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.dimension, "dimension", 1, LARGEST_DIMENSION)
        positive(self.radius, "radius")

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(f"x{i}" for i in range(self.dimension))

    def encode(self, rows: Any) -> sp.csr_array:
        """A CSR matrix clipped to the ball, as int16 units truncated towards zero."""
        matrix = sp.csr_array(rows, dtype=np.float64, copy=True)
        if matrix.shape[1] != self.dimension:
            raise InvalidData(f"rows must have {self.dimension} columns")
        matrix.sum_duplicates()
        if not np.isfinite(matrix.data).all():
            raise InvalidData("rows hold missing or infinite values: remove or fill them first")
        counts = np.diff(matrix.indptr)
        values = np.clip(matrix.data, -1e150, 1e150)
        owner = np.repeat(np.arange(matrix.shape[0]), counts)
        for _ in range(2):  # a first pass by the largest entry keeps the squares finite
            largest = np.zeros(matrix.shape[0])
            np.maximum.at(largest, owner, np.abs(values))
            shrink = self.radius / np.maximum(largest, self.radius)
            values = values * shrink[owner]
            norms = np.sqrt(np.bincount(owner, values * values, minlength=matrix.shape[0]))
            values *= (self.radius / np.maximum(norms, self.radius))[owner]
        values = np.trunc(values * (UNITS / self.radius))
        squared = np.bincount(owner, values * values, minlength=matrix.shape[0]).astype(np.int64)
        weights = clip_weights(squared, UNITS)
        values = np.trunc(values * weights[owner] / WEIGHT_ONE)
        encoded = sp.csr_array((values.astype(np.int16), matrix.indices, matrix.indptr), shape=matrix.shape)
        encoded.eliminate_zeros()
        return encoded

    def decode(self, units: npt.ArrayLike) -> Floats:
        return into_ball(np.asarray(units, dtype=np.float64) * (self.radius / UNITS), self.radius)

    def unit_lengths(self) -> Floats:
        return np.full(self.dimension, self.radius / UNITS)


#: What an algorithm clusters in.
Domain = Dense | Sparse | Ids | Geometry
#: What a dataset is stored in.
Stored = Dense | Sparse | Ids | Table


def clip_encoded(rows: Any, site_count: int | None = None) -> Any:
    """Return encoded rows with those outside their domain moved into it; not copied where there are none.

    For rows that were stored: noise is calibrated to the domain, so its limits must hold whatever was read.
    `site_count` is for rows that are site numbers.
    """
    if site_count is None:
        return clip_rows(rows, UNITS)
    inside = not len(rows) or (rows.min() >= 0 and rows.max() < site_count)
    return rows if inside else np.clip(rows, 0, site_count - 1)


def domain_from_json(data: Mapping[str, Any]) -> Stored:
    """The domain that `to_json` described."""
    shared = {"size": data["size"], "rows_per_person": data["rows_per_person"]}
    match data["kind"]:
        case "sparse":
            return Sparse(dimension=data["dimension"], radius=data["radius"], **shared)
        case "ids":
            return Ids(count=data["count"], **shared)
        case "table":
            return Table.from_json(data)
        case "dense":
            columns, bounds = data["columns"], data["bounds"]
            if "box" in bounds:
                box = bounds["box"]
                return Dense.box(box["low"], box["high"], columns, scaling=data["scaling"], **shared)
            ball = bounds["ball"]
            return Dense.ball(ball["radius"], ball["centre"], columns=columns, **shared)
    raise InvalidDomain("a domain is dense, sparse, ids or a table", parameter="kind")
