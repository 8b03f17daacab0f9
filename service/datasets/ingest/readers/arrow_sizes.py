"""Unpacked sizes of the batches of an Arrow stream, read off their headers before anything is unpacked.

A compressed buffer begins with the length it unpacks to, and the library allocates that length. The headers
are flatbuffers: a table's fields are found through the table of offsets it points back to. The library
has checked that everything in a header lies inside it; where a header points to in the body is checked here.
"""

import struct
from collections.abc import Iterator
from typing import Any

from pyarrow import ipc

# Places of fields in the tables Message, DictionaryBatch and RecordBatch.
_HEADER = 2
_DICTIONARY_DATA = 1
_BUFFERS = 2
_COMPRESSION = 3


def unpacked_sizes(stream: Any) -> Iterator[int]:
    """Return the bytes that each batch of a buffer unpacks to, in order."""
    for message in ipc.MessageReader.open_stream(stream):
        if message.type not in ("dictionary", "record batch"):
            continue
        head = message.metadata
        batch = _table(head, _follow(head, 0), _HEADER)
        if message.type == "dictionary":
            batch = _table(head, batch, _DICTIONARY_DATA)
        yield _unpacked(head, batch, message.body)


def _unpacked(head: Any, batch: int, body: Any) -> int:
    buffers = _table(head, batch, _BUFFERS)
    if not buffers or not _field(head, batch, _COMPRESSION):
        return 0  # uncompressed: used in place
    (count,) = struct.unpack_from("<I", head, buffers)
    total = 0
    for number in range(count):
        offset, length = struct.unpack_from("<qq", head, buffers + 4 + 16 * number)
        if length >= 8:
            if offset < 0:
                raise ValueError("a buffer before the beginning of its message")
            total += max(0, struct.unpack_from("<q", body, offset)[0])
    return total


def _follow(head: Any, place: int) -> int:
    return place + int(struct.unpack_from("<I", head, place)[0])


def _field(head: Any, table: int, number: int) -> int:
    """Return the position of a table's field, or 0 when the table lacks it."""
    if not table:
        return 0
    offsets = table - struct.unpack_from("<i", head, table)[0]
    (size,) = struct.unpack_from("<H", head, offsets)
    if 4 + 2 * number >= size:
        return 0
    (offset,) = struct.unpack_from("<H", head, offsets + 4 + 2 * number)
    return table + offset if offset else 0


def _table(head: Any, table: int, number: int) -> int:
    place = _field(head, table, number)
    return _follow(head, place) if place else 0
