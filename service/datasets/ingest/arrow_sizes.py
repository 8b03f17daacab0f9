"""How much memory the batches of an Arrow file ask for, read off their headers before anything is unpacked.

A compressed buffer begins with the length it unpacks to, and the library allocates that length. Reading
the few numbers that lead there takes a walk through the file's messages (flatbuffers: a table's fields
are found through the table of offsets it points back to).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any

__all__ = ["unpacked_sizes"]

_CONTINUED = 0xFFFFFFFF
_DICTIONARY, _BATCH = 2, 3
# Places of fields in the tables Message, DictionaryBatch and RecordBatch.
_HEADER_TYPE, _HEADER, _BODY_LENGTH = 1, 2, 3
_DICTIONARY_DATA = 1
_BUFFERS, _COMPRESSION = 2, 3


def unpacked_sizes(data: Any, start: int) -> Iterator[int]:
    """The bytes each batch unpacks to, in order; ValueError where the file is not what it should be.

    `data` is anything with a length that struct can read from; `start` is where the first message begins.
    """
    place = start
    try:
        while place + 8 <= len(data):
            (length,) = struct.unpack_from("<I", data, place)
            place += 4
            if length == _CONTINUED:
                (length,) = struct.unpack_from("<I", data, place)
                place += 4
            if length == 0:
                return
            body = place + length
            message = _follow(data, place)
            kind = _scalar(data, message, _HEADER_TYPE, "<B")
            if kind in (_DICTIONARY, _BATCH):
                yield _batch(data, _table(data, message, _HEADER), body, dictionary=kind == _DICTIONARY)
            more = _scalar(data, message, _BODY_LENGTH, "<q")
            if more < 0:
                raise ValueError("a message of negative length")
            place = body + more
    except (struct.error, IndexError) as error:
        raise ValueError("a message reaches beyond the end of the file") from error


def _batch(data: Any, batch: int, body: int, *, dictionary: bool) -> int:
    if dictionary:
        batch = _table(data, batch, _DICTIONARY_DATA)
    if not batch or not _field(data, batch, _COMPRESSION):
        return 0  # used where it lies
    buffers = _table(data, batch, _BUFFERS)
    if not buffers:
        return 0
    (count,) = struct.unpack_from("<I", data, buffers)
    total = 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", data, buffers + 4 + 16 * number)
        if length >= 8:
            if offset < 0:
                raise ValueError("a buffer before the beginning of its message")
            (unpacked,) = struct.unpack_from("<q", data, body + offset)
            total += max(0, unpacked)
    return total


def _follow(data: Any, place: int) -> int:
    return place + int(struct.unpack_from("<I", data, place)[0])


def _field(data: Any, table: int, number: int) -> int:
    """Where a field of a table lies, or 0 when it is not there."""
    (back,) = struct.unpack_from("<i", data, table)
    offsets = table - back
    if offsets < 0:
        raise ValueError("a table that points before the file")
    (size,) = struct.unpack_from("<H", data, offsets)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", data, offsets + 4 + 2 * number)
    return table + offset if offset else 0


def _scalar(data: Any, table: int, number: int, form: str) -> int:
    place = _field(data, table, number)
    return int(struct.unpack_from(form, data, place)[0]) if place else 0


def _table(data: Any, table: int, number: int) -> int:
    place = _field(data, table, number)
    return _follow(data, place) if place else 0
