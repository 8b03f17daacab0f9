"""The body of an upload: read in pieces, hashed first, counted on the way out, ready to be sent again."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

__all__ = ["Body", "Sent", "body_of", "media_type"]

#: Called with the bytes sent so far and the bytes in all.
Sent = Callable[[int, int], None]
_PIECE = 1 << 18
_TYPES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".feather": "application/vnd.apache.arrow.file",
    ".npy": "application/x-npy",
    ".npz": "application/x-npz",
}


def media_type(name: str) -> str:
    """The media type of a file by the end of its name; the service looks into the file otherwise."""
    return _TYPES.get(Path(name).suffix.lower(), "application/octet-stream")


class Body:
    """A file that can be sent from its beginning any number of times."""

    def __init__(self, file: BinaryIO, kind: str, progress: Sent | None = None):
        self._file = file
        self._progress = progress
        self.kind = kind
        digest, size = hashlib.sha256(), 0
        for piece in self._pieces():
            digest.update(piece)
            size += len(piece)
        self.sha256, self.size = digest.hexdigest(), size

    def _pieces(self) -> Iterator[bytes]:
        self._file.seek(0)
        while piece := self._file.read(_PIECE):
            yield piece

    def send(self) -> Iterator[bytes]:
        """The bytes, from the beginning, telling how far they are."""
        sent = 0
        for piece in self._pieces():
            yield piece
            sent += len(piece)
            if self._progress is not None:
                self._progress(sent, self.size)


@contextmanager
def body_of(data: Any, kind: str | None, progress: Sent | None) -> Iterator[Body]:
    """What was given to be uploaded: a path, an open binary file, bytes, or an array."""
    if isinstance(data, str | Path):
        with open(data, "rb") as file:
            yield Body(file, kind or media_type(str(data)), progress)
    elif isinstance(data, bytes | bytearray):
        yield Body(io.BytesIO(data), kind or "application/octet-stream", progress)
    elif isinstance(data, np.ndarray):
        buffer = io.BytesIO()
        np.save(buffer, data, allow_pickle=False)
        yield Body(buffer, "application/x-npy", progress)
    else:
        yield Body(data, kind or media_type(str(getattr(data, "name", ""))), progress)
