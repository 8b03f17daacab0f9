"""Columns of a table, each read by its own kind, whatever the format of the file.

A row with a value that cannot be stored is left out or refuses the file: gaps as their column declares it,
other faults as the curator chose for this upload.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from core.data import Category, Column, Fault, Number, Reading, Table
from service.datasets.ingest.findings import EXAMPLES, Findings
from service.datasets.ingest.readers.batch import Batch, Expected, is_missing, is_missing_id
from service.datasets.ingest.readers.numbers import read_numbers
from service.datasets.ingest.readers.reasons import reason
from service.datasets.ingest.readers.text import PLAIN, Dialect

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class TableReader:
    """The columns that a table expects of a file, and how the file writes numbers and dates."""

    columns: tuple[Column, ...]
    person: Column | None
    dialect: Dialect = PLAIN

    @classmethod
    def of(cls, expected: Expected, dialect: Dialect = PLAIN) -> TableReader:
        """Return the reader of a table."""
        table = expected.domain
        assert isinstance(table, Table)
        person = next((column for column in table.declared if column.role == "id"), None)
        return cls(table.stored, person, dialect)

    def texts(self, column: Column, texts: Sequence[str]) -> Reading:
        """Read values that are written as text; numbers are read by `read_numbers`."""
        known = column.levels if isinstance(column, Category) else ()
        gaps = [is_missing(text.strip()) and text.strip() not in known for text in texts]
        return column.read(np.array(texts, dtype=object), np.array(gaps, dtype=np.bool_))

    def arrow(self, column: Column, values: Any) -> Reading:
        """Read an array of Arrow; each distinct text once."""
        kind = values.type
        if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
            values, kind = values.dictionary_decode(), kind.value_type
        if isinstance(column, Number) and (is_text(kind) or pa.types.is_dictionary(kind)):
            return column.read(read_numbers(values.cast(pa.string()), self.dialect))
        if is_text(kind):
            values = values.dictionary_encode()
        if pa.types.is_dictionary(values.type):
            texts = ["" if text is None else str(text) for text in values.dictionary.to_pylist()]
            return self.texts(column, [*texts, ""]).take(_places(values))
        if isinstance(column, Category) and pa.types.is_floating(kind):
            encoded = values.dictionary_encode()  # whole numbers are levels without a point
            distinct = np.array([*encoded.dictionary.to_pylist(), None], dtype=object)
            return column.read(distinct).take(_places(encoded))
        if isinstance(column, Category):
            return self.arrow(column, values.cast(pa.string()))
        gaps = values.is_null().to_numpy(zero_copy_only=False)
        if pa.types.is_temporal(kind):
            return column.read(_moments(values), gaps)
        return column.read(values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), gaps)

    def batch(
        self,
        readings: Sequence[Reading],
        people: Sequence[str] | None,
        findings: Findings,
        line: Callable[[int], int],
        value: Callable[[int, int], object],
    ) -> Batch:
        """Return the rows that can be stored, and note what was found in all of them.

        `line` is that of a row in the file, `value` what stands there in a row and a column.
        """
        rows = len(readings[0].codes)
        nobody = np.array([is_missing_id(name) for name in people or [""] * rows], dtype=np.bool_)
        nobody &= self.person is not None
        bad = np.logical_or.reduce([nobody, *(~reading.usable for reading in readings)])
        self._count(readings, nobody, findings, value)
        if bad.any():
            self._note(readings, nobody, findings, line, value)
        codes = np.stack([reading.codes for reading in readings], axis=1)
        faults = np.stack([reading.faults for reading in readings], axis=1)
        return Batch(codes, people, faults).only(~bad)

    def _count(
        self,
        readings: Sequence[Reading],
        nobody: Mask,
        findings: Findings,
        value: Callable[[int, int], object],
    ) -> None:
        """Count gaps and values that are unreadable or unknown, with some examples."""
        if self.person is not None and nobody.any():
            findings.column(self.person.name).missing += int(np.count_nonzero(nobody))
        for place, (column, reading) in enumerate(zip(self.columns, readings, strict=True)):
            counts = reading.counts()
            if not any(counts[fault] for fault in ("missing", "unreadable", "unknown")):
                continue
            found = findings.column(column.name)
            found.missing += counts["missing"]
            found.unreadable += counts["unreadable"]
            found.unknown += counts["unknown"]
            strange = np.isin(reading.faults, (Fault.UNREADABLE, Fault.UNKNOWN))
            for row in np.flatnonzero(strange)[: 10 * EXAMPLES].tolist():
                found.example(value(row, place))

    def _note(
        self,
        readings: Sequence[Reading],
        nobody: Mask,
        findings: Findings,
        line: Callable[[int], int],
        value: Callable[[int, int], object],
    ) -> None:
        """Note the rows that cannot be stored; of those left out as declared, only how many."""
        gaps = [(self.person, nobody)] if self.person is not None else []
        gaps += [
            (column, reading.faults == Fault.MISSING)
            for column, reading in zip(self.columns, readings, strict=True)
        ]
        dropped, faulty = np.zeros_like(nobody), np.zeros_like(nobody)
        for column, mask in gaps:
            assert column is not None
            if column.missing == "drop":
                dropped |= mask
            elif column.missing == "refuse" and mask.any():
                findings.refuse(column.name, int(np.count_nonzero(mask)))
                faulty |= mask
        for reading in readings:
            faulty |= ~reading.usable & (reading.faults != Fault.MISSING)
        findings.leave_out(int(np.count_nonzero(dropped & ~faulty)))

        def why(row: int) -> str:
            if nobody[row] and self.person is not None and self.person.missing == "refuse":
                return f"{self.person.name} is missing"
            place = next(
                place for place, reading in enumerate(readings) if self._is_faulty(place, reading, row)
            )
            return reason(self.columns[place], readings[place].faults[row], value(row, place), self.dialect)

        findings.add_rows(np.flatnonzero(faulty), line, why)

    def _is_faulty(self, place: int, reading: Reading, row: int) -> bool:
        dropped = reading.faults[row] == Fault.MISSING and self.columns[place].missing == "drop"
        return not reading.usable[row] and not dropped


def _places(encoded: Any) -> npt.NDArray[np.int64]:
    """Return the place of each value of a dictionary array in its dictionary; a gap is one after the last."""
    places = encoded.indices.cast(pa.int64()).fill_null(len(encoded.dictionary))
    return np.asarray(places.to_numpy(zero_copy_only=False))


def is_text(kind: Any) -> bool:
    """Return True for a type of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _moments(values: Any) -> npt.NDArray[Any]:
    """Return dates and times of Arrow as datetime64, whatever their unit and time zone."""
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("us"), safe=False)  # in UTC where they have a time zone
    elif pa.types.is_date(values.type):
        values = values.cast(pa.timestamp("s"))
    return np.asarray(values.to_numpy(zero_copy_only=False), dtype="datetime64[us]")
