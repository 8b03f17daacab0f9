"""The first lines of a file of any format, for a curator who is about to describe its columns.

They come with proposals for the columns and for how a text file is read. They are bounded whatever the file
says of itself, and nothing of them is kept.
"""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from core.columns.cells import Cells
from core.columns.notation import Notation
from service.datasets.ingest.first_rows import LONGEST, first_rows, require_width
from service.datasets.ingest.readers.excel import to_csv
from service.datasets.ingest.readers.proposed import ProposedReading, decoded, propose_reading
from service.datasets.ingest.readers.text import recognised
from service.datasets.ingest.remarks import remarks, repeats_id, without_title
from service.datasets.ingest.spool import Spool
from service.datasets.proposals import Proposal, looks_like_data, propose
from service.errors import BadFormat
from service.operations.settings import KIB, Settings

MOST_ROWS = 200
#: Bytes of a text file that proposals are made from, and most characters that are shown.
_SAMPLE = 256 * KIB
_DATA = (
    "the first line looks like data, not like names of columns, so nothing was taken from it: names are "
    "public; add a first line with the names"
)


@dataclass(frozen=True)
class Preview:
    """The first lines of a file, and what they suggest about it."""

    format: str
    reading: ProposedReading
    names: list[str]
    rows: list[list[str]]
    columns: list[Proposal]
    #: Why the first line was not taken for names.
    problem: str = ""
    #: What to mend before the file is uploaded, in sentences.
    remarks: Sequence[str] = ()
    #: Whether the column that tells people apart holds a value twice.
    repeated_id: bool = False


def preview(spool: Spool, content_type: str, settings: Settings, named: bool = True) -> Preview:
    """Return the first lines of a file with proposals; its first line holds data if it is not `named`."""
    with recognised(spool, content_type, settings) as (format_name, content):
        if format_name in ("npy", "npz"):
            raise BadFormat("an array has no column names; describe its columns yourself")
        if format_name in ("parquet", "arrow"):
            columns = first_rows(content.open(), format_name, MOST_ROWS)
            rows = zip(*(each.texts for each in columns), strict=True)
            names = [each.name for each in columns]
            proposed, shown = propose(columns), _bounded(rows)
            said, repeated = remarks("", shown, columns, proposed), repeats_id(columns, proposed)
            return Preview(format_name, ProposedReading(), names, shown, proposed, "", said, repeated)
        if format_name == "excel":
            text, _words = to_csv(
                content.open(), settings.spool_directory, settings.max_upload_bytes, MOST_ROWS + 1
            )
            with text:
                sample, title = without_title(text.open().read(_SAMPLE))
                return _of_text(format_name, sample, ProposedReading(), named, title)
        sample, title = without_title(content.open().read(_SAMPLE))
        return _of_text(format_name, sample, propose_reading(sample), named, title)


def _of_text(format_name: str, sample: bytes, reading: ProposedReading, named: bool, title: str) -> Preview:
    """Return what a sample of text shows that is read like this."""
    first, *others = _lines(sample, reading)
    problem = _DATA if named and looks_like_data(first, others) else ""
    names = first if named and not problem else []
    rows = [line for line in (others if names else [first, *others]) if line]
    columns = _columns(names, rows, len(first), reading.dialect.notation)
    proposed = propose(columns)
    said, repeated = remarks(title, rows, columns, proposed), repeats_id(columns, proposed)
    return Preview(format_name, reading, names, _bounded(rows), proposed, problem, said, repeated)


def _lines(sample: bytes, reading: ProposedReading) -> list[list[str]]:
    """Return the fields of each whole line of a sample, the first of which is not empty."""
    text = decoded(sample, reading.dialect.encoding)
    if "\0" in text:
        raise BadFormat("the file holds zero bytes, so it is not text; save it as UTF-8 text")
    lines = list(_records(text, reading))
    if len(sample) == _SAMPLE:
        lines = lines[:-1]
    if not lines or not any(lines[0]):
        raise BadFormat("the first line is empty; put the names of the columns there")
    require_width(len(lines[0]))
    return lines


def _columns(
    names: Sequence[str], rows: Sequence[Sequence[str]], width: int, notation: Notation
) -> list[Cells]:
    """Return the cells of each column, from the rows that have a field for each."""
    fitting = [row for row in rows if len(row) == width]
    return [
        Cells(names[place] if names else "", [row[place] for row in fitting], notation=notation)
        for place in range(width)
        if not names or names[place]  # programs leave the name of an index empty
    ]


def _records(text: str, reading: ProposedReading) -> Iterator[list[str]]:
    """Yield the fields of each record, which is a line unless quoted fields go on over several."""
    whole = io.StringIO(text, newline="")
    sources = [whole] if reading.dialect.quoted_lines else ([line.rstrip("\r\n")] for line in whole)
    for source in sources:
        try:
            for record in csv.reader(source, delimiter=reading.dialect.separator):
                yield [field.strip() for field in record]
        except csv.Error:
            yield []


def _bounded(rows: Iterator[Sequence[str]] | Sequence[Sequence[str]]) -> list[list[str]]:
    """Return as many rows as are shown, with long texts cut."""
    shown: list[list[str]] = []
    left = _SAMPLE
    for row in rows:
        cut = [field[:LONGEST] for field in row]
        left -= sum(map(len, cut)) + len(cut)
        if left < 0 or len(shown) == MOST_ROWS:
            break
        shown.append(cut)
    return shown
