"""What readers hand on: a batch of rows with the place each came from, and the list of bad ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from core.data import Domain
from service.errors import BadRows

__all__ = ["BadRowList", "Batch", "Expected"]

_REPORTED = 100


@dataclass(frozen=True)
class Expected:
    """What a dataset takes from a file."""

    domain: Domain
    id_column: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The data's columns in order."""
        return self.domain.columns

    @property
    def positional(self) -> bool:
        """True when the columns were never named, so that a file's own names do not matter."""
        names = self.domain.columns
        return self.domain.kind == "ids" or names == tuple(f"x{i}" for i in range(len(names)))


@dataclass(frozen=True, eq=False)
class Batch:
    """Good rows (dense values or a sparse matrix) and, where there is an id column, whose they are."""

    values: Any
    people: Sequence[str] | None = None

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def only(self, keep: npt.NDArray[np.bool_]) -> Batch:
        """The rows that `keep` marks."""
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
    """Rows that cannot be used, with their lines; refuses or drops them as the curator chose."""

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
                "of fields; nothing was stored. Correct them, or upload with on_bad_row=drop",
                bad_rows=self.count,
                bad_row_lines=self.first,
            )
