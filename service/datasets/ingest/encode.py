"""Encode an upload: read it, limit rows per person, count what is clipped, encode, collect as chunks."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from core.data import MAX_RECORDS, Dense, Fault, Ids, Stored, Table
from core.errors import InvalidData
from service.datasets.ingest.chunks import ChunkFile, StoredChunk
from service.datasets.ingest.findings import Findings, printable
from service.datasets.ingest.readers.arrays import read_npy, read_npz
from service.datasets.ingest.readers.batch import Batch, Expected
from service.datasets.ingest.readers.csv_rows import read_rows
from service.datasets.ingest.readers.csv_tables import read_table
from service.datasets.ingest.readers.excel import to_csv
from service.datasets.ingest.readers.proposed import propose_reading
from service.datasets.ingest.readers.records import open_text, read_cells
from service.datasets.ingest.readers.table_columns import TableReader
from service.datasets.ingest.readers.tables import read_arrow, read_parquet
from service.datasets.ingest.readers.text import Dialect, recognised
from service.datasets.ingest.rows_per_person import RowsPerPerson
from service.datasets.ingest.spool import Spool
from service.errors import BadFormat, BadRows, TooLarge
from service.operations.settings import Settings

_MOST_NAMES = 1000
#: Bytes of a refused file from which a proposal is made.
_SAMPLE = 1 << 18


@dataclass(frozen=True)
class Upload:
    """A spooled file, what its dataset expects of it, and the limits that apply."""

    spool: Spool
    content_type: str
    expected: Expected
    settings: Settings
    drop_bad_rows: bool = False
    #: The rows, where they were unpacked from the file or rewritten.
    rows: Spool | None = None

    @property
    def content(self) -> Spool:
        """The rows as a reader finds them."""
        return self.rows or self.spool


@dataclass(frozen=True, eq=False)
class EncodedUpload:
    """The chunks of an upload, ready to be stored, and what was found on the way."""

    upload: Upload
    format: str
    chunk_file: ChunkFile
    findings: Findings
    rows_over_limit: int
    ignored_columns: tuple[str, ...]
    read_as: str

    def chunks(self) -> Iterator[StoredChunk]:
        """Return the chunks in order."""
        return self.chunk_file.chunks()

    def report(self, warnings: list[str]) -> dict[str, Any]:
        """Return the report that the curator reads and the dataset stores."""
        return {
            "format": self.format,
            "read_as": self.read_as,
            "rows": self.chunk_file.rows,
            "clipped_rows": self.findings.clipped_rows,
            "bad_rows": self.findings.bad_rows,
            "bad_row_lines": self.findings.bad_lines(),
            "columns": self.findings.columns(),
            "rows_over_limit": self.rows_over_limit,
            "ignored_columns": [printable(name) for name in self.ignored_columns[:_MOST_NAMES]],
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
        notes = () if content is upload.spool else ("gzip",)
        return _encode(replace(upload, rows=content), format_name, *notes)


def _encode(upload: Upload, format_name: str, *notes: str) -> EncodedUpload:
    if upload.expected.domain.kind == "sparse" and format_name != "npz":
        raise BadFormat("a sparse dataset takes NPZ files, as scipy.sparse.save_npz writes them")
    settings, dialect = upload.settings, upload.expected.dialect
    if format_name == "csv":
        return _encode_text(upload, dialect, format_name, ", ".join([dialect.words, *notes]))
    if format_name == "excel":
        sheet, words = to_csv(upload.content.open(), settings.spool_directory, settings.max_upload_bytes)
        with sheet:
            written = Dialect(quoted_lines=True)
            return _encode_text(replace(upload, rows=sheet), written, format_name, ", ".join([words, *notes]))
    findings = Findings(upload.drop_bad_rows)
    ignored, batches = _reader(upload, format_name, findings)
    return _collect(upload, format_name, batches, findings, ignored, ", ".join(notes))


def _encode_text(upload: Upload, dialect: Dialect, format_name: str, words: str) -> EncodedUpload:
    """Encode delimited text that is written in this dialect."""
    expected, findings = upload.expected, Findings(upload.drop_bad_rows)
    try:
        header, blocks = open_text(upload.content.open(), expected, dialect)
        cells = read_cells(blocks, header, findings)
        if isinstance(expected.domain, Table):
            batches = read_table(cells, header, TableReader.of(expected, dialect), findings)
        else:
            batches = read_rows(cells, header, expected, findings)
        return _collect(upload, format_name, batches, findings, header.matched.ignored, words)
    except (BadFormat, BadRows) as error:
        if format_name == "csv":
            _propose(error, upload.content, dialect)
        raise


def _propose(error: BadFormat | BadRows, content: Spool, dialect: Dialect) -> None:
    """Add to a refusal how the file seems to be written, if that is not as its dataset declares."""
    proposed = propose_reading(content.open().read(_SAMPLE), dialect).to_json()
    facts = {name: value for name, value in proposed.items() if name != "from_rows"}
    following = Dialect(**{**dialect.to_json(), **facts})
    if following != dialect:
        error.fields["reading"] = {**following.to_json(), "from_rows": proposed["from_rows"]}
        error.detail += (
            f". The file was read as its dataset declares ({dialect.words}), but seems to be written "
            f"otherwise ({following.words}); change `reading` to that if it may be public, and upload again"
        )


def _reader(upload: Upload, format_name: str, findings: Findings) -> tuple[tuple[str, ...], Iterator[Batch]]:
    file, expected = upload.content.open(), upload.expected
    if expected.domain.kind == "table" and format_name in ("npy", "npz"):
        raise BadFormat("an array has no column names; upload the table as CSV, Excel, Parquet or Arrow")
    if format_name == "npy":
        return (), read_npy(file, expected, findings)
    if format_name == "npz":
        return (), read_npz(file, expected, findings, upload.settings)
    matched, batches = (read_parquet if format_name == "parquet" else read_arrow)(file, expected, findings)
    return matched.ignored, batches


def _collect(
    upload: Upload,
    format_name: str,
    batches: Iterator[Batch],
    findings: Findings,
    ignored: tuple[str, ...],
    words: str = "",
) -> EncodedUpload:
    domain, most_bytes = upload.expected.domain, upload.settings.max_upload_bytes
    chunks = ChunkFile(domain, upload.settings.chunk_bytes, upload.settings.spool_directory)
    people = RowsPerPerson(domain.rows_per_person) if upload.expected.id_column else None
    over = 0
    reading = _limited(batches, findings)
    try:
        for batch in reading:
            if people is not None and batch.people is not None:
                kept = batch.only(people.keep(batch.people))
                over += len(batch) - len(kept)
                batch = kept
            count_outside(domain, batch, findings)
            chunks.add(_encode_rows(domain, batch.values))
            if chunks.bytes > most_bytes:
                raise TooLarge(f"the rows unpack to more than {most_bytes} bytes", limit=most_bytes)
        findings.settle()
        chunks.end()
    except BaseException:
        chunks.close()
        raise
    finally:
        reading.close()  # now: what a reader keeps on disk must not wait for the garbage collector
        if people is not None:
            people.close()
    return EncodedUpload(upload, format_name, chunks, findings, over, ignored, words)


def _limited(batches: Iterator[Batch], findings: Findings) -> Generator[Batch, None, None]:
    """Pass batches on; TooLarge when the file has too many rows, good and bad ones counted."""
    rows = 0
    with closing(cast(Generator[Batch, None, None], batches)):
        for batch in batches:
            rows += len(batch)
            if rows + findings.bad_rows > MAX_RECORDS:
                raise TooLarge(f"a dataset holds at most {MAX_RECORDS} records", limit=MAX_RECORDS)
            yield batch


def _encode_rows(domain: Stored, values: Any) -> Any:
    if isinstance(domain, Table):  # its columns were read one by one
        return values
    try:
        return domain.encode(values)
    except InvalidData as error:
        raise BadFormat(str(error)) from error


def count_outside(domain: Stored, batch: Batch, findings: Findings) -> None:
    """Count values outside the public bounds; for the curator alone."""
    values = batch.values
    if isinstance(domain, Table):
        assert batch.faults is not None
        findings.outside(domain.columns, batch.faults == Fault.BELOW, batch.faults == Fault.ABOVE)
        return
    if isinstance(domain, Ids):
        findings.outside(domain.columns, values < 0, values >= domain.count)
        return
    if isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
        findings.outside(domain.columns, values < np.array(domain.low), values > np.array(domain.high))
        return
    with np.errstate(over="ignore"):
        if isinstance(domain, Dense):
            away = values - np.array(domain.centre)
            norms = np.sqrt(np.einsum("ij,ij->i", away, away))
        else:
            norms = np.sqrt(np.asarray(values.multiply(values).sum(axis=1)).ravel())
        findings.clipped_rows += int(np.count_nonzero(norms > domain.radius))
