"""The body of an upload: hashed first, then sent in pieces, again if need be."""

import gzip
import hashlib
import io
import tempfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from cairn_client.tables import is_frame, write_frame

#: Called with the bytes sent so far and the bytes in total.
Sent = Callable[[int, int], None]
_PIECE = 1 << 18
_READ_SECONDS = 3600.0
#: Bytes of a text file that the service makes proposals from.
_FIRST_BYTES = 1 << 18
#: How files that are not delimited text begin, if that is not seen by their zero bytes.
_MAGIC = (b"PK\x03\x04", b"PAR1", b"ARROW1")
#: How text in UTF-16, which is full of zero bytes, begins.
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_TYPES = {
    ".csv": "text/csv",
    ".parquet": "application/vnd.apache.parquet",
    ".arrow": "application/vnd.apache.arrow.file",
    ".feather": "application/vnd.apache.arrow.file",
    ".npy": "application/x-npy",
    ".npz": "application/x-npz",
}


def media_type(name: str) -> str:
    """The media type of a file's suffix; the service detects the format of any other file."""
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
        """Yield the bytes from the beginning and report progress."""
        sent = 0
        for piece in self._pieces():
            yield piece
            sent += len(piece)
            if self._progress is not None:
                self._progress(sent, self.size)


def file_options(body: Body) -> dict[str, Any]:
    """Options of a call whose body is a file, with the time that the service may take to read it."""
    headers = {"Content-Type": body.kind, "Content-Length": str(body.size)}
    return {"content": body.send, "headers": headers, "read_seconds": _READ_SECONDS}


@contextmanager
def body_of(
    data: Any, kind: str | None, progress: Sent | None, reading: Mapping[str, Any] | None = None
) -> Iterator[Body]:
    """Open what is to be uploaded: paths, an open binary file, bytes, a table of numbers or a DataFrame.

    `reading` is how the dataset reads delimited text.
    """
    if _are_paths(data):
        with tempfile.TemporaryFile() as joined:
            join_text(data, joined)
            yield Body(joined, kind or "text/csv", progress)
    elif isinstance(data, str | Path):
        with open(data, "rb") as file:
            yield Body(file, kind or media_type(str(data)), progress)
    elif isinstance(data, bytes | bytearray):
        yield Body(io.BytesIO(data), kind or "application/octet-stream", progress)
    elif hasattr(data, "read"):
        yield Body(data, kind or media_type(str(getattr(data, "name", ""))), progress)
    else:
        with tempfile.TemporaryFile() as file:
            yield Body(file, _write(data, file, reading or {}), progress)


def _are_paths(data: Any) -> bool:
    return (
        isinstance(data, list | tuple) and bool(data) and all(isinstance(each, str | Path) for each in data)
    )


def _write(data: Any, file: BinaryIO, reading: Mapping[str, Any]) -> str:
    """Write a DataFrame or a table of numbers to a file; the media type of what was written."""
    if is_frame(data):
        return write_frame(data, file, reading)
    np.save(file, _numbers(data), allow_pickle=False)
    return "application/x-npy"


def first_lines(path: str | Path) -> bytes | None:
    """Return the first bytes of a text file, unpacked if it is a gzip file; None for any other file."""
    try:
        with _unpacked(path) as file:
            sample = file.read(_FIRST_BYTES)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        return None
    is_text = b"\0" not in sample[:1000] or sample.startswith(_UTF16_MARKS)
    return sample if is_text and not sample.startswith(_MAGIC) else None


def _unpacked(path: str | Path) -> io.BufferedIOBase:
    """Open a file, or the content of a gzip file."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    return gzip.open(path, "rb") if packed else open(path, "rb")


def join_text(paths: Sequence[str | Path], into: BinaryIO) -> None:
    """Write delimited text files, which have the same first line, as one file; some may be packed by gzip."""
    names = None
    for path in paths:
        with _unpacked(path) as file:
            first = file.readline().removeprefix(b"\xef\xbb\xbf").rstrip(b"\r\n")
            if b"\0" in first:
                raise ValueError(
                    f"{path} is not delimited text in UTF-8: only such files are uploaded together; upload a "
                    "single file of any other format"
                )
            if names not in (None, first):
                raise ValueError(
                    f"the first line of {path} is not that of {paths[0]}: files that are uploaded together "
                    "have the same columns in the same order"
                )
            if names is None:
                into.write(first + b"\n")
            names, last = first, b"\n"
            while piece := file.read(_PIECE):
                into.write(piece)
                last = piece[-1:]
            if last != b"\n":
                into.write(b"\n")


def _numbers(data: Any) -> npt.NDArray[Any]:
    array = np.asarray(data)
    if array.dtype.kind not in "biuf":
        accepted = "a path, an open binary file, bytes, an array of numbers or a pandas DataFrame"
        raise TypeError(f"upload takes {accepted}, not this {type(data).__name__}")
    return array
