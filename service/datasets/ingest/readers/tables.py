"""Parquet and Arrow: records with named columns.

Nothing that a file says about itself is trusted: names that are not text, lengths that do not fit, and small
files that unpack to more than memory should hold are refused.
"""

import mmap
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, ipc, parquet

from core.columns.base import Column
from core.data import Table
from service.datasets.ingest.readers.arrow_sizes import unpacked_sizes
from service.datasets.ingest.readers.arrow_types import file_type, has_lengths, is_text
from service.datasets.ingest.readers.batch import Expected, Records, reading
from service.datasets.ingest.readers.columns import Matched, match_columns
from service.errors import BadFormat

#: Most values of a batch.
_VALUES_PER_BATCH = 1 << 20
#: Least rows of a batch, however many columns there are.
_LEAST_ROWS = 1 << 10
#: Most rows of a batch with an id column, whose entries become Python texts.
_ROWS_WITH_NAMES = 1 << 16
#: Largest row group of a Parquet file, in bytes.
_LARGEST_ROW_GROUP = 4 << 30
#: Largest record batch of an Arrow file that is compressed, in unpacked bytes.
_LARGEST_UNPACKED = 1 << 30
#: Longest entry of an id column, and longest text of any other, in bytes.
_LONGEST_TEXT = 1024
_ARROW_FILE = b"ARROW1"
_DAMAGED = "the file is incomplete or damaged; write it again"


def open_parquet(file: IO[bytes], texts: Sequence[str] = ()) -> Any:
    """Open a Parquet file; `texts` are read as dictionaries, so that a text that repeats is held once."""
    with reading("the file cannot be read as Parquet; it may be incomplete: write it again"):
        opened = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=list(texts))
        _ = opened.schema_arrow.names  # which may not be text
    for number in range(opened.num_row_groups):
        if opened.metadata.row_group(number).total_byte_size > _LARGEST_ROW_GROUP:
            raise BadFormat("a row group holds more than 4 GiB; write the file with smaller row groups")
    return opened


def read_parquet(file: IO[bytes], expected: Expected) -> tuple[Matched, Iterator[Records]]:
    """Return the matched columns of a Parquet file and its records, some of a row group at a time."""
    opened = open_parquet(file)
    schema = opened.schema_arrow
    matched = _match(schema, expected)
    chosen = [schema.names[place] for place in matched.places]
    texts = [schema.names[place] for place in matched.places if has_lengths(schema.types[place])]
    if texts:
        opened = open_parquet(file, texts)
    size = _rows_at_a_time(matched)
    return matched, _records(parquet_blocks(opened, size, chosen), matched, size)


def parquet_blocks(opened: Any, size: int, names: Sequence[str]) -> Iterator[Any]:
    """Return these columns of a Parquet file, at most `size` rows at a time."""
    blocks = opened.iter_batches(size, columns=list(names), use_threads=False)
    return (block.select(list(names)) for block in _undamaged(blocks))


def read_arrow(file: IO[bytes], expected: Expected) -> tuple[Matched, Iterator[Records]]:
    """Return the matched columns of an Arrow file or stream and its records."""
    buffer, schema = open_arrow(file)
    matched = _match(schema, expected)
    chosen = [schema.names[place] for place in matched.places]
    blocks = (block.select(chosen) for block in arrow_blocks(buffer, sorted(matched.places)))
    return matched, _records(blocks, matched, _rows_at_a_time(matched))


def open_arrow(file: IO[bytes]) -> tuple[Any, Any]:
    """Return the bytes of an Arrow file or stream, and its schema; a file is read as a stream."""
    with reading("the file cannot be read as Arrow; it may be incomplete: write it again"):
        # Mapped, not read: an uncompressed batch takes no memory, whatever its size.
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        start = 8 if data[:6] == _ARROW_FILE else 0
        buffer = pa.py_buffer(data).slice(start)
        if any(size > _LARGEST_UNPACKED for size in unpacked_sizes(buffer)):
            raise BadFormat("a record batch unpacks to more than 1 GiB; write the file with smaller batches")
        schema = ipc.open_stream(buffer).schema
        _ = schema.names  # which may not be text
    return buffer, schema


def arrow_blocks(buffer: Any, places: Sequence[int]) -> Iterator[Any]:
    """Return the record batches of an Arrow stream, with the columns at these places."""
    options = ipc.IpcReadOptions(included_fields=list(places), use_threads=False)
    with reading(_DAMAGED):
        blocks = ipc.open_stream(buffer, options=options)
    for block in _undamaged(blocks):
        require_valid(block)
        yield block


def require_valid(block: Any) -> None:
    """Refuse a block whose lengths lead nowhere: pyarrow would follow them beyond the end of the file."""
    with reading("the file is damaged: its lengths or offsets are inconsistent; write it again"):
        block.validate(full=True)


def _undamaged(blocks: Iterable[Any]) -> Iterator[Any]:
    """Return the blocks of a file; BadFormat where it is truncated or damaged."""
    with reading(_DAMAGED):
        yield from blocks


def _rows_at_a_time(matched: Matched) -> int:
    rows = max(_LEAST_ROWS, _VALUES_PER_BATCH // (len(matched.positions) + 1))
    return rows if matched.person is None else min(rows, _ROWS_WITH_NAMES)


def _records(blocks: Iterable[Any], matched: Matched, size: int) -> Iterator[Records]:
    """Return the rows of some blocks as records, at most `size` at a time; rows count from one."""
    first = 1
    for whole in blocks:
        for start in range(0, whole.num_rows, size):
            block = whole.slice(start, size)
            with reading("a column holds values that cannot be read; write the file again"):
                columns = [_shortened(block.column(place)) for place in range(len(matched.positions))]
                people = None if matched.person is None else _people(block.column(len(columns)))
            yield Records(columns, np.arange(first, first + block.num_rows), people)
            first += block.num_rows


def _match(schema: Any, expected: Expected) -> Matched:
    """Match a file's columns with the dataset's; BadFormat where one has a type that cannot be read."""
    matched = match_columns(schema.names, expected)
    domain = expected.domain
    for number, place in enumerate(matched.positions):
        if isinstance(domain, Table):
            _require_values_of(domain.stored[number], schema.names[place], schema.types[place])
        elif file_type(schema.types[place]) != "number" or pa.types.is_dictionary(schema.types[place]):
            raise BadFormat(f"column {schema.names[place]} does not hold numbers; convert it first")
    if matched.person is not None:
        _require_ids(matched.id_name, schema.types[matched.person])
    return matched


def _require_values_of(column: Column, name: str, kind: Any) -> None:
    """Refuse a type that cannot hold values of a column; text can hold those of any."""
    if file_type(kind) not in {"text", *column.reads}:
        raise BadFormat(f"column {name} holds {kind}, not values of a {column.kind}; convert it first")


def _require_ids(name: str, kind: Any) -> None:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(kind) or (pa.types.is_fixed_size_binary(kind) and kind.byte_width > _LONGEST_TEXT):
        raise BadFormat(f"column {name} cannot tell people apart; use text or whole numbers")


def _shortened(column: Any) -> Any:
    """Return a column in which texts that are too long for any value are cut."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _shortened(column.dictionary))
    if is_text(column.type) and (compute.max(compute.binary_length(column)).as_py() or 0) > _LONGEST_TEXT:
        return compute.utf8_slice_codeunits(column, 0, _LONGEST_TEXT)
    return column


def _people(column: Any) -> Any:
    """Return an id column in which entries that are too long are null, and so name nobody."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not has_lengths(column.type):
        return column
    too_long = compute.greater(compute.binary_length(column), _LONGEST_TEXT)
    return compute.if_else(too_long, pa.scalar(None, column.type), column)
