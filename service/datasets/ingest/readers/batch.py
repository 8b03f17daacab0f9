"""Types that all readers share: the expected columns, fields of records, and batches of rows.

Data flow one way: a reader yields the fields of records, rows are made of these, and each batch of rows has
the report on what was found in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from core.data import Stored, domain_from_json
from service.datasets.ingest.readers.text import PLAIN, Dialect
from service.datasets.ingest.reports import BadLine, RowReport
from service.datasets.reading import dialect_of
from service.errors import BadFormat, ServiceError
from service.operations.tables import Dataset


@contextmanager
def reading(problem: str) -> Iterator[None]:
    """Refuse a file with these words, whatever a library raises on its damaged or hostile bytes."""
    try:
        yield
    except ServiceError:
        raise
    except Exception as error:
        raise BadFormat(problem) from error


@dataclass(frozen=True)
class Expected:
    """The columns that a dataset expects in a file."""

    domain: Stored
    id_column: str | None = None
    #: How delimited text is written.
    dialect: Dialect = PLAIN

    @classmethod
    def of(cls, dataset: Dataset) -> Expected:
        """Return what a stored dataset expects."""
        return cls(domain_from_json(dataset.domain), dataset.id_column, dialect_of(dataset.reading))

    @property
    def columns(self) -> tuple[str, ...]:
        """The dataset's columns in order."""
        return self.domain.columns

    @property
    def positional(self) -> bool:
        """True when the columns were never named, so that a file's own names do not matter."""
        names = self.domain.columns
        if self.domain.kind == "table":
            return False
        return self.domain.kind == "ids" or names == tuple(f"x{i}" for i in range(len(names)))


@dataclass(frozen=True, eq=False)
class Records:
    """The fields of some records that a dataset needs, column by column, and the line of each record."""

    #: Arrays of Arrow, or columns of numpy.
    columns: Sequence[Any]
    lines: npt.NDArray[np.intp]
    #: The entries of the id column, an array of Arrow.
    people: Any = None
    #: Records that could not be split into fields.
    bad_lines: Sequence[BadLine] = ()

    def text(self, row: int, place: int) -> str:
        """Return a field as text, without surrounding blanks."""
        return str(self.columns[place][row]).strip()

    def names_of_people(self) -> list[str] | None:
        """Return the entries of the id column without surrounding blanks; NaN and null become empty."""
        if self.people is None:
            return None
        entries = self.people.to_pylist()
        return ["" if each is None or each != each else str(each).strip() for each in entries]


@dataclass(frozen=True, eq=False)
class Batch:
    """Good rows (dense values, a sparse matrix or codes of a table), with their people if there is an id."""

    values: Any
    people: Sequence[str] | None = None
    #: Of a table: what was found wrong with each value.
    faults: npt.NDArray[np.uint8] | None = None
    #: What was found in these rows, and in bad ones among which they were.
    report: RowReport = field(default_factory=RowReport)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def only(self, keep: npt.NDArray[np.bool_]) -> Batch:
        """Return the rows that `keep` marks, with the report on all."""
        if keep.all():
            return self
        people = (
            None
            if self.people is None
            else [name for name, kept in zip(self.people, keep, strict=True) if kept]
        )
        kept = np.flatnonzero(keep)
        faults = None if self.faults is None else self.faults[kept]
        return Batch(self.values[kept], people, faults, self.report)
