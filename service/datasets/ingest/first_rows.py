"""The first cells of the columns of Parquet and Arrow files as text, with the kinds that their types show."""

from collections.abc import Iterator, Sequence
from typing import IO, Any

import pyarrow as pa
from pyarrow import compute

from core.columns.cells import Cells
from core.data.tables.table import MOST_COLUMNS
from service.datasets.ingest.readers.arrow_types import file_type, has_lengths
from service.datasets.ingest.readers.batch import reading
from service.datasets.ingest.readers.tables import (
    arrow_blocks,
    open_arrow,
    open_parquet,
    parquet_blocks,
    require_valid,
)
from service.datasets.ingest.reports import printable
from service.errors import BadFormat

#: Characters of a text that are kept; a level has fewer.
LONGEST = 200


def first_rows(file: IO[bytes], format_name: str, count: int) -> list[Cells]:
    """Return the first cells of each column, at most `count`; none of a column of no kind we know."""
    schema, columns = _parquet(file, count) if format_name == "parquet" else _arrow(file, count)
    rows = max(map(len, columns.values()), default=0)
    return [
        Cells(name, cells or [""] * rows, file_type(kind) or "text", whole=pa.types.is_integer(kind))
        for (name, cells), kind in zip(columns.items(), schema.types, strict=True)
    ]


def _parquet(file: IO[bytes], count: int) -> tuple[Any, dict[str, list[str]]]:
    schema = open_parquet(file).schema_arrow
    _require_names(schema.names)
    texts = [each.name for each in schema if has_lengths(each.type)]
    opened = open_parquet(file, texts)

    def blocks(name: str) -> Iterator[Any]:
        # One column at a time: each may unpack to a lot more than it takes in the file.
        for block in parquet_blocks(opened, count, [name]):
            require_valid(block)
            yield block

    return schema, {
        each.name: _cells(blocks(each.name), 1, count)[0] if file_type(each.type) else [] for each in schema
    }


def _arrow(file: IO[bytes], count: int) -> tuple[Any, dict[str, list[str]]]:
    buffer, schema = open_arrow(file)
    _require_names(schema.names)
    places = [place for place, kind in enumerate(schema.types) if file_type(kind)]
    found = _cells(arrow_blocks(buffer, places), len(places), count)
    cells = dict(zip(places, found, strict=True))
    return schema, {name: cells.get(place, []) for place, name in enumerate(schema.names)}


def require_width(width: int) -> None:
    """Refuse a file with more columns than a table can have."""
    if width > MOST_COLUMNS:
        raise BadFormat(f"a table has at most {MOST_COLUMNS} columns, and this file has {width}")


def _require_names(names: Sequence[str]) -> None:
    require_width(len(names))
    double = next((name for place, name in enumerate(names) if name in names[:place]), None)
    if double is not None:
        raise BadFormat(f"the file has more than one column named {printable(double)}; rename or remove one")


def _cells(blocks: Iterator[Any], width: int, count: int) -> list[list[str]]:
    """Return the first cells of each column of some blocks."""
    found: list[list[Any]] = [[] for _ in range(width)]
    left = count
    for block in blocks if width else ():
        with reading("a column holds values that cannot be read; write the file again"):
            for place in range(width):
                found[place].append(_shortened(block.column(place).slice(0, left)))
        left -= block.num_rows
        if left <= 0:
            break
    with reading("a column holds values that cannot be read; write the file again"):
        return [_as_text(each) for each in found]


def _shortened(column: Any) -> Any:
    """Return a column whose texts are cut, and repeated only then."""
    if pa.types.is_dictionary(column.type):
        return _shortened(column.dictionary).take(column.indices)
    if has_lengths(column.type):
        return compute.utf8_slice_codeunits(column, 0, LONGEST)
    return column


def _as_text(pieces: list[Any]) -> list[str]:
    if not pieces:
        return []
    column = pa.chunked_array(pieces)
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        days = column.cast(pa.date32(), safe=False)
        if days.cast(column.type).equals(column):  # dates, as pandas keeps them
            column = days
    return [value or "" for value in column.cast(pa.string()).to_pylist()]
