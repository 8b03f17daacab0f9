"""Nameless files for what is under way, gone with the process, and the guess at a file's format."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import IO

from service.errors import BadFormat, DigestMismatch, TooLarge

__all__ = ["FORMATS", "Spool", "detect"]

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


class Spool:
    """The body of an upload on its way in: counted, hashed, on disk."""

    def __init__(self, directory: Path | None, most_bytes: int):
        self.file: IO[bytes] = tempfile.TemporaryFile(dir=directory, buffering=0)  # noqa: SIM115 closed by close()
        self.size = 0
        self._most = most_bytes
        self._hash = hashlib.sha256()

    def write(self, piece: bytes) -> None:
        """Take the next bytes; TooLarge as soon as they are too many."""
        self.size += len(piece)
        if self.size > self._most:
            raise TooLarge(f"an upload may have at most {self._most} bytes", limit=self._most)
        self._hash.update(piece)
        self.file.write(piece)

    @property
    def sha256(self) -> str:
        """The digest of what has arrived."""
        return self._hash.hexdigest()

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
