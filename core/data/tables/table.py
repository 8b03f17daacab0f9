"""Tables of columns of different kinds; each stored in its own whole steps, next to the others."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.columns.base import Column, StoredColumn
from core.columns.reading import Codes, Reading
from core.columns.registry import column_from_json
from core.data.base import PublicFacts
from core.errors import InvalidDomain

#: More columns than this belong into a box, a ball or a sparse matrix.
MOST_COLUMNS = 1000


@dataclass(frozen=True, kw_only=True)
class Table(PublicFacts):
    """Rows of a table: one code for each column that is clustered on or kept for questions.

    A code is a step of the column's own range or the number of a level, so rows say nothing of distances.
    These come from the geometry of a job (`core.data.tables.geometry`), which takes some columns and weighs
    them.
    """

    kind: ClassVar[str] = "table"
    declared: tuple[Column, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        names = [column.name for column in self.declared]
        if not 1 <= len(names) <= MOST_COLUMNS:
            raise InvalidDomain(f"a table has between 1 and {MOST_COLUMNS} columns", parameter="columns")
        if len(set(names)) != len(names):
            raise InvalidDomain("two columns have the same name", parameter="columns")
        if not any(column.role == "cluster" for column in self.declared):
            raise InvalidDomain("at least one column must be used for clustering", parameter="columns")
        if sum(column.role == "id" for column in self.declared) > 1:
            raise InvalidDomain("only one column can tell people apart", parameter="columns")

    @cached_property
    def stored(self) -> tuple[StoredColumn, ...]:
        """The columns that rows keep, in the order in which they keep them."""
        return tuple(c for c in self.declared if c.is_stored and isinstance(c, StoredColumn))

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the stored columns."""
        return tuple(column.name for column in self.stored)

    @property
    def dimension(self) -> int:
        """Number of codes in a stored row."""
        return len(self.stored)

    @property
    def id_column(self) -> str | None:
        """Name of the column that tells people apart; its values are not stored."""
        return next((column.name for column in self.declared if column.role == "id"), None)

    def rows(self, readings: Mapping[str, Reading]) -> tuple[Codes, npt.NDArray[np.bool_]]:
        """Rows of codes from a reading of each stored column, and a mask of those that can be stored."""
        found = [readings[name] for name in self.columns]
        usable = np.logical_and.reduce([reading.usable for reading in found])
        return np.stack([reading.codes for reading in found], axis=1), usable

    def to_json(self) -> dict[str, Any]:
        shared = {"kind": self.kind, "size": self.size, "rows_per_person": self.rows_per_person}
        return {**shared, "columns": [column.to_json() for column in self.declared]}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Table":
        declared = tuple(column_from_json(column) for column in data["columns"])
        return cls(declared=declared, size=data["size"], rows_per_person=data["rows_per_person"])
