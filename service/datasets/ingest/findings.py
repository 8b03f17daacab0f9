"""Findings in the rows of an upload: for its owner alone, and deleted with the draft.

Examples of values are copies of rows. They are part of the report on a draft and of nothing else: no log, no
audit event, no sealed dataset.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from service.errors import BadRows

_REPORTED = 100
#: Unreadable values of one column that its owner is shown.
EXAMPLES = 3
_LONGEST_EXAMPLE = 40
_LONGEST_NAME = 128


@dataclass
class ColumnFindings:
    """Counts of a column's values that are missing, unreadable, no level, or outside the public bounds."""

    missing: int = 0
    unreadable: int = 0
    unknown: int = 0
    below: int = 0
    above: int = 0
    examples: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """The number of values in which something was found."""
        return self.missing + self.unreadable + self.unknown + self.below + self.above

    def example(self, value: object) -> None:
        """Keep one of the first few distinct values that are unreadable or no level."""
        text = printable(str(value), _LONGEST_EXAMPLE)
        if len(self.examples) < EXAMPLES and text not in self.examples:
            self.examples.append(text)


@dataclass
class Findings:
    """Unusable rows with their lines, to be refused or left out as chosen, and counts by column."""

    drop: bool
    bad_rows: int = 0
    #: Rows among them that columns of a table declared to be left out.
    declared: int = 0
    #: Gaps in columns of a table that refuse the file, by column.
    refused: dict[str, int] = field(default_factory=dict)
    lines: list[dict[str, Any]] = field(default_factory=list)
    clipped_rows: int = 0
    by_column: dict[str, ColumnFindings] = field(default_factory=dict)

    def column(self, name: str) -> ColumnFindings:
        """Return the counts of a column."""
        return self.by_column.setdefault(name, ColumnFindings())

    def add(self, line: int, reason: str) -> None:
        """Note one bad row."""
        self.bad_rows += 1
        if len(self.lines) < _REPORTED:
            self.lines.append({"line": line, "reason": reason})

    def add_all(self, rows: npt.NDArray[np.intp], first: int, reason: Callable[[int], str]) -> None:
        """Note many bad rows of a batch whose first is on line `first`."""
        self.add_rows(rows, lambda row: first + row, reason)

    def add_rows(
        self, rows: npt.NDArray[np.intp], line: Callable[[int], int], reason: Callable[[int], str]
    ) -> None:
        """Note many bad rows; only those reported get a line and a reason."""
        reported = rows[: _REPORTED - len(self.lines)]
        for row in reported.tolist():
            self.add(line(row), reason(row))
        self.bad_rows += len(rows) - len(reported)

    def bad_lines(self) -> list[dict[str, Any]]:
        """Return the reported lines in their order."""
        return sorted(self.lines, key=lambda each: int(each["line"]))

    def leave_out(self, rows: int) -> None:
        """Note rows with gaps that their columns declared to be left out for."""
        self.declared += rows
        self.bad_rows += rows

    def refuse(self, name: str, gaps: int) -> None:
        """Note gaps in a column that refuses the file for them."""
        self.refused[name] = self.refused.get(name, 0) + gaps

    def outside(
        self, names: Sequence[str], below: npt.NDArray[np.bool_], above: npt.NDArray[np.bool_]
    ) -> None:
        """Count the values of a batch below and above their columns' bounds, and the rows that have one."""
        self.clipped_rows += int(np.count_nonzero((below | above).any(axis=1)))
        for place in np.flatnonzero(below.any(axis=0) | above.any(axis=0)).tolist():
            column = self.column(names[place])
            column.below += int(np.count_nonzero(below[:, place]))
            column.above += int(np.count_nonzero(above[:, place]))

    def settle(self) -> None:
        """Raise BadRows at the end of a file that has some, unless they are to be left out."""
        words = self._gaps() if self.refused else ""
        if not words and self.bad_rows > self.declared and not self.drop:
            words = (
                f"{self.bad_rows} rows hold missing, non-numeric or non-finite values, or have the wrong "
                "number of fields; nothing was stored. Correct them, or upload again and leave bad rows out"
            )
        if words:
            raise BadRows(
                words,
                bad_rows=self.bad_rows,
                bad_row_lines=self.bad_lines(),
                gaps={printable(name): gaps for name, gaps in self.refused.items()},
                columns=self.columns(),
            )

    def _gaps(self) -> str:
        (name, gaps), *others = self.refused.items()
        more = f", as are {len(others)} more columns with gaps" if others else ""
        return (
            f"{printable(name)} is missing in {gaps} rows, and the column is declared to refuse missing "
            f"values{more}; nothing was stored. Fill the gaps, or declare what a missing value means "
            "instead: leave its row out (drop), use a fixed value (fill), or make it a level (level)"
        )

    def columns(self) -> list[dict[str, Any]]:
        """Describe the columns in which most was found, in the order of the file."""
        most = sorted(self.by_column, key=lambda name: -self.by_column[name].total)[:_REPORTED]
        shown = [name for name in self.by_column if name in set(most)]
        return [{"name": printable(name), **asdict(self.by_column[name])} for name in shown]


def printable(text: str, longest: int = _LONGEST_NAME) -> str:
    """Return text that can be shown and stored, whatever its bytes were."""
    shown = text if len(text) <= longest else f"{text[: longest - 1]}…"
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in shown)


def quoted(value: object) -> str:
    """Return a value of a row as it stands in a message to the curator."""
    return f"“{printable(str(value), _LONGEST_EXAMPLE)}”"
