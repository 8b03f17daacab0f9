"""The first lines of a file of any format as CSV, for a curator who is about to describe its columns.

They are bounded whatever the file says of itself, and nothing of them is kept.
"""

import csv
import io
from collections.abc import Iterable, Sequence
from itertools import islice

from service.datasets.ingest.first_rows import LONGEST, first_rows, require_width
from service.datasets.ingest.readers.batch import reading
from service.datasets.ingest.readers.excel import to_csv
from service.datasets.ingest.readers.proposed import decoded, propose_reading
from service.datasets.ingest.readers.text import recognised
from service.datasets.ingest.spool import Spool
from service.errors import BadFormat
from service.operations.settings import KIB, Settings

MOST_ROWS = 200
_MOST_BYTES = 256 * KIB
_SAMPLE = 1024 * KIB


def preview(spool: Spool, content_type: str, settings: Settings) -> str:
    """Return the names of a file's columns and its first rows as CSV, every field in quotes."""
    with recognised(spool, content_type, settings) as (format_name, content):
        if format_name in ("npy", "npz"):
            raise BadFormat("an array has no column names; describe its columns yourself")
        if format_name in ("parquet", "arrow"):
            return _written(first_rows(content.open(), format_name, MOST_ROWS))
        return _written(_lines(content, format_name, settings))


def _lines(content: Spool, format_name: str, settings: Settings) -> list[list[str]]:
    """Return the first lines of text or of a sheet."""
    if format_name == "excel":
        sheet, _words = to_csv(
            content.open(), settings.spool_directory, settings.max_upload_bytes, MOST_ROWS + 1
        )
        with sheet:
            sample, separator = sheet.open().read(_SAMPLE), ","
            text = sample.decode("utf-8", "ignore")
    else:
        sample = content.open().read(_SAMPLE)
        proposed = propose_reading(sample)
        separator, text = proposed.separator, decoded(sample, proposed.encoding)
    with reading("a field in the first lines is too long, or its quotes do not end; correct it"):
        found = list(csv.reader(io.StringIO(text, newline=""), delimiter=separator))
    whole = found[:-1] if len(sample) == _SAMPLE else found
    require_width(len(whole[0]) if whole else 0)
    return [record for record in whole if record]


def _written(records: Iterable[Sequence[str]]) -> str:
    """Write as many records as the limits allow, of which the first holds the names."""
    written, end = io.StringIO(), 0
    writer = csv.writer(written, quoting=csv.QUOTE_ALL, lineterminator="\n")
    for record in islice(records, MOST_ROWS + 1):
        writer.writerow([field[:LONGEST] for field in record])
        if written.tell() > _MOST_BYTES:
            break
        end = written.tell()
    return written.getvalue()[:end]
