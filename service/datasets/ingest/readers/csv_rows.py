"""Rows of numbers in delimited text."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from core.arrays import Floats
from service.datasets.ingest.findings import Findings, quoted
from service.datasets.ingest.readers.batch import Batch, Expected, is_missing_id, readable
from service.datasets.ingest.readers.numbers import read_numbers
from service.datasets.ingest.readers.records import Cells, Header
from service.datasets.ingest.readers.text import undeclared

_YES_OR_NO = ("true", "false", "yes", "no")


def read_rows(
    found: Iterator[Cells], header: Header, expected: Expected, findings: Findings
) -> Iterator[Batch]:
    """Return the good rows; those with a value that is missing or no finite number are noted as bad."""
    width = len(header.matched.positions)
    for cells in found:
        values = np.empty((len(cells.lines), width))
        for place in range(width):
            values[:, place] = read_numbers(cells.columns[place], header.dialect)
        people = None if header.matched.person is None else people_of(cells.columns[width])
        nobody = np.zeros(len(values), dtype=np.bool_)
        if people is not None:
            nobody = np.array([is_missing_id(name) for name in people], dtype=np.bool_)
        good = np.isfinite(readable(values, expected)).all(axis=1) & ~nobody
        if not good.all():
            _note(cells, values, nobody, header, findings)
        yield Batch(values, people).only(good)


def people_of(column: object) -> list[str]:
    """Return the entries of an id column without surrounding blanks."""
    return [name.strip() for name in column.to_pylist()]  # type: ignore[attr-defined]  # an array of Arrow


def _note(cells: Cells, values: Floats, nobody: np.ndarray, header: Header, findings: Findings) -> None:
    """Count what is wrong by column, and note each bad row with its line and a first reason."""
    names = [header.names[place] for place in header.places]
    if nobody.any():
        findings.column(names[-1]).missing += int(np.count_nonzero(nobody))
    for place in np.flatnonzero(~np.isfinite(values).all(axis=0)).tolist():
        column = findings.column(names[place])
        unreadable = np.flatnonzero(np.isinf(values[:, place]))
        column.missing += int(np.count_nonzero(np.isnan(values[:, place])))
        column.unreadable += len(unreadable)
        for row in unreadable[:100].tolist():
            column.example(cells.text(row, place).strip())

    def reason(row: int) -> str:
        if nobody[row]:
            return f"{names[-1]} is missing"
        place = int(np.argmin(np.isfinite(values[row])))
        if np.isnan(values[row, place]):
            return f"{names[place]} is missing"
        text = cells.text(row, place).strip()
        return f"{names[place]}: {quoted(text)} is not a finite number{_hint(text, header)}"

    bad = np.flatnonzero(nobody | ~np.isfinite(values).all(axis=1))
    findings.add_rows(bad, cells.line, reason)


def _hint(text: str, header: Header) -> str:
    """Say what to do about a value that is not a number."""
    if text.casefold() in _YES_OR_NO:
        return "; write 1 and 0 for yes and no"
    advice = undeclared(text, header.dialect)
    return f"; {advice}" if advice else ""
