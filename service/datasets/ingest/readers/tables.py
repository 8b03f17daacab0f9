"""Parquet and Arrow: record batches with named columns.

Nothing that a file says about itself is trusted: names that are not text, lengths that do not fit, and small
files that unpack to more than memory should hold are refused.
"""

import mmap
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import compute, ipc, parquet

from core.data import Column, Table
from service.datasets.ingest.findings import Findings
from service.datasets.ingest.readers.arrow_sizes import unpacked_sizes
from service.datasets.ingest.readers.batch import Batch, Expected, is_missing_id, readable, reading, split_bad
from service.datasets.ingest.readers.columns import Matched, match_columns
from service.datasets.ingest.readers.table_columns import TableReader, is_text
from service.errors import BadFormat

_VALUES_PER_BATCH = 1 << 20
_ROWS_WITH_NAMES = 1 << 16
_LARGEST_ROW_GROUP = 4 << 30
_LARGEST_UNPACKED = 1 << 30
#: Longest entry of an id column, in bytes.
_LONGEST_NAME = 1024
_ARROW_FILE = b"ARROW1"
#: Makes a batch of a block of rows and the number of its first.
Convert = Callable[[Any, int], Batch]


def open_parquet(file: IO[bytes], texts: Sequence[str] = ()) -> Any:
    """Open a Parquet file; `texts` are read as dictionaries, so that a text that repeats is held once."""
    with reading("the file cannot be read as Parquet; it may be incomplete: write it again"):
        opened = parquet.ParquetFile(file, pre_buffer=False, read_dictionary=list(texts))
        _ = opened.schema_arrow.names  # which may not be text
    for number in range(opened.num_row_groups):
        if opened.metadata.row_group(number).total_byte_size > _LARGEST_ROW_GROUP:
            raise BadFormat("a row group holds more than 4 GiB; write the file with smaller row groups")
    return opened


def read_parquet(file: IO[bytes], expected: Expected, findings: Findings) -> tuple[Matched, Iterator[Batch]]:
    """Return the matched columns of a Parquet file and its batches, some rows of a row group at a time."""
    opened = open_parquet(file)
    names, types = opened.schema_arrow.names, opened.schema_arrow.types
    matched = match_columns(names, expected)
    _require_kinds(names, types, matched, expected)
    texts = [name for name in _chosen(names, matched) if has_lengths(types[names.index(name)])]
    if texts:
        opened = open_parquet(file, texts)
    convert = _converter(_chosen(names, matched), matched, expected, findings)
    return matched, _parquet_batches(opened, _chosen(names, matched), _rows_at_a_time(matched), convert)


def _parquet_batches(opened: Any, names: list[str], size: int, convert: Convert) -> Iterator[Batch]:
    first = 1
    for block in undamaged(lambda: opened.iter_batches(size, columns=names, use_threads=False)):
        yield convert(block.select(names), first)
        first += block.num_rows


def read_arrow(file: IO[bytes], expected: Expected, findings: Findings) -> tuple[Matched, Iterator[Batch]]:
    """Return the matched columns of an Arrow file or stream and its batches."""
    buffer, schema = open_arrow(file)
    names, types = schema.names, schema.types
    matched = match_columns(names, expected)
    _require_kinds(names, types, matched, expected)
    names = _chosen(names, matched)
    return matched, _arrow_batches(buffer, names, matched, _converter(names, matched, expected, findings))


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


def _arrow_batches(buffer: Any, names: list[str], matched: Matched, convert: Convert) -> Iterator[Batch]:
    size = _rows_at_a_time(matched)
    wanted = sorted([*matched.positions, *([] if matched.person is None else [matched.person])])
    first = 1
    for block in arrow_blocks(buffer, wanted):
        chosen = block.select(names)
        for start in range(0, block.num_rows, size):
            yield convert(chosen.slice(start, size), first + start)
        first += block.num_rows


def arrow_blocks(buffer: Any, places: Sequence[int]) -> Iterator[Any]:
    """Return the record batches of an Arrow stream, with the columns at these places."""
    options = ipc.IpcReadOptions(included_fields=list(places), use_threads=False)
    for block in undamaged(lambda: ipc.open_stream(buffer, options=options)):
        require_valid(block)
        yield block


def require_valid(block: Any) -> None:
    """Refuse a block whose lengths lead nowhere: pyarrow would follow them beyond the end of the file."""
    with reading("the file is damaged: its lengths or offsets are inconsistent; write it again"):
        block.validate(full=True)


def undamaged(open_blocks: Callable[[], Iterable[Any]]) -> Iterator[Any]:
    """Return the blocks of a file; BadFormat where it is truncated or damaged."""
    with reading("the file is incomplete or damaged; write it again"):
        yield from open_blocks()


def _rows_at_a_time(matched: Matched) -> int:
    rows = max(1024, _VALUES_PER_BATCH // (len(matched.positions) + 1))
    return rows if matched.person is None else min(rows, _ROWS_WITH_NAMES)


def _chosen(names: Sequence[str], matched: Matched) -> list[str]:
    places = [*matched.positions, *([] if matched.person is None else [matched.person])]
    return [names[place] for place in places]


def _converter(names: list[str], matched: Matched, expected: Expected, findings: Findings) -> Convert:
    """Return what makes a batch of a block whose first row has this number."""
    if isinstance(expected.domain, Table):
        reader = TableReader.of(expected)
        return lambda block, first: _convert_table(block, names, reader, first, findings)
    return lambda block, first: _convert(block, names, expected, first, findings)


def _require_kinds(names: Sequence[str], types: Sequence[Any], matched: Matched, expected: Expected) -> None:
    if isinstance(expected.domain, Table):
        for column, place in zip(expected.domain.stored, matched.positions, strict=True):
            if not _holds(types[place], column):
                held = f"column {names[place]} holds {types[place]}"
                raise BadFormat(f"{held}, not values of a {column.kind}; convert it first")
    for place in () if isinstance(expected.domain, Table) else matched.positions:
        kind = types[place]
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise BadFormat(f"column {names[place]} does not hold numbers; convert it first")
    if matched.person is None:
        return
    kind = types[matched.person]
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_nested(kind) or (pa.types.is_fixed_size_binary(kind) and kind.byte_width > _LONGEST_NAME):
        raise BadFormat(f"column {names[matched.person]} cannot tell people apart; use text or whole numbers")


def _convert(block: Any, names: list[str], expected: Expected, first: int, findings: Findings) -> Batch:
    width = len(expected.columns)
    dense = np.empty((block.num_rows, width), dtype=np.float64)
    with reading("a column holds values that cannot be read; write the file again"):
        for place in range(width):
            column = block.column(place).cast(pa.float64(), safe=False)
            dense[:, place] = column.to_numpy(zero_copy_only=False)
        people = None if len(names) == width else _people(block.column(width))
    missing = np.zeros(block.num_rows, dtype=bool)
    if people is not None:
        missing = np.array([is_missing_id(name) for name in people], dtype=bool)
        findings.column(names[width]).missing += int(np.count_nonzero(missing))
        findings.add_all(np.flatnonzero(missing), first, lambda _row: f"{names[width]} is missing")
    return split_bad(Batch(readable(dense, expected), people), names, first, findings, missing)


def _holds(kind: Any, column: Column) -> bool:
    """Return True when an Arrow type can hold values of a column."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_null(kind):
        return True
    if column.kind in ("date", "datetime"):
        return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))
    number = pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    return bool(number or (pa.types.is_boolean(kind) and column.kind != "number"))


def _convert_table(
    block: Any, names: list[str], reader: TableReader, first: int, findings: Findings
) -> Batch:
    width = len(reader.columns)
    with reading("a column holds values that cannot be read; write the file again"):
        readings = [
            reader.arrow(column, _shortened(block.column(place)))
            for place, column in enumerate(reader.columns)
        ]
        people = None if reader.person is None else _people(block.column(width))
    return reader.batch(
        readings,
        people,
        findings,
        lambda row: first + row,
        lambda row, place: block.column(place)[row].as_py(),
    )


def _shortened(column: Any) -> Any:
    """Return a column in which texts that are too long for any value are cut."""
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _shortened(column.dictionary))
    if is_text(column.type) and (compute.max(compute.binary_length(column)).as_py() or 0) > _LONGEST_NAME:
        return compute.utf8_slice_codeunits(column, 0, _LONGEST_NAME)
    return column


def _people(column: Any) -> list[str]:
    """Return the ids of a column; NaN, null and entries that are too long name nobody."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if has_lengths(column.type):
        too_long = compute.greater(compute.binary_length(column), _LONGEST_NAME)
        column = compute.if_else(too_long, pa.scalar(None, column.type), column)
    return ["" if each is None or each != each else str(each).strip() for each in column.to_pylist()]


def has_lengths(kind: Any) -> bool:
    """Return True for text and bytes of any length."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_binary, pa.types.is_large_binary)
    return any(test(kind) for test in tests)
