"""Nameless files for what is under way, gone with the process, and the guess at a file's format."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
from pathlib import Path
from threading import Condition
from typing import IO, cast

from service.errors import BadFormat, DigestMismatch, TooLarge

__all__ = ["FORMATS", "Abandoned", "Spool", "View", "detect"]

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
    "application/zip": "npz",
}
# What clients send when nobody told them what the body is.
_UNSAID = {"", "application/octet-stream", "application/x-www-form-urlencoded"}
_MAGIC = {
    b"PAR1": "parquet",
    b"ARROW1": "arrow",
    b"\xff\xff\xff\xff": "arrow",
    b"\x93NUMPY": "npy",
    b"PK": "npz",
}


class Abandoned(Exception):
    """The upload was given up while it was being read."""


class View(io.RawIOBase):
    """A spool read from a place of its own, so that two readers of one file never move each other.

    Where bytes have not arrived yet, reading waits for them. A library may go on reading ahead in a thread
    after its reader was given up. What is asked for beyond the end is not allocated either, whatever length
    a damaged file announces.
    """

    def __init__(self, spool: Spool):
        self._spool = spool
        self._descriptor = os.dup(spool.file.fileno())
        self._place = 0

    def fileno(self) -> int:
        return self._descriptor

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, `size` of them or what is left; all that are left when it is negative."""
        everything = size is None or size < 0
        held = self._spool.wait(None if everything else self._place + (size or 0))
        left = max(0, held - self._place)
        wanted = left if size is None or size < 0 else min(size, left)
        found = os.pread(self._descriptor, wanted, self._place)
        self._place += len(found)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to another place."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._place}.get(whence)
        if start is None:
            start = self._spool.wait()
        if start + offset < 0:
            raise OSError("a place before the beginning of the file")
        self._place = start + offset
        return self._place

    def tell(self) -> int:
        return self._place

    def close(self) -> None:
        """Let the file go."""
        if not self.closed:
            os.close(self._descriptor)
        super().close()


class Spool:
    """The body of an upload on its way in: counted, hashed, on disk, and readable while it still arrives."""

    def __init__(self, directory: Path | None, most_bytes: int):
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 closed by close()
        self.size = 0
        self._most = most_bytes
        self._hash = hashlib.sha256()
        self._news = Condition()
        self._whole = self._abandoned = False

    def admit(self, size: int) -> None:
        """TooLarge when so many bytes are too many, whether they have been written yet or not."""
        if size > self._most:
            raise TooLarge(f"an upload may have at most {self._most} bytes", limit=self._most)

    def write(self, *pieces: bytes) -> None:
        """Take the next bytes; TooLarge as soon as they are too many."""
        size = self.size + sum(map(len, pieces))
        self.admit(size)
        for piece in pieces:
            self._hash.update(piece)
            self.file.write(piece)
        with self._news:
            self.size = size
            self._news.notify_all()

    def finish(self) -> None:
        """Say that the last byte has arrived."""
        with self._news:
            self._whole = True
            self._news.notify_all()

    def abandon(self) -> None:
        """Give the upload up: whoever reads it, or waits for more of it, gets Abandoned."""
        with self._news:
            self._abandoned = True
            self._news.notify_all()

    def wait(self, size: int | None = None) -> int:
        """Wait until `size` bytes, or all, have arrived; returns how many there are."""
        with self._news:
            self._news.wait_for(
                lambda: self._abandoned or self._whole or (size is not None and self.size >= size)
            )
            if self._abandoned:
                raise Abandoned
            return self.size

    @property
    def sha256(self) -> str:
        """The digest of what has arrived."""
        return self._hash.hexdigest()

    def view(self) -> IO[bytes]:
        """The upload, to be read from the beginning, while it still arrives if need be."""
        return cast(IO[bytes], View(self))  # typeshed does not count RawIOBase among them

    def check(self, announced: str | None) -> None:
        """DigestMismatch when the bytes are not those that were announced."""
        if announced is not None and announced != self.sha256:
            raise DigestMismatch("the bytes that arrived have another SHA-256 than announced; upload again")

    def close(self) -> None:
        """Let the file go."""
        self.file.close()


def detect(content_type: str, head: bytes) -> str:
    """The format of a file, from what the caller says and from its first bytes; they must agree."""
    said = content_type.split(";")[0].strip().lower()
    found = next((name for magic, name in _MAGIC.items() if head.startswith(magic)), "csv")
    if not head:
        raise BadFormat("the upload is empty; send a file with at least a header line")
    if said in _UNSAID:
        return found
    if said not in FORMATS:
        raise BadFormat(
            f"uploads of type {said[:80]!r} are not taken; send one of {', '.join(sorted(FORMATS))}",
            status=415,
        )
    if FORMATS[said] != found:
        raise BadFormat(f"the upload is announced as {FORMATS[said]}, but its first bytes look like {found}")
    return found
