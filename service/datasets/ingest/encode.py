"""Encode an upload: read it, limit rows per person, count what is clipped, encode, collect as chunks."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from core.data import MAX_RECORDS, Dense, Domain, Ids
from core.errors import InvalidData
from service.datasets.ingest.arrays import read_npy, read_npz
from service.datasets.ingest.batch import BadRowList, Batch, Expected
from service.datasets.ingest.chunks import ChunkFile, StoredChunk
from service.datasets.ingest.csv_rows import Unclean, read_csv_carefully, read_csv_fast, read_header
from service.datasets.ingest.rows_per_person import RowsPerPerson
from service.datasets.ingest.spool import Spool, detect
from service.datasets.ingest.tables import read_arrow, read_parquet
from service.errors import BadFormat, TooLarge
from service.operations.settings import Settings

_MOST_NAMES = 1000
_LONGEST_NAME = 128


@dataclass(frozen=True)
class Upload:
    """A spooled file, what its dataset expects of it, and the limits that apply."""

    spool: Spool
    content_type: str
    expected: Expected
    settings: Settings
    drop_bad_rows: bool = False


@dataclass(frozen=True, eq=False)
class EncodedUpload:
    """The chunks of an upload, ready to be stored, and what was found on the way."""

    upload: Upload
    format: str
    chunk_file: ChunkFile
    clipped_rows: int
    bad: BadRowList
    rows_over_limit: int
    ignored_columns: tuple[str, ...]

    def chunks(self) -> Iterator[StoredChunk]:
        """Return the chunks in order."""
        return self.chunk_file.chunks()

    def report(self, warnings: list[str]) -> dict[str, Any]:
        """Return the report that the curator reads and the dataset stores."""
        return {
            "format": self.format,
            "rows": self.chunk_file.rows,
            "clipped_rows": self.clipped_rows,
            "bad_rows": self.bad.count,
            "bad_row_lines": self.bad.first,
            "rows_over_limit": self.rows_over_limit,
            "ignored_columns": [_printable(name) for name in self.ignored_columns[:_MOST_NAMES]],
            "bytes": self.upload.spool.size,
            "sha256": self.upload.spool.sha256,
            "warnings": warnings,
        }

    def close(self) -> None:
        """Delete the chunks' file."""
        self.chunk_file.close()


def encode(upload: Upload) -> EncodedUpload:
    """Read and encode a whole upload; every fault in it is raised as BadFormat, BadRows or TooLarge."""
    file = upload.spool.open()
    format_name = detect(upload.content_type, file.read(16))
    if upload.expected.domain.kind == "sparse" and format_name != "npz":
        raise BadFormat("a sparse dataset takes NPZ files, as scipy.sparse.save_npz writes them")
    if format_name == "csv":
        return _encode_csv(upload)
    bad = BadRowList(upload.drop_bad_rows)
    ignored, batches = _reader(upload, format_name, bad)
    return _collect(upload, format_name, batches, bad, ignored)


def _encode_csv(upload: Upload) -> EncodedUpload:
    """Encode with the fast reader; with the careful one, from the start, where the fast one gives up."""
    header = read_header(upload.spool.open(), upload.expected)
    bad, ignored = BadRowList(upload.drop_bad_rows), header.matched.ignored
    try:
        return _collect(upload, "csv", read_csv_fast(upload.spool.open(), header), bad, ignored)
    except Unclean:
        careful = read_csv_carefully(upload.spool.open(), header, bad)
        return _collect(upload, "csv", careful, bad, ignored)


def _reader(upload: Upload, format_name: str, bad: BadRowList) -> tuple[tuple[str, ...], Iterator[Batch]]:
    file, expected = upload.spool.open(), upload.expected
    if format_name == "npy":
        return (), read_npy(file, expected, bad)
    if format_name == "npz":
        return (), read_npz(file, expected, bad, upload.settings)
    matched, batches = (read_parquet if format_name == "parquet" else read_arrow)(file, expected, bad)
    return matched.ignored, batches


def _collect(
    upload: Upload, format_name: str, batches: Iterator[Batch], bad: BadRowList, ignored: tuple[str, ...]
) -> EncodedUpload:
    domain, most_bytes = upload.expected.domain, upload.settings.max_upload_bytes
    chunks = ChunkFile(domain, upload.settings.chunk_bytes, upload.settings.spool_directory)
    people = RowsPerPerson(domain.rows_per_person) if upload.expected.id_column else None
    clipped = over = 0
    reading = _limited(batches, bad)
    try:
        for batch in reading:
            if people is not None and batch.people is not None:
                kept = batch.only(people.keep(batch.people))
                over += len(batch) - len(kept)
                batch = kept
            clipped += count_clipped(domain, batch.values)
            chunks.add(_encode(domain, batch.values))
            if chunks.bytes > most_bytes:
                raise TooLarge(f"the rows unpack to more than {most_bytes} bytes", limit=most_bytes)
        bad.settle()
        chunks.end()
    except BaseException:
        chunks.close()
        raise
    finally:
        reading.close()  # now: what a reader keeps on disk must not wait for the garbage collector
        if people is not None:
            people.close()
    return EncodedUpload(upload, format_name, chunks, clipped, bad, over, ignored)


def _limited(batches: Iterator[Batch], bad: BadRowList) -> Generator[Batch, None, None]:
    """Pass batches on; TooLarge when the file has too many rows, good and bad ones counted."""
    rows = 0
    with closing(cast(Generator[Batch, None, None], batches)):
        for batch in batches:
            rows += len(batch)
            if rows + bad.count > MAX_RECORDS:
                raise TooLarge(f"a dataset holds at most {MAX_RECORDS} records", limit=MAX_RECORDS)
            yield batch


def _printable(name: str) -> str:
    """Return a column's name as text that can be shown and stored, whatever its bytes were."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:_LONGEST_NAME])


def _encode(domain: Domain, values: Any) -> Any:
    try:
        return domain.encode(values)
    except InvalidData as error:
        raise BadFormat(str(error)) from error


def count_clipped(domain: Domain, values: Any) -> int:
    """Count the rows outside the public bounds; for the curator alone."""
    if isinstance(domain, Ids):
        return int(np.count_nonzero((values < 0) | (values >= domain.count)))
    with np.errstate(over="ignore"):
        if isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
            outside = (values < np.array(domain.low)) | (values > np.array(domain.high))
            return int(np.count_nonzero(outside.any(axis=1)))
        if isinstance(domain, Dense):
            away = values - np.array(domain.centre)
            return int(np.count_nonzero(np.sqrt(np.einsum("ij,ij->i", away, away)) > domain.radius))
        squares = np.asarray(values.multiply(values).sum(axis=1)).ravel()
        return int(np.count_nonzero(np.sqrt(squares) > domain.radius))
