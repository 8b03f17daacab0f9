"""Encode an upload: read it, limit rows per person, count what is clipped, encode, collect as chunks.

Rows flow one way: a reader yields batches, each with a report on what was found in it; what follows removes
rows and adds up reports.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np

from core.columns.reading import Fault
from core.data import MAX_RECORDS, Dense, Ids, Stored, Table
from core.errors import InvalidData
from service.datasets.ingest.chunks import ChunkFile, StoredChunk
from service.datasets.ingest.readers.arrays import read_npy, read_npz
from service.datasets.ingest.readers.batch import Batch, Expected
from service.datasets.ingest.readers.columns import Matched
from service.datasets.ingest.readers.excel import to_csv
from service.datasets.ingest.readers.number_rows import NumberReader
from service.datasets.ingest.readers.proposed import propose_reading
from service.datasets.ingest.readers.records import open_text, read_records
from service.datasets.ingest.readers.table_rows import TableReader
from service.datasets.ingest.readers.tables import read_arrow, read_parquet
from service.datasets.ingest.readers.text import Dialect, recognised
from service.datasets.ingest.reports import RowReport, printable
from service.datasets.ingest.rows_per_person import RowsPerPerson
from service.datasets.ingest.spool import Spool
from service.errors import BadFormat, BadRows, TooLarge
from service.operations.settings import Settings

#: Names of columns without use that are reported.
_MOST_NAMES = 1000
#: Bytes of a refused file from which a proposal is made.
_SAMPLE = 1 << 18
_DECLARE = "Nothing was stored. Declare that if it may be public, and upload again."
#: How the text that a spreadsheet is turned into is written.
_SHEET = Dialect(quoted_lines=True)


@dataclass(frozen=True)
class Upload:
    """A spooled file, what its dataset expects of it, and the limits that apply."""

    spool: Spool
    content_type: str
    expected: Expected
    settings: Settings
    drop_bad_rows: bool = False


@dataclass(frozen=True, eq=False)
class FileRows:
    """The rows of a file, batch by batch, and how they are read."""

    format: str
    batches: Generator[Batch, None, None]
    #: Names of the file's columns that the dataset has not.
    ignored: tuple[str, ...] = ()
    read_as: str = ""


@dataclass(frozen=True, eq=False)
class EncodedUpload:
    """The chunks of an upload, ready to be stored, and what was found on the way."""

    upload: Upload
    rows: FileRows
    chunk_file: ChunkFile
    found: RowReport
    rows_over_limit: int

    def chunks(self) -> Iterator[StoredChunk]:
        """Return the chunks in order."""
        return self.chunk_file.chunks()

    def report(self, warnings: list[str]) -> dict[str, Any]:
        """Return the report that the curator reads and the dataset stores."""
        return {
            "format": self.rows.format,
            "read_as": self.rows.read_as,
            "rows": self.chunk_file.rows,
            "clipped_rows": self.found.clipped_rows,
            "bad_rows": self.found.bad_rows,
            "gap_rows": self.found.declared,
            "bad_row_lines": self.found.lines_to_json(),
            "columns": self.found.columns_to_json(),
            "rows_over_limit": self.rows_over_limit,
            "ignored_columns": [printable(name) for name in self.rows.ignored[:_MOST_NAMES]],
            "bytes": self.upload.spool.size,
            "sha256": self.upload.spool.sha256,
            "warnings": warnings,
        }

    def close(self) -> None:
        """Delete the chunks' file."""
        self.chunk_file.close()


def encode(upload: Upload) -> EncodedUpload:
    """Read and encode a whole upload; every fault in it is raised as BadFormat, BadRows or TooLarge."""
    with recognised(upload.spool, upload.content_type, upload.settings) as (format_name, content):
        packed = content is not upload.spool
        try:
            with _rows_of(upload, format_name, content, packed) as rows:
                return _collect(upload, rows)
        except (BadFormat, BadRows) as refusal:
            if format_name != "csv":
                raise
            raise _with_proposal(refusal, content, upload.expected.dialect) from None


def _with_proposal(refusal: BadFormat | BadRows, content: Spool, dialect: Dialect) -> BadFormat | BadRows:
    """Return a refusal that says how the file seems to be written, if that is not as its dataset declares."""
    proposed = propose_reading(content.open().read(_SAMPLE), dialect)
    following = proposed.dialect
    if following == dialect:
        return refusal
    end = "" if refusal.detail.endswith("?") else "."
    words = (
        f"{refusal.detail}{end} The file was read as its dataset declares ({dialect.words}), but seems to be "
        f"written otherwise ({following.words})"
    )
    suggested = {**following.to_json(), "from_rows": list(proposed.from_rows)}
    fields = {**refusal.fields, "reading": suggested}
    return type(refusal)(words, status=refusal.answer_status, next_step=_DECLARE, **fields)


@contextmanager
def _rows_of(upload: Upload, format_name: str, content: Spool, packed: bool) -> Iterator[FileRows]:
    """Open a file of any format; what a reader keeps on disk is deleted in the end."""
    expected, settings, dialect = upload.expected, upload.settings, upload.expected.dialect
    _require_format(expected, format_name)
    words = []
    with ExitStack() as stack:
        file = content.open()
        if format_name == "excel":
            sheet, name = to_csv(file, settings.spool_directory, settings.max_upload_bytes)
            file, dialect = stack.enter_context(sheet).open(), _SHEET
            words.append(name)
        matched, batches = _batches(file, format_name, expected, dialect, settings)
        stack.enter_context(closing(batches))
        words += [dialect.words] if format_name == "csv" else []
        words += ["gzip"] if packed else []
        yield FileRows(format_name, batches, matched.ignored if matched else (), ", ".join(words))


def _require_format(expected: Expected, format_name: str) -> None:
    """Refuse a format that cannot hold rows of the dataset's kind."""
    if expected.domain.kind == "sparse" and format_name != "npz":
        raise BadFormat("a sparse dataset takes NPZ files, as scipy.sparse.save_npz writes them")
    if expected.domain.kind == "table" and format_name in ("npy", "npz"):
        raise BadFormat("an array has no column names; upload the table as CSV, Excel, Parquet or Arrow")


def _batches(
    file: IO[bytes], format_name: str, expected: Expected, dialect: Dialect, settings: Settings
) -> tuple[Matched | None, Generator[Batch, None, None]]:
    """Return the matched columns of a file, where these have names, and its batches."""
    if format_name == "npy":
        return None, read_npy(file, expected)
    if format_name == "npz":
        return None, read_npz(file, expected, settings)
    if format_name in ("csv", "excel"):
        header, blocks = open_text(file, expected, dialect)
        matched, records = header.matched, read_records(blocks, header)
    else:
        matched, records = (read_parquet if format_name == "parquet" else read_arrow)(file, expected)
    reader: TableReader | NumberReader
    if isinstance(expected.domain, Table):
        reader = TableReader.of(expected, dialect.notation)
    else:
        reader = NumberReader.of(expected, matched, dialect.notation)
    return matched, (reader.batch(each) for each in records)


def _collect(upload: Upload, rows: FileRows) -> EncodedUpload:
    domain, settings = upload.expected.domain, upload.settings
    with ExitStack() as on_failure, ExitStack() as stack:
        chunks = on_failure.enter_context(
            closing(ChunkFile(domain, settings.chunk_bytes, settings.spool_directory))
        )
        people = None
        if upload.expected.id_column:
            people = stack.enter_context(closing(RowsPerPerson(domain.rows_per_person)))
        found, good, over = RowReport(), 0, 0
        for batch in rows.batches:
            found.add(batch.report)
            good += len(batch)
            if good + found.bad_rows > MAX_RECORDS:
                raise TooLarge(f"a dataset holds at most {MAX_RECORDS} records", limit=MAX_RECORDS)
            kept = batch
            if people is not None and batch.people is not None:
                kept = batch.only(people.keep(batch.people))
                over += len(batch) - len(kept)
            found.add(outside(domain, kept))
            chunks.add(_encode_rows(domain, kept.values))
            if chunks.bytes > settings.max_upload_bytes:
                limit = settings.max_upload_bytes
                raise TooLarge(f"the rows unpack to more than {limit} bytes", limit=limit)
        if refusal := found.refusal(upload.drop_bad_rows):
            raise refusal
        chunks.end()
        on_failure.pop_all()
        return EncodedUpload(upload, rows, chunks, found, over)


def _encode_rows(domain: Stored, values: Any) -> Any:
    if isinstance(domain, Table):  # its columns were read one by one
        return values
    try:
        return domain.encode(values)
    except InvalidData as error:
        raise BadFormat(str(error)) from error


def outside(domain: Stored, batch: Batch) -> RowReport:
    """Count values outside the public bounds; for the curator alone."""
    values = batch.values
    if isinstance(domain, Table):
        assert batch.faults is not None
        below, above = batch.faults == Fault.BELOW, batch.faults == Fault.ABOVE
        return RowReport.of_outside(domain.columns, below, above)
    if isinstance(domain, Ids):
        return RowReport.of_outside(domain.columns, values < 0, values >= domain.count)
    if isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
        below, above = values < np.array(domain.low), values > np.array(domain.high)
        return RowReport.of_outside(domain.columns, below, above)
    with np.errstate(over="ignore"):
        if isinstance(domain, Dense):
            away = values - np.array(domain.centre)
            norms = np.sqrt(np.einsum("ij,ij->i", away, away))
        else:
            norms = np.sqrt(np.asarray(values.multiply(values).sum(axis=1)).ravel())
        return RowReport(clipped_rows=int(np.count_nonzero(norms > domain.radius)))
