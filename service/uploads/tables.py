"""Parquet and Arrow: record batches with named columns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import numpy as np
import pyarrow as pa
from pyarrow import ipc, parquet

from service.errors import BadFormat
from service.uploads.batch import BadRowList, Batch, Wanted
from service.uploads.columns import Matched, match_columns

__all__ = ["read_arrow", "read_parquet", "split_bad"]

_VALUES_PER_BATCH = 1 << 20
_LARGEST_ROW_GROUP = 4 << 30


def read_parquet(file: IO[bytes], wanted: Wanted, bad: BadRowList) -> tuple[Matched, Iterator[Batch]]:
    """The columns of a Parquet file and its batches, some rows of a row group at a time."""
    file.seek(0)
    try:
        opened = parquet.ParquetFile(file, pre_buffer=False)
        schema = opened.schema_arrow
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadFormat("the file cannot be read as Parquet; is it whole?") from error
    matched = match_columns(schema.names, wanted)
    _require_numbers(schema, matched)
    for number in range(opened.num_row_groups):
        if opened.metadata.row_group(number).total_byte_size > _LARGEST_ROW_GROUP:
            raise BadFormat("a row group holds more than 4 GiB; write the file with smaller row groups")
    return matched, _parquet_batches(opened, matched, wanted, bad)


def _parquet_batches(opened: Any, matched: Matched, wanted: Wanted, bad: BadRowList) -> Iterator[Batch]:
    names = _names(opened.schema_arrow, matched)
    size = max(1024, _VALUES_PER_BATCH // len(names))
    first = 1
    try:
        for block in opened.iter_batches(batch_size=size, columns=names, use_threads=False):
            yield _convert(block, names, matched, first, bad)
            first += block.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadFormat("the file breaks off or is damaged; write it again") from error


def read_arrow(file: IO[bytes], wanted: Wanted, bad: BadRowList) -> tuple[Matched, Iterator[Batch]]:
    """The columns of an Arrow file or stream and its batches."""
    file.seek(0)
    is_file = file.read(6) == b"ARROW1"
    file.seek(0)
    try:
        opened = ipc.open_file(file) if is_file else ipc.open_stream(file)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadFormat("the file cannot be read as Arrow; is it whole?") from error
    matched = match_columns(opened.schema.names, wanted)
    _require_numbers(opened.schema, matched)
    return matched, _arrow_batches(opened, is_file, matched, bad)


def _arrow_batches(opened: Any, is_file: bool, matched: Matched, bad: BadRowList) -> Iterator[Batch]:
    names = _names(opened.schema, matched)
    size = max(1024, _VALUES_PER_BATCH // len(names))
    first = 1
    try:
        whole = (opened.get_batch(i) for i in range(opened.num_record_batches)) if is_file else opened
        for block in whole:
            for start in range(0, block.num_rows, size):
                part = block.select(names).slice(start, size)
                yield _convert(part, names, matched, first + start, bad)
            first += block.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadFormat("the file breaks off or is damaged; write it again") from error


def _names(schema: Any, matched: Matched) -> list[str]:
    places = [*matched.positions, *([] if matched.person is None else [matched.person])]
    return [schema.names[place] for place in places]


def _require_numbers(schema: Any, matched: Matched) -> None:
    for place in matched.positions:
        kind = schema.types[place]
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
            raise BadFormat(f"column {schema.names[place]} holds {kind}, not numbers; convert it first")


def _convert(block: Any, names: list[str], matched: Matched, first: int, bad: BadRowList) -> Batch:
    width = len(matched.positions)
    dense = np.empty((block.num_rows, width), dtype=np.float64)
    for place in range(width):
        column = block.column(place).cast(pa.float64(), safe=False)
        dense[:, place] = column.to_numpy(zero_copy_only=False)
    people = None
    missing = np.zeros(block.num_rows, dtype=bool)
    if matched.person is not None:
        named = block.column(width).to_pylist()
        people = ["" if name is None else str(name).strip() for name in named]
        missing = np.array([not name for name in people], dtype=bool)
        for row in np.flatnonzero(missing):
            bad.add(first + int(row), f"{names[width]} is missing")
    return split_bad(Batch(dense, people), names, first, bad, missing)


def split_bad(
    batch: Batch,
    names: list[str] | None,
    first: int,
    bad: BadRowList,
    known: np.ndarray[Any, Any] | None = None,
) -> Batch:
    """Note rows with a missing or infinite value as bad and return the others."""
    finite = np.isfinite(batch.values)
    wrong = ~finite.all(axis=1)
    if known is not None:
        wrong &= ~known
    for row in np.flatnonzero(wrong):
        place = int(np.argmin(finite[row]))
        name = names[place] if names else f"column {place}"
        bad.add(first + int(row), f"{name} is missing or not a finite number")
    return batch.only(~wrong if known is None else ~(wrong | known))
