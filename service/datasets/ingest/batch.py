"""Types that all readers share: the expected columns, batches of rows, and the list of bad rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from core.data import Domain, domain_from_json
from service.errors import BadFormat, BadRows, ServiceError
from service.operations.tables import Dataset

_REPORTED = 100


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

    domain: Domain
    id_column: str | None = None

    @classmethod
    def of(cls, dataset: Dataset) -> Expected:
        """Return what a stored dataset expects."""
        return cls(domain_from_json(dataset.domain), dataset.id_column)

    @property
    def columns(self) -> tuple[str, ...]:
        """The dataset's columns in order."""
        return self.domain.columns

    @property
    def positional(self) -> bool:
        """True when the columns were never named, so that a file's own names do not matter."""
        names = self.domain.columns
        return self.domain.kind == "ids" or names == tuple(f"x{i}" for i in range(len(names)))


@dataclass(frozen=True, eq=False)
class Batch:
    """Good rows (dense values or a sparse matrix), with their people where there is an id column."""

    values: Any
    people: Sequence[str] | None = None

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
        return Batch(self.values[np.flatnonzero(keep)], people)


@dataclass
class BadRowList:
    """Unusable rows with their lines, to be refused or dropped as the curator chose."""

    drop: bool
    count: int = 0
    first: list[dict[str, Any]] = field(default_factory=list)

    def add(self, line: int, reason: str) -> None:
        """Note one bad row."""
        self.count += 1
        if len(self.first) < _REPORTED:
            self.first.append({"line": line, "reason": reason})

    def add_all(self, rows: npt.NDArray[np.intp], first: int, reason: Callable[[int], str]) -> None:
        """Note many bad rows of a batch whose first is on line `first`; only those reported get a reason."""
        reported = rows[: _REPORTED - len(self.first)]
        for row in reported:
            self.add(first + int(row), reason(int(row)))
        self.count += len(rows) - len(reported)

    def settle(self) -> None:
        """Raise BadRows at the end of a file that has some, unless they are to be dropped."""
        if self.count and not self.drop:
            raise BadRows(
                f"{self.count} rows hold missing, non-numeric or non-finite values, or have the wrong number "
                "of fields; nothing was stored. Correct them, or upload again and leave bad rows out",
                bad_rows=self.count,
                bad_row_lines=self.first,
            )


def split_bad(
    batch: Batch,
    names: list[str] | None,
    first: int,
    bad: BadRowList,
    known: npt.NDArray[np.bool_] | None = None,
) -> Batch:
    """Note rows with a missing or infinite value as bad and return the others."""
    finite = np.isfinite(batch.values)
    wrong = ~finite.all(axis=1)
    if known is not None:
        wrong &= ~known
    rows = np.flatnonzero(wrong)

    def reason(row: int) -> str:
        place = int(np.argmin(finite[row]))
        name = names[place] if names else f"column {place}"
        return f"{name} is missing or not a finite number"

    bad.add_all(rows, first, reason)
    return batch.only(~wrong if known is None else ~(wrong | known))
