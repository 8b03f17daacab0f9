"""Rows of numbers, from the fields of records in any format."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.arrays import Floats
from core.columns.missing import is_missing_id
from core.columns.notation import Notation
from core.columns.reading import is_yes_or_no
from service.datasets.ingest.readers.arrow_types import is_text
from service.datasets.ingest.readers.batch import Batch, Expected, Records, reading
from service.datasets.ingest.readers.columns import Matched
from service.datasets.ingest.readers.numbers import read_numbers
from service.datasets.ingest.reports import BadLine, ColumnCounts, RowReport, quoted

#: Unreadable values of a batch among which distinct examples are looked for.
_TRIED = 100


@dataclass(frozen=True)
class NumberReader:
    """Makes rows of numbers; those with a value that is missing or no finite number are bad."""

    #: As the file names them.
    columns: tuple[str, ...]
    person: str
    #: Whether other numbers than whole ones are unreadable.
    whole: bool
    notation: Notation

    @classmethod
    def of(cls, expected: Expected, matched: Matched, notation: Notation) -> NumberReader:
        """Return the reader of a file whose columns were matched with those of its dataset."""
        return cls(matched.columns, matched.id_name, expected.domain.kind == "ids", notation)

    def batch(self, records: Records) -> Batch:
        """Return the good ones among some records."""
        values = np.empty((len(records.lines), len(self.columns)))
        with reading("a column holds values that cannot be read; write the file again"):
            for place, column in enumerate(records.columns):
                values[:, place] = self._numbers(column)
            people = records.names_of_people()
        return self.checked(values, records, people)

    def _numbers(self, column: Any) -> Any:
        if is_text(column.type):
            return read_numbers(column, self.notation)
        return column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)

    def checked(self, values: Floats, records: Records, people: list[str] | None = None) -> Batch:
        """Return the good ones among rows of numbers that were made of some records."""
        if self.whole:
            values[values != np.floor(values)] = np.inf
        nobody = np.array([is_missing_id(name) for name in people or ()], dtype=np.bool_)
        good: npt.NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(values), axis=1)
        if people is not None:
            good &= ~nobody
        if good.all() and not records.bad_lines:
            return Batch(values, people)
        bad = np.flatnonzero(~good)
        report = RowReport(
            len(bad) + len(records.bad_lines),
            columns=dict(self._columns(values, records, nobody)),
            bad_lines=chain(records.bad_lines, self._bad_lines(bad, values, records, nobody)),
        )
        return Batch(values, people, report=report).only(good)

    def _columns(
        self, values: Floats, records: Records, nobody: npt.NDArray[np.bool_]
    ) -> Iterator[tuple[str, ColumnCounts]]:
        """Count what is wrong, column by column."""
        if nobody.any():
            yield self.person, ColumnCounts(missing=int(np.count_nonzero(nobody)))
        for place in np.flatnonzero(~np.isfinite(values).all(axis=0)).tolist():
            unreadable = np.flatnonzero(np.isinf(values[:, place]))
            column = ColumnCounts(int(np.count_nonzero(np.isnan(values[:, place]))), len(unreadable))
            column.show(records.text(row, place) for row in unreadable[:_TRIED].tolist())
            yield self.columns[place], column

    def _bad_lines(
        self, bad: npt.NDArray[np.intp], values: Floats, records: Records, nobody: npt.NDArray[np.bool_]
    ) -> Iterator[BadLine]:
        """Say of each bad row what its first fault is."""
        for row in bad.tolist():
            yield int(records.lines[row]), self._reason(row, values, records, nobody)

    def _reason(self, row: int, values: Floats, records: Records, nobody: npt.NDArray[np.bool_]) -> str:
        if nobody.any() and nobody[row]:
            return f"{self.person} is missing"
        place = int(np.argmin(np.isfinite(values[row])))
        if np.isnan(values[row, place]):
            return f"{self.columns[place]} is missing"
        text = records.text(row, place)
        hint = "write 1 and 0 for yes and no" if is_yes_or_no(text) else self.notation.advice(text)
        more = f"; {hint}" if hint else ""
        return f"{self.columns[place]}: {quoted(text)} is not a finite number{more}"
