"""Rows of a table in delimited text."""

from collections.abc import Iterator

from service.datasets.ingest.findings import Findings
from service.datasets.ingest.readers.batch import Batch
from service.datasets.ingest.readers.csv_rows import people_of
from service.datasets.ingest.readers.records import Cells, Header
from service.datasets.ingest.readers.table_columns import TableReader


def read_table(
    found: Iterator[Cells], header: Header, reader: TableReader, findings: Findings
) -> Iterator[Batch]:
    """Return the rows that can be stored; the others are noted with the line they begin on."""
    for cells in found:
        readings = [
            reader.arrow(column, texts)
            for column, texts in zip(reader.columns, cells.columns[: len(reader.columns)], strict=True)
        ]
        people = None if header.matched.person is None else people_of(cells.columns[-1])
        yield reader.batch(readings, people, findings, cells.line, cells.text)
