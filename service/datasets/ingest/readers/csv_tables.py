"""Rows of a table in a CSV file: like rows of numbers, by a fast reader and else by a careful one."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import IO, Any

import numpy as np
import pyarrow as pa

from core.data import Number, Table
from service.datasets.ingest.findings import Findings
from service.datasets.ingest.readers.batch import Batch, Expected
from service.datasets.ingest.readers.csv_rows import (
    ROWS_PER_BATCH,
    Header,
    Unclean,
    blocks,
    people_of,
    read_header,
    records,
)
from service.datasets.ingest.readers.dates import find_orders, in_words
from service.datasets.ingest.readers.table_columns import TableReader
from service.datasets.ingest.readers.text import Dialect
from service.datasets.ingest.spool import Spool

_SAMPLED = 1000
_TEXT = pa.dictionary(pa.int32(), pa.string())
#: How missing numbers are written; whatever else is no number is left to the careful reader.
_MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "null", "NULL", "None", "<NA>")


def open_table(content: Spool, expected: Expected, dialect: Dialect) -> tuple[Header, TableReader]:
    """Return the header of a file and a reader of its columns, with the orders of dates that it shows."""
    header = read_header(content.open(), expected, dialect)
    sampled = [record for _, record in islice(records(content.open(), header, Findings(True)), _SAMPLED)]
    table = expected.domain
    assert isinstance(table, Table)
    samples = {
        name: [record[place] for record in sampled]
        for name, place in zip(table.columns, header.matched.positions, strict=True)
    }
    orders = find_orders(table, samples)
    noted = replace(dialect, notes=(*dialect.notes, *in_words(orders)))
    return replace(header, dialect=noted), TableReader.of(expected, dialect, orders)


def read_fast(file: IO[bytes], header: Header, reader: TableReader, findings: Findings) -> Iterator[Batch]:
    """Return batches of a file whose rows can be stored, or are left out as declared; Unclean at another."""
    types = [pa.float64() if isinstance(column, Number) else _TEXT for column in reader.columns]
    for block in blocks(file, header, types, _MISSING):
        readings = [reader.arrow(column, block.column(i)) for i, column in enumerate(reader.columns)]
        people = None if header.matched.person is None else people_of(block, len(readings))
        batch = reader.batch(readings, people, findings, int, _Values(block))
        if findings.bad_rows > findings.declared:
            raise Unclean
        yield batch


class _Values:
    """Return the text of a cell of a block."""

    def __init__(self, block: Any):
        self._block = block

    def __call__(self, row: int, place: int) -> object:
        return self._block.column(place)[row].as_py()


def read_carefully(
    file: IO[bytes], header: Header, reader: TableReader, findings: Findings
) -> Iterator[Batch]:
    """Return batches of the rows that can be stored; the others are noted with the line they begin on."""
    found = records(file, header, findings)
    while rows := list(islice(found, ROWS_PER_BATCH)):
        columns = [[record[place] for _, record in rows] for place in header.matched.positions]
        readings = [reader.texts(kind, texts) for kind, texts in zip(reader.columns, columns, strict=True)]
        person = header.matched.person
        people = None if person is None else [record[person].strip() for _, record in rows]
        lines = np.array([line for line, _ in rows])
        yield reader.batch(
            readings,
            people,
            findings,
            lambda row, lines=lines: int(lines[row]),  # type: ignore[misc]
            lambda row, place, columns=columns: columns[place][row],  # type: ignore[misc]
        )
