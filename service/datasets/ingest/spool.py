"""The body of an upload in a nameless file on disk, with its digest, and the format of its content."""

from __future__ import annotations

import codecs
import hashlib
import io
import os
import re
import tempfile
import zipfile
from pathlib import Path
from typing import IO, cast

from service.errors import BadFormat, DigestMismatch, TooLarge

FORMATS = {
    "text/csv": "csv",
    "application/csv": "csv",
    "text/plain": "csv",
    "application/vnd.apache.parquet": "parquet",
    "application/parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/vnd.apache.arrow.file": "arrow",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/x-npy": "npy",
    "application/x-npz": "npz",
    "application/zip": "zip",
    "application/gzip": "gzip",
    "text/tab-separated-values": "csv",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "excel",
    "application/vnd.oasis.opendocument.spreadsheet": "excel",
}
# Content types that clients send when nobody chose one.
_UNSPECIFIED = {
    "",
    "application/octet-stream",
    "application/x-www-form-urlencoded",
    "application/vnd.ms-excel",  # for a CSV file, too, on machines with Excel
}
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK\x03\x04": "zip",
    b"PK\x05\x06": "zip",
    b"\x1f\x8b": "gzip",
    b"\xd0\xcf\x11\xe0": "excel",
}
#: Files that hold no table, or one that only another program reads.
_OTHERS = {
    b"%PDF": "a PDF document",
    b"SQLite format 3": "an SQLite database",
    b"$FL2": "an SPSS file",
    b"$FL3": "an SPSS file",
    b"<stata_dta>": "a Stata file",
    b"HEADER RECORD***": "a SAS transport file",
    b"RDX": "an R data file",
    b"\x89HDF": "an HDF5 file",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
    b"GIF8": "a picture",
    b"BZh": "a bzip2 file",
    b"\xfd7zXZ": "an xz file",
    b"\x28\xb5\x2f\xfd": "a Zstandard file",
    b"7z\xbc\xaf": "a 7z archive",
    b"Rar!": "a RAR archive",
    b"{\\rtf": "an RTF document",
    b"<?xml": "an XML file",
    b"<!DOCTYPE": "an HTML page",
    b"<html": "an HTML page",
    b"{": "a JSON file",
    b"\x80\x04": "a Python pickle",
    b"\x80\x05": "a Python pickle",
}
#: A list of objects or of lists; a bracket alone may begin the name of a column.
_JSON_LIST = re.compile(rb"\[\s*[\[{]")
#: The first bytes that tell formats apart.
_LONGEST_MAGIC = 16


class Spool:
    """A file for the body of an upload; it has no name and is gone with the process."""

    def __init__(self, directory: Path | None, most_bytes: int):
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 closed by close()
        self.size = 0
        self._most = most_bytes
        self._hash = hashlib.sha256()

    def write(self, *pieces: bytes) -> None:
        """Append bytes; TooLarge as soon as they are too many."""
        self.size += sum(map(len, pieces))
        if self.size > self._most:
            raise TooLarge(f"an upload may have at most {self._most} bytes", limit=self._most)
        for piece in pieces:
            self._hash.update(piece)
            self.file.write(piece)

    @property
    def sha256(self) -> str:
        """The digest of what was written."""
        return self._hash.hexdigest()

    def check(self, announced: str | None) -> None:
        """Raise DigestMismatch when the bytes are not those that were announced."""
        if announced is not None and announced != self.sha256:
            raise DigestMismatch("the file arrived damaged: its SHA-256 is not the one announced")

    def adopt(self) -> None:
        """Take the size of the file as another process left it."""
        self.size = os.fstat(self.file.fileno()).st_size

    def open(self) -> IO[bytes]:
        """Open the file for another reader, at the beginning."""
        return cast(IO[bytes], _Reader(self.file.fileno(), self.size))  # typeshed excludes RawIOBase

    def close(self) -> None:
        """Delete the file."""
        self.file.close()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Reader(io.RawIOBase):
    """A file with its own position, so that two readers do not move each other.

    A library may go on reading ahead in a thread after its reader was dropped. Bytes beyond the end are not
    allocated, whatever length a damaged file announces.
    """

    def __init__(self, descriptor: int, size: int):
        self._descriptor = os.dup(descriptor)
        self._size = size
        self._place = 0

    def fileno(self) -> int:
        return self._descriptor

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._place)
        wanted = left if size is None or size < 0 else min(size, left)
        found = os.pread(self._descriptor, wanted, self._place)
        self._place += len(found)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place, io.SEEK_END: self._size}[whence]
        if start + offset < 0:
            raise OSError("a place before the beginning of the file")
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        if not self.closed:
            os.close(self._descriptor)
        super().close()


def detect(content_type: str, file: IO[bytes]) -> str:
    """Return the format of a file; its content type, where one is given, and its first bytes must agree."""
    head = file.read(_LONGEST_MAGIC)
    announced = content_type.split(";")[0].strip().lower()
    if not head:
        raise BadFormat("the upload is empty; send a file with at least a header line")
    if announced not in _UNSPECIFIED and announced not in FORMATS:
        raise BadFormat(
            f"uploads of type {announced[:80]!r} are not accepted; send one of {', '.join(sorted(FORMATS))}",
            status=415,
        )
    found = _by_first_bytes(head)
    if found == "zip":
        found = _in_zip(file)
    if _may_be(announced, found):
        return found
    raise BadFormat(f"the upload is announced as {FORMATS[announced]}, but its first bytes look like {found}")


def _by_first_bytes(head: bytes) -> str:
    """Return the format that the first bytes of a file show; what shows none is text."""
    start = head.removeprefix(codecs.BOM_UTF8).lstrip()
    other = next((name for magic, name in _OTHERS.items() if start.startswith(magic)), None)
    if _JSON_LIST.match(start):
        other = "a JSON file"
    if other:
        raise BadFormat(f"this is {other}, not a table; export the table as CSV and upload that")
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "csv")


def _may_be(announced: str, found: str) -> bool:
    """Return True if a file that is announced as of this type may have this format."""
    packed = found == "gzip" or (announced == "application/zip" and found in ("npz", "excel"))
    return packed or announced in _UNSPECIFIED or FORMATS[announced] == found


def _in_zip(file: IO[bytes]) -> str:
    """Return what a ZIP archive is: sparse rows of numpy, or a spreadsheet."""
    try:
        with zipfile.ZipFile(file) as archive:
            names = set(archive.namelist())
    except Exception as error:  # whatever the library raises on damaged or hostile bytes
        raise BadFormat(
            "the file looks like a ZIP archive, but is damaged or incomplete; save it again"
        ) from error
    if "content.xml" in names or any(name.startswith("xl/workbook.") for name in names):
        return "excel"
    if any(name.endswith(".npy") for name in names) or not names:
        return "npz"
    kinds = {"word/document.xml": "a Word document", "ppt/presentation.xml": "a presentation"}
    kind = next((words for name, words in kinds.items() if name in names), "a ZIP archive of other files")
    raise BadFormat(f"this is {kind}, not a table; unpack or export the table as CSV and upload that")
