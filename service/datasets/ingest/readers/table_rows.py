"""Rows of a table: columns are read one by one, each by its own kind, whatever the format of the file.

A row with a value that cannot be stored is left out or refuses the file: gaps as their column declares it,
other faults as the curator chose for this upload.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.columns.base import Column
from core.columns.missing import is_missing_id
from core.columns.notation import Notation
from core.columns.reading import Fault, Reading
from core.data import Table
from service.datasets.ingest.readers.arrow_types import is_text
from service.datasets.ingest.readers.batch import Batch, Expected, Records, reading
from service.datasets.ingest.readers.numbers import read_numbers
from service.datasets.ingest.reports import BadLine, ColumnCounts, RowReport, quoted

Mask = npt.NDArray[np.bool_]
#: Unreadable values of a batch among which distinct examples are looked for.
_TRIED = 30


@dataclass(frozen=True)
class TableReader:
    """Makes rows of codes of the columns that a table expects, given how the file writes numbers."""

    columns: tuple[Column, ...]
    person: Column | None
    notation: Notation

    @classmethod
    def of(cls, expected: Expected, notation: Notation) -> TableReader:
        """Return the reader of a table."""
        table = expected.domain
        assert isinstance(table, Table)
        person = next((column for column in table.declared if column.role == "id"), None)
        return cls(table.stored, person, notation)

    def batch(self, records: Records) -> Batch:
        """Return the rows that can be stored among some records."""
        with reading("a column holds values that cannot be read; write the file again"):
            readings = [
                read_column(column, values, self.notation)
                for column, values in zip(self.columns, records.columns, strict=True)
            ]
            people = records.names_of_people()
        rows = _Rows(self, records, readings, self._nobody(people, len(records.lines)))
        codes = np.stack([each.codes for each in readings], axis=1)
        faults = np.stack([each.faults for each in readings], axis=1)
        return Batch(codes, people, faults, rows.report()).only(rows.good)

    def _nobody(self, people: Sequence[str] | None, rows: int) -> Mask:
        """Mark the rows without an id, where the table needs one."""
        if people is None or self.person is None:
            return np.zeros(rows, dtype=np.bool_)
        return np.array([is_missing_id(name) for name in people], dtype=np.bool_)


@dataclass(frozen=True, eq=False)
class _Rows:
    """The readings of all columns of some records."""

    reader: TableReader
    records: Records
    readings: Sequence[Reading]
    nobody: Mask

    @property
    def good(self) -> Mask:
        """Mark the rows that can be stored."""
        usable: Mask = np.logical_and.reduce([~self.nobody, *(each.usable for each in self.readings)])
        return usable

    def report(self) -> RowReport:
        """Report what was found in all rows; of those left out as declared, only how many."""
        unsplit = self.records.bad_lines
        columns = dict(self._columns())
        if self.good.all():
            return RowReport(len(unsplit), columns=columns, bad_lines=unsplit)
        dropped, faulty, refused = self._outcomes()
        left_out = int(np.count_nonzero(dropped & ~faulty))
        bad = np.flatnonzero(faulty)
        return RowReport(
            len(bad) + left_out + len(unsplit),
            left_out,
            refused,
            columns,
            bad_lines=chain(unsplit, self._bad_lines(bad)),
        )

    def _columns(self) -> Iterator[tuple[str, ColumnCounts]]:
        """Count gaps and values that are unreadable or unknown, with some examples."""
        if self.reader.person is not None and self.nobody.any():
            yield self.reader.person.name, ColumnCounts(missing=int(np.count_nonzero(self.nobody)))
        for place, (column, found) in enumerate(zip(self.reader.columns, self.readings, strict=True)):
            report = ColumnCounts.of(found)
            if report.total:
                strange = np.flatnonzero(np.isin(found.faults, (Fault.UNREADABLE, Fault.UNKNOWN)))
                report.show(self.records.text(row, place) for row in strange[:_TRIED].tolist())
                yield column.name, report

    def _outcomes(self) -> tuple[Mask, Mask, dict[str, int]]:
        """Mark rows that gaps leave out, and those that are bad; count the gaps that refuse the file."""
        dropped, faulty, refused = np.zeros_like(self.nobody), np.zeros_like(self.nobody), {}
        for column, gaps in self._gaps():
            if column.missing == "drop":
                dropped |= gaps
            elif column.missing == "refuse" and gaps.any():
                refused[column.name] = int(np.count_nonzero(gaps))
                faulty |= gaps
        for found in self.readings:
            faulty |= ~found.usable & (found.faults != Fault.MISSING)
        return dropped, faulty, refused

    def _gaps(self) -> Iterator[tuple[Column, Mask]]:
        if self.reader.person is not None:
            yield self.reader.person, self.nobody
        for column, found in zip(self.reader.columns, self.readings, strict=True):
            yield column, found.faults == Fault.MISSING

    def _bad_lines(self, bad: npt.NDArray[np.intp]) -> Iterator[BadLine]:
        """Say of each bad row what its first fault is, and what to do about it."""
        for row in bad.tolist():
            yield int(self.records.lines[row]), self._reason(row)

    def _reason(self, row: int) -> str:
        person = self.reader.person
        if self.nobody[row] and person is not None and person.missing == "refuse":
            return f"{person.name} is missing"
        place = next(place for place in range(len(self.readings)) if self._is_faulty(row, place))
        column = self.reader.columns[place]
        if self.readings[place].faults[row] == Fault.MISSING:
            return f"{column.name} is missing"
        text = self.records.text(row, place)
        return f"{column.name}: {quoted(text)} {column.problem(text, self.reader.notation)}"

    def _is_faulty(self, row: int, place: int) -> bool:
        found = self.readings[place]
        dropped = found.faults[row] == Fault.MISSING and self.reader.columns[place].missing == "drop"
        return not found.usable[row] and not dropped


def read_column(column: Column, values: Any, notation: Notation) -> Reading:
    """Read an array of Arrow by a kind of column; each distinct text once."""
    if pa.types.is_dictionary(values.type) and not is_text(values.type):
        values = values.dictionary_decode()
    kind = values.type
    if is_text(kind) and column.is_numeric:
        return column.read(read_numbers(values.cast(pa.string()), notation))
    if is_text(kind) or column.has_levels:
        return _read_distinct(column, values)
    gaps = values.is_null().to_numpy(zero_copy_only=False)
    if pa.types.is_temporal(kind):
        return column.read(_moments(values), gaps)
    return column.read(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), gaps)


def _read_distinct(column: Column, values: Any) -> Reading:
    """Read each distinct value once. Floats are kept: whole numbers are levels without a point."""
    if not is_text(values.type) and not pa.types.is_floating(values.type):
        values = values.cast(pa.string())
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    distinct = np.array([*values.dictionary.to_pylist(), None], dtype=object)
    places = values.indices.cast(pa.int64()).fill_null(len(distinct) - 1)  # of a gap: the last
    return column.read(distinct).take(np.asarray(places.to_numpy(zero_copy_only=False)))


def _moments(values: Any) -> npt.NDArray[Any]:
    """Return dates and times of Arrow as datetime64, whatever their unit and time zone."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"), safe=False)  # in UTC where they have a time zone
    elif pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
