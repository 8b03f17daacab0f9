"""The way of an upload: read, limit per person, count what is clipped, encode, collect."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from core.data import MAX_RECORDS, Dense, Domain, Ids
from core.errors import InvalidData
from service.datasets.ingest.arrays import read_npy, read_npz
from service.datasets.ingest.batch import BadRowList, Batch, Wanted
from service.datasets.ingest.chunks import ChunkFile
from service.datasets.ingest.csv_rows import Quoted, Unclean, read_csv_carefully, read_csv_fast, read_header
from service.datasets.ingest.rows_per_person import RowsPerPerson
from service.datasets.ingest.spool import Spool, detect
from service.datasets.ingest.tables import read_arrow, read_parquet
from service.errors import BadFormat, TooLarge

__all__ = ["Encoded", "Upload", "encode_upload"]

_MOST_NAMES = 1000
_LONGEST_NAME = 128
#: Rows are about so wide when they are looked at several at a time.
_WIDE = 1 << 10


@dataclass(frozen=True, eq=False)
class Encoded:
    """What the curator is told about an upload whose chunks are all ready."""

    format: str
    rows: int
    clipped_rows: int
    bad: BadRowList
    rows_over_limit: int
    ignored_columns: tuple[str, ...]

    def report(self, spool: Spool, warnings: list[str]) -> dict[str, Any]:
        """What the curator is told, and the dataset remembers."""
        return {
            "format": self.format,
            "rows": self.rows,
            "clipped_rows": self.clipped_rows,
            "bad_rows": self.bad.count,
            "bad_row_lines": self.bad.first,
            "rows_over_limit": self.rows_over_limit,
            "ignored_columns": [_printable(name) for name in self.ignored_columns[:_MOST_NAMES]],
            "bytes": spool.size,
            "sha256": spool.sha256,
            "warnings": warnings,
        }


@dataclass(frozen=True)
class Upload:
    """An upload that is on disk or arriving, with the public facts and choices its reading depends on."""

    spool: Spool
    content_type: str
    wanted: Wanted
    drop_bad_rows: bool
    chunk_bytes: int
    directory: Path | None
    most_bytes: int

    def chunk_file(self) -> ChunkFile:
        """An empty file for the chunks."""
        return ChunkFile(self.wanted.domain, self.chunk_bytes, self.directory)


def encode_upload(upload: Upload, chunks: ChunkFile) -> Encoded:
    """Read the whole upload into `chunks`; every fault in it is raised as BadFormat or BadRows.

    CSV is read while it still arrives; other formats are read when they are whole.
    """
    file = upload.spool.view()
    format_name = detect(upload.content_type, file.read(16))
    if upload.wanted.domain.kind == "sparse" and format_name != "npz":
        raise BadFormat("a sparse dataset takes NPZ files, as scipy.sparse.save_npz writes them")
    bad = BadRowList(upload.drop_bad_rows)
    if format_name == "csv":
        header = read_header(file, upload.wanted)
        ignored = header.matched.ignored
        for quoted in (False, True):
            fast = read_csv_fast(upload.spool.view(), header, quoted=quoted)
            try:
                return _collect(upload, format_name, fast, chunks, bad, ignored)
            except Quoted:
                chunks.begin_again()
            except Unclean:
                chunks.begin_again()
                break
        return _collect(upload, format_name, read_csv_carefully(file, header, bad), chunks, bad, ignored)
    upload.spool.wait()
    ignored, batches = _reader(upload, format_name, bad)
    return _collect(upload, format_name, batches, chunks, bad, ignored)


def _reader(upload: Upload, format_name: str, bad: BadRowList) -> tuple[tuple[str, ...], Iterator[Batch]]:
    file, wanted = upload.spool.view(), upload.wanted
    if format_name == "npy":
        return (), read_npy(file, wanted, bad)
    if format_name == "npz":
        return (), read_npz(file, wanted, bad, directory=upload.directory, most_bytes=upload.most_bytes)
    matched, batches = (read_parquet if format_name == "parquet" else read_arrow)(file, wanted, bad)
    return matched.ignored, batches


def _collect(
    upload: Upload,
    format_name: str,
    batches: Iterator[Batch],
    chunks: ChunkFile,
    bad: BadRowList,
    ignored: tuple[str, ...],
) -> Encoded:
    domain = upload.wanted.domain
    people = RowsPerPerson(domain.rows_per_person) if upload.wanted.id_column else None
    clipped = over = 0
    reading = _limited(batches, bad)
    try:
        for batch in reading:
            upload.spool.wait(0)  # Abandoned here, where nobody wants the rows any more
            if people is not None and batch.people is not None:
                kept = batch.only(people.keep(batch.people))
                over += len(batch) - len(kept)
                batch = kept
            clipped += count_clipped(domain, batch.values)
            chunks.add(_encode(domain, batch.values))
            if chunks.bytes > upload.most_bytes:
                raise TooLarge(
                    f"the rows unpack to more than {upload.most_bytes} bytes", limit=upload.most_bytes
                )
        bad.settle()
    finally:
        reading.close()  # now: what a reader keeps on disk must not wait for the garbage collector
        if people is not None:
            people.close()
    chunks.end()
    return Encoded(format_name, chunks.rows, clipped, bad, over, ignored)


def _limited(batches: Iterator[Batch], bad: BadRowList) -> Generator[Batch, None, None]:
    """The batches of a file of at most so many rows, good ones and bad ones counted."""
    rows = 0
    with closing(cast(Generator[Batch, None, None], batches)):
        for batch in batches:
            rows += len(batch)
            if rows + bad.count > MAX_RECORDS:
                raise TooLarge(f"a dataset holds at most {MAX_RECORDS} records", limit=MAX_RECORDS)
            yield batch


def _printable(name: str) -> str:
    """A column's name as text that can be shown and stored, whatever its bytes were."""
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in name[:_LONGEST_NAME])


def _encode(domain: Domain, values: Any) -> Any:
    try:
        return domain.encode(values)
    except InvalidData as error:
        raise BadFormat(str(error)) from error


def count_clipped(domain: Domain, values: Any) -> int:
    """How many rows lie outside the public bounds; for the curator alone."""
    if isinstance(domain, Ids):
        return int(np.count_nonzero((values < 0) | (values >= domain.count)))
    with np.errstate(over="ignore"):
        if isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
            low, high = np.array(domain.low), np.array(domain.high)
            least, most = _extremes(values)
            if (least >= low).all() and (most <= high).all():
                return 0  # by far the commonest case, and told faster
            outside = (values < low) | (values > high)
            return int(np.count_nonzero(outside.any(axis=1)))
        if isinstance(domain, Dense):
            away = values - np.array(domain.centre)
            return int(np.count_nonzero(np.sqrt(np.einsum("ij,ij->i", away, away)) > domain.radius))
        squares = np.asarray(values.multiply(values).sum(axis=1)).ravel()
        return int(np.count_nonzero(np.sqrt(squares) > domain.radius))


def _extremes(values: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The least and the most of every column; narrow rows are looked at several at a time."""
    rows, width = values.shape
    together = max(1, _WIDE // width)
    whole = rows // together * together
    wide = values[:whole].reshape(-1, together, width)
    least = np.minimum(
        wide.min(axis=0, initial=np.inf).min(axis=0), values[whole:].min(axis=0, initial=np.inf)
    )
    most = np.maximum(
        wide.max(axis=0, initial=-np.inf).max(axis=0), values[whole:].max(axis=0, initial=-np.inf)
    )
    return least, most
