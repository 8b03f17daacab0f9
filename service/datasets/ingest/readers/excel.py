"""Spreadsheets (Excel, OpenDocument) as CSV, read in a separate process with little memory.

A few bytes of a spreadsheet can stand for billions of cells, so the library that reads it gets a limit from
the operating system; what it cannot read within that limit is refused.
"""

import csv
import os
import resource
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from datetime import date, datetime
from itertools import islice
from pathlib import Path
from typing import IO, Any

from service.datasets.ingest.spool import Spool
from service.errors import BadFormat

#: Bytes of memory that the process that reads may have for an empty file.
_LEAST_MEMORY = 512 << 20
#: The most bytes that it may have, however large the file is.
_MOST_MEMORY = 2 << 30
#: Bytes for each byte of what a file unpacks to: a number has about 15 there, and a cell has 32 in memory.
_MEMORY_PER_BYTE = 8
#: The most bytes that a byte of a packed file stands for; what the file says of itself may be a lie.
_MOST_PACKED = 1032
_SECONDS = 300
_ADVICE = "save the sheet as CSV and upload that"


def to_csv(
    file: IO[bytes], directory: Path | None, most_bytes: int, most_rows: int = sys.maxsize
) -> tuple[Spool, str]:
    """Return the first sheet of a spreadsheet, or its first rows, as CSV, and what was read in words."""
    spool = Spool(directory, most_bytes)
    source, target = os.dup(file.fileno()), spool.file.fileno()
    try:
        done = subprocess.run(
            [
                *(sys.executable, "-m", __name__),
                *map(str, (source, target, _memory(file), most_bytes, most_rows)),
            ],
            pass_fds=(source, target),
            capture_output=True,
            text=True,
            check=False,
            timeout=_SECONDS,
        )
    except subprocess.TimeoutExpired:
        spool.close()
        raise BadFormat(f"the spreadsheet takes too long to read; {_ADVICE}") from None
    finally:
        os.close(source)
    if done.returncode != 0:
        spool.close()
        raise BadFormat(f"the spreadsheet is damaged, locked with a password, or too large; {_ADVICE}")
    spool.adopt()
    return spool, done.stdout


def _memory(file: IO[bytes]) -> int:
    """Return the bytes that reading a file may take: a small file has no right to much."""
    size = os.fstat(file.fileno()).st_size
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = min(sum(each.file_size for each in archive.infolist()), _MOST_PACKED * size)
    except (zipfile.BadZipFile, OSError, ValueError):  # of an old format, or damaged
        unpacked = size
    return min(_LEAST_MEMORY + _MEMORY_PER_BYTE * unpacked, _MOST_MEMORY)


def _text(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return int(value)
    return value.isoformat() if isinstance(value, date | datetime) else value


def _convert(source: int, target: int, memory: int, most_bytes: int, most_rows: int) -> None:
    """Write the first rows of the first sheet to a file, and say which one it was."""
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    from python_calamine import CalamineWorkbook

    os.lseek(source, 0, os.SEEK_SET)
    with os.fdopen(source, "rb", closefd=False) as file:
        workbook = CalamineWorkbook.from_filelike(file)
    sheet = workbook.get_sheet_by_index(0)
    with os.fdopen(target, "w", encoding="utf-8", newline="", closefd=False) as written:
        writer = csv.writer(written, lineterminator="\n")
        writer.writerows(_rows(sheet, most_rows))
    count = len(workbook.sheet_names)
    sys.stdout.write("the first sheet" if count > 1 else "the sheet")
    sys.stdout.write(f" (“{sheet.name}”{f', of {count}' if count > 1 else ''})")


def _rows(sheet: Any, most_rows: int) -> Iterator[list[Any]]:
    """Return the first rows, each as wide as the first or wider: cells of one row widen no other."""
    left = [""] * (sheet.start[1] if sheet.start else 0)
    width = None
    for row in islice(sheet.iter_rows(), most_rows):
        cells = [*left, *map(_text, row)]
        width = _filled(cells) if width is None else width
        yield cells[: max(width, _filled(cells))] if _filled(cells) else []


def _filled(cells: list[Any]) -> int:
    """Return the number of cells up to the last one that is not empty."""
    return next((place for place in range(len(cells), 0, -1) if cells[place - 1] != ""), 0)


if __name__ == "__main__":
    _convert(*map(int, sys.argv[1:]))
