"""Reports on the rows of an upload: for its owner alone, and deleted with the draft.

Examples of values are copies of rows. They are part of the report on a draft and of nothing else: no log, no
audit event, no sealed dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt

from core.columns.reading import Reading
from service.errors import BadRows

#: Lines that the sentence of a refusal names.
_SHOWN = 3
_FILL_GAPS = (
    "Nothing was stored. Fill the gaps, or declare what a missing value means instead: leave its row out "
    "(drop), use a fixed value (fill), or make it a level (level)."
)
#: Bad rows of a file, and columns, that are reported one by one.
_REPORTED = 100
#: Unreadable values of one column that its owner is shown.
_EXAMPLES = 3
_LONGEST_EXAMPLE = 40
_LONGEST_NAME = 128
#: The line of a bad row, and why it is bad.
BadLine = tuple[int, str]


@dataclass
class ColumnCounts:
    """Counts of a column's values that are missing, unreadable, no level, or outside the public bounds."""

    missing: int = 0
    unreadable: int = 0
    unknown: int = 0
    below: int = 0
    above: int = 0
    examples: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, reading: Reading) -> ColumnCounts:
        """Return the report on a reading whose values lie inside the bounds, or were moved to them."""
        counts = reading.counts()
        return cls(counts["missing"], counts["unreadable"], counts["unknown"])

    @property
    def total(self) -> int:
        """The number of values in which something was found."""
        return self.missing + self.unreadable + self.unknown + self.below + self.above

    def add(self, other: ColumnCounts) -> None:
        """Add the report on further values."""
        self.missing += other.missing
        self.unreadable += other.unreadable
        self.unknown += other.unknown
        self.below += other.below
        self.above += other.above
        self.show(other.examples)

    def show(self, values: Iterable[object]) -> None:
        """Keep the first few distinct ones of some values that are unreadable or no level."""
        for value in values:
            text = printable(str(value), _LONGEST_EXAMPLE)
            if text not in self.examples and len(self.examples) < _EXAMPLES:
                self.examples.append(text)


@dataclass
class RowReport:
    """What was found in some rows of a file, or in all of them."""

    bad_rows: int = 0
    #: Rows among them that columns of a table declare to be left out.
    declared: int = 0
    #: Gaps in columns of a table that refuse the file, by column.
    refused: dict[str, int] = field(default_factory=dict)
    columns: dict[str, ColumnCounts] = field(default_factory=dict)
    #: The other bad rows. Reasons are found as they are taken, since only the first of a file are reported.
    bad_lines: Iterable[BadLine] = ()
    clipped_rows: int = 0

    @classmethod
    def of_outside(
        cls, names: Sequence[str], below: npt.NDArray[np.bool_], above: npt.NDArray[np.bool_]
    ) -> RowReport:
        """Return the report on values below and above their columns' bounds."""
        columns = {
            names[place]: ColumnCounts(
                below=int(np.count_nonzero(below[:, place])), above=int(np.count_nonzero(above[:, place]))
            )
            for place in np.flatnonzero(below.any(axis=0) | above.any(axis=0)).tolist()
        }
        return cls(columns=columns, clipped_rows=int(np.count_nonzero((below | above).any(axis=1))))

    def add(self, other: RowReport) -> None:
        """Add the report on further rows."""
        self.bad_rows += other.bad_rows
        self.declared += other.declared
        self.clipped_rows += other.clipped_rows
        self.bad_lines = list(islice(chain(self.bad_lines, other.bad_lines), _REPORTED))
        for name, gaps in other.refused.items():
            self.refused[name] = self.refused.get(name, 0) + gaps
        for name, column in other.columns.items():
            self.columns.setdefault(name, ColumnCounts()).add(column)

    def lines_to_json(self) -> list[dict[str, Any]]:
        """Return the reported lines in their order."""
        return [{"line": line, "reason": reason} for line, reason in sorted(self.bad_lines)]

    def refusal(self, drop: bool) -> BadRows | None:
        """Return why a file is refused in which this was found; None if `drop` leaves bad rows out."""
        if self.refused:
            words, next_step = self._gaps(), _FILL_GAPS
        elif self.bad_rows > self.declared and not drop:
            words, next_step = f"{_rows(self.bad_rows)} cannot be used", None
        else:
            return None
        first = "; ".join(f"line {line}: {reason}" for line, reason in sorted(self.bad_lines)[:_SHOWN])
        return BadRows(
            f"{words} ({first})" if first else words,
            next_step=next_step,
            bad_rows=self.bad_rows,
            bad_row_lines=self.lines_to_json(),
            gaps={printable(name): gaps for name, gaps in self.refused.items()},
            columns=self.columns_to_json(),
        )

    def _gaps(self) -> str:
        (name, gaps), *others = self.refused.items()
        more = f", as are {len(others)} more columns with gaps" if others else ""
        return (
            f"{printable(name)} is missing in {_rows(gaps)}, and the column is declared to refuse missing "
            f"values{more}"
        )

    def columns_to_json(self) -> list[dict[str, Any]]:
        """Describe the columns in which most was found, in the order of the file."""
        most = sorted(self.columns, key=lambda name: -self.columns[name].total)[:_REPORTED]
        shown = [name for name in self.columns if name in set(most)]
        return [{"name": printable(name), **asdict(self.columns[name])} for name in shown]


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count:,} rows"


def printable(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return text that can be shown and stored, whatever its bytes were."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in shown)


def quoted(value: object) -> str:
    """Return a value of a row as messages to the curator show it."""
    return f"“{printable(str(value), _LONGEST_EXAMPLE)}”"
