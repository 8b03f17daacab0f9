"""How delimited text is read: a public fact of a dataset, declared before the file is read.

Nothing of it follows from the records of a file. Each record is decoded, split and parsed by these facts
alone, so that no record decides how another is read (`records`, `numbers`).
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import IO, Any, Self

from core.columns.notation import Notation
from service.datasets.ingest.spool import Spool, detect
from service.errors import BadFormat
from service.operations.settings import Settings

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
ENCODINGS = {"utf-8": "UTF-8", "utf-16": "UTF-16", "windows-1252": "Windows-1252", "latin-1": "Latin-1"}
_PIECE = 1 << 20


@dataclass(frozen=True)
class Dialect:
    """How a delimited text file is written."""

    encoding: str = "utf-8"
    separator: str = ","
    decimal: str = "."
    #: The mark between groups of three digits; empty where numbers have none.
    thousands: str = ""
    #: Whether a field in quotes may contain line breaks; otherwise every line is a record.
    quoted_lines: bool = False
    #: Whether the first line names the columns.
    header: bool = True

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Return the dialect that `to_json` described."""
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        """Return the dialect as it is stored."""
        return asdict(self)

    @property
    def words(self) -> str:
        """The dialect in words."""
        marks = {" ": "blanks", "'": "apostrophes", ",": "commas", ".": "points"}
        notes = [
            f"separated by {SEPARATORS[self.separator]}",
            ENCODINGS[self.encoding],
            "decimal commas" if self.decimal == "," else "decimal points",
        ]
        if self.thousands:
            notes.append(f"{marks[self.thousands]} between thousands")
        if self.quoted_lines:
            notes.append("line breaks in quoted fields")
        if not self.header:
            notes.append("no header line")
        return ", ".join(notes)

    @cached_property
    def notation(self) -> Notation:
        """How numbers are written."""
        return Notation(self.decimal, self.thousands)


#: UTF-8 text with commas between fields, decimal points and a header line.
PLAIN = Dialect()


def unpack(file: IO[bytes], directory: Path | None, most_bytes: int) -> Spool:
    """Return the content of a gzip file; TooLarge as soon as it is too long."""
    spool = Spool(directory, most_bytes)
    unpacker, whole = zlib.decompressobj(wbits=31), True
    try:
        while piece := file.read(_PIECE):
            while piece:
                spool.write(unpacker.decompress(piece, _PIECE))
                piece, whole = unpacker.unconsumed_tail, unpacker.eof
                if whole:  # several members may follow each other
                    piece, unpacker = unpacker.unused_data, zlib.decompressobj(wbits=31)
        if not whole or spool.size == 0:
            raise BadFormat("the gzip file is empty or incomplete; compress it again")
    except zlib.error as error:
        spool.close()
        raise BadFormat("the gzip file is damaged; compress it again") from error
    except BaseException:
        spool.close()
        raise
    return spool


@contextmanager
def recognised(spool: Spool, content_type: str, settings: Settings) -> Iterator[tuple[str, Spool]]:
    """Yield the format of a file and its content, which is another file where it was packed by gzip."""
    found = detect(content_type, spool.open())
    if found != "gzip":
        yield found, spool
        return
    with unpack(spool.open(), settings.spool_directory, settings.max_upload_bytes) as unpacked:
        inner = detect("", unpacked.open())
        if inner == "gzip":
            raise BadFormat("this gzip file contains another gzip file; compress the table only once")
        yield inner, unpacked
