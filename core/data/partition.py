"""Partitions of records by released centres: public inputs of later questions, named by their digest."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from core.arrays import Floats
from core.columns.line import ranged
from core.data.dense import Dense
from core.data.domain import Stored
from core.data.sites import digest_of
from core.data.tables.geometry import Geometry
from core.data.tables.table import Table
from core.errors import InvalidRequest


@dataclass(frozen=True)
class PartitionFacts:
    """The public facts of a partition that a plan needs; the digest names its centres."""

    #: The job that released the centres; empty outside a service.
    job: str
    k: int
    digest: str
    #: Of a table: the columns, weights and ranges in which records are compared with centres.
    clustered: Mapping[str, Any] | None = None

    @property
    def facts(self) -> Self:
        return self

    def to_json(self) -> dict[str, Any]:
        given = asdict(self)
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, eq=False)
class Partition:
    """Records by the nearest of some released centres, in the domain in which these were found."""

    domain: Dense | Geometry
    #: In the data's units, as `domain.decode` returned them.
    centres: Floats
    job: str = ""

    @classmethod
    def of(
        cls,
        stored: Stored,
        centres: Any,
        clustered: Mapping[str, Any] | None = None,
        ranges: Mapping[str, Any] | None = None,
        job: str = "",
    ) -> Self:
        """The partition of a result: its centres and, of a table, its plan's `clustered` and its ranges.

        `ranges` are the lowest and the highest value of columns that were clipped to released ranges.
        """
        points = np.asarray(centres, dtype=np.float64)
        domain: Dense | Geometry
        if isinstance(stored, Table):
            domain = Geometry.from_json(stored, clustered or Geometry.of(stored).choices)
            known = (clustered or {}).get("ranges")
            codes = {name: (pair[0], pair[1]) for name, pair in known.items()} if known else None
            if ranges is not None:
                codes = {name: _codes(stored, name, pair) for name, pair in ranges.items()}
            domain = domain if codes is None else domain.clipped(codes)
        elif isinstance(stored, Dense):
            domain = stored
        else:
            raise InvalidRequest(
                f"questions are for tables and dense columns, not for {stored.kind} data",
                parameter="kind",
            )
        if points.ndim != 2 or points.shape[1] != domain.dimension or not np.isfinite(points).all():
            raise InvalidRequest("the centres are not of this dataset", parameter="clusterings")
        return cls(domain, points, job)

    def onto(self, stored: Stored) -> Self:
        """The same partition of the records of another dataset, clipped to the bounds of that dataset.

        Its columns must match: have the same names, and codes that stand for the same values. The argument is
        in `partition.md`.
        """
        if isinstance(self.domain, Dense):
            if not isinstance(stored, Dense) or self.domain.like(stored) != stored:
                raise _unmatched("its columns, bounds or scaling differ")
            return replace(self, domain=stored)
        known = {column.name: column for column in stored.stored} if isinstance(stored, Table) else {}
        for axis in self.domain.axes:
            column = known.get(axis.column.name)
            if column is None or column.role != "cluster":
                raise _unmatched(f"it has no column {axis.column.name} to cluster on")
            if not axis.column.matches(column):
                raise _unmatched(f"its column {column.name} is {column.words}, not {axis.column.words}")
        assert isinstance(stored, Table)
        choices, ranges = self.domain.choices, self.domain.ranges
        domain = Geometry.from_json(stored, choices)
        if ranges is not None:
            domain = domain.clipped(dict(zip(self.domain.chosen, ranges, strict=True)))
        parts = {axis.column.name: self.centres[:, part] for axis, part in self.domain.parts}
        centres = np.concatenate([parts[name] for name in domain.chosen], axis=1)
        return replace(self, domain=domain, centres=centres)

    @property
    def k(self) -> int:
        return len(self.centres)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the centres as little-endian doubles, row by row."""
        return digest_of(self.centres)

    @property
    def facts(self) -> PartitionFacts:
        clustered: dict[str, Any] | None = None
        if isinstance(self.domain, Geometry):
            clustered = dict(self.domain.choices)
            if self.domain.ranges is not None:
                ranges = zip(self.domain.chosen, self.domain.ranges, strict=True)
                clustered["ranges"] = {name: list(pair) for name, pair in ranges}
        return PartitionFacts(self.job, self.k, self.digest, clustered)


def _unmatched(why: str) -> InvalidRequest:
    return InvalidRequest(
        f"these clusters cannot be looked for in this dataset: {why}; working bounds can make bounds alike",
        parameter="clusterings",
    )


def _codes(table: Table, name: str, values: Any) -> tuple[int, int]:
    """The codes of the ends of a released range."""
    column = next(column for column in ranged(table.stored) if column.name == name)
    first, last = (int(code) for code in column.read(np.array(values)).codes)
    return (first, last) if first < last else (max(0, last - 1), max(1, last))
