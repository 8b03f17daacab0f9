"""Delimited text as people have it: packed or not, its encoding, separator and decimal sign found out.

All of it is decided from the first lines and the names of the columns, except for the encoding, for which the
whole file is read once. What was decided stands in the report.
"""

from __future__ import annotations

import codecs
import csv
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from service.datasets.ingest.readers.batch import Expected
from service.datasets.ingest.spool import Spool, detect
from service.errors import BadFormat
from service.operations.settings import Settings

GZIP = b"\x1f\x8b"
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_PIECE = 1 << 20
_SAMPLE = 1 << 18
_SAMPLED_LINES = 200
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
#: Blanks and apostrophes between groups of three digits.
_GROUPING = "\u0020\u00a0\u202f\u2009'\u2019"
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Dialect:
    """Dialect of a text file: its separator and decimal sign, with notes for the report."""

    separator: str = ","
    decimal: str = "."
    notes: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The dialect in words, for the report."""
        decimal = ["with decimal commas"] if self.decimal == "," else []
        return ", ".join([f"separated by {SEPARATORS[self.separator]}", *decimal, *self.notes])

    def number(self, text: str) -> float | None:
        """Return the number that a text stands for; None where it is none."""
        if _PLAIN.fullmatch(text) and self.decimal == ".":
            return float(text)
        other = "," if self.decimal == "." else "."
        grouped = rf"[+-]?\d{{1,3}}(([{other}{_GROUPING}])\d{{3}})(\2\d{{3}})*([{self.decimal}]\d*)?"
        if re.fullmatch(grouped, text):
            text = re.sub(rf"[{other}{_GROUPING}]", "", text)
        plain = text.replace(self.decimal, ".") if other not in text else text
        return float(plain) if _PLAIN.fullmatch(plain) and (self.decimal == "." or "." not in text) else None


#: Text with commas between fields and points in numbers.
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


def as_utf8(spool: Spool, directory: Path | None, most_bytes: int) -> tuple[Spool, str]:
    """Return a text file in UTF-8, the same one where it is already, and its encoding."""
    head = spool.open().read(4)
    encoding = next((name for mark, name in _UTF16.items() if head.startswith(mark)), "")
    if not encoding:
        if _is_utf8(spool.open()):
            return spool, "UTF-8"
        encoding = "latin-1"
    decoder = codecs.getincrementaldecoder(encoding)()
    written = Spool(directory, most_bytes)
    file = spool.open()
    try:
        while piece := file.read(_PIECE):
            written.write(decoder.decode(piece).removeprefix("\ufeff").encode("utf-8"))
        written.write(decoder.decode(b"", final=True).encode("utf-8"))
    except UnicodeError as error:
        written.close()
        raise BadFormat("the file is not whole UTF-16 text; save it as UTF-8 text") from error
    except BaseException:
        written.close()
        raise
    return written, "UTF-16" if encoding.startswith("utf-16") else "Latin-1"


def _is_utf8(file: IO[bytes]) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        while piece := file.read(_PIECE):
            decoder.decode(piece)
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def find_dialect(file: IO[bytes], expected: Expected | None, *notes: str) -> Dialect:
    """Find the separator and the decimal sign of a text file in UTF-8."""
    sample = file.read(_SAMPLE)
    text = sample.decode("utf-8-sig", "replace")
    lines = text.splitlines(keepends=True)[:_SAMPLED_LINES]
    if len(sample) == _SAMPLE and len(lines) > 1:
        lines = lines[:-1]
    separator = max(SEPARATORS, key=lambda each: _fit(lines, each, expected))
    return Dialect(separator, _decimal(lines, separator), notes)


def _fit(lines: list[str], separator: str, expected: Expected | None) -> tuple[int, int, int]:
    """Say how well a separator fits: columns found, width as expected, number of fields."""
    try:
        first = next(csv.reader(lines, delimiter=separator), [])
    except csv.Error:
        return (0, 0, 0)
    if expected is None:
        return 0, 0, len(first)
    names = {name.strip().casefold() for name in first}
    wanted = [*expected.columns, *([expected.id_column] if expected.id_column else [])]
    found = sum(name.strip().casefold() in names for name in wanted)
    return found, int(expected.positional and len(first) == len(wanted)), len(first)


def _decimal(lines: list[str], separator: str) -> str:
    """Return the comma where numbers with decimals have one, and none has a point."""
    votes = {",": 0, ".": 0}
    try:
        for record in csv.reader(lines[1:], delimiter=separator):
            for field in record:
                if sign := decimal_sign(field.strip()):
                    votes[sign] += 1
    except csv.Error:
        return "."
    return "," if votes[","] and not votes["."] else "."


def decimal_sign(text: str) -> str:
    """Return the decimal sign of a number, or nothing where it may be a mark between groups of digits."""
    if not re.fullmatch(rf"[+-]?[\d.,{_GROUPING}]*\d", text):
        return ""
    marks = [sign for sign in text if sign in ",."]
    if not marks or (len(marks) > 1 and len(set(marks)) == 1):
        return ""
    if len(set(marks)) == 1 and re.fullmatch(r"[+-]?[1-9]\d{0,2}[.,]\d{3}", text):
        return ""  # 1,234 or 1.234
    return marks[-1]
