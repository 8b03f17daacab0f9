"""Types that all readers share: the expected columns and batches of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from core.data import Stored, domain_from_json
from service.datasets.ingest.findings import EXAMPLES, Findings
from service.datasets.ingest.readers.text import PLAIN, Dialect
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


#: Texts by which programs write a missing value. A row without an id is bad, never one shared person.
_NO_ID = ("", "nan", "null", "none", "<na>", "nat")
_NO_VALUE = ("na", "n/a", "#n/a")


def is_missing_id(name: str) -> bool:
    """Return True when an entry of the id column names nobody."""
    return len(name) <= 4 and name.casefold() in _NO_ID


def is_missing(text: str) -> bool:
    """Return True when a value of a table is missing, without blanks around it."""
    return len(text) <= 4 and (is_missing_id(text) or text.casefold() in _NO_VALUE)


@dataclass(frozen=True, eq=False)
class Batch:
    """Good rows (dense values, a sparse matrix or codes of a table), with their people if there is an id."""

    values: Any
    people: Sequence[str] | None = None
    #: Of a table: what was found wrong with each value.
    faults: npt.NDArray[np.uint8] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def only(self, keep: npt.NDArray[np.bool_]) -> Batch:
        """Return the rows that `keep` marks."""
        if keep.all():
            return self
        people = (
            None
            if self.people is None
            else [name for name, kept in zip(self.people, keep, strict=True) if kept]
        )
        kept = np.flatnonzero(keep)
        return Batch(self.values[kept], people, None if self.faults is None else self.faults[kept])


def readable(values: npt.NDArray[np.float64], expected: Expected) -> npt.NDArray[np.float64]:
    """Return numbers in which those that cannot name a site, where they should, are infinite."""
    if expected.domain.kind == "ids":
        values[values != np.floor(values)] = np.inf
    return values


def split_bad(
    batch: Batch,
    names: Sequence[str],
    first: int,
    findings: Findings,
    known: npt.NDArray[np.bool_] | None = None,
) -> Batch:
    """Note rows with a missing or infinite value as bad and return the others."""
    finite = np.isfinite(batch.values)
    if finite.all() and known is None:
        return batch
    wrong = ~finite.all(axis=1)
    for place in np.flatnonzero(~finite.all(axis=0)).tolist():
        column, values = findings.column(names[place]), batch.values[~finite[:, place], place]
        infinite = values[~np.isnan(values)]
        column.missing += len(values) - len(infinite)
        column.unreadable += len(infinite)
        for value in infinite[:EXAMPLES]:
            column.example(value)
    if known is not None:
        wrong &= ~known

    def reason(row: int) -> str:
        place = int(np.argmin(finite[row]))
        return f"{names[place]} is missing or not a finite number"

    findings.add_all(np.flatnonzero(wrong), first, reason)
    return batch.only(~wrong if known is None else ~(wrong | known))
