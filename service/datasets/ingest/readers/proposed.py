"""A proposal for how a text file is read, from its first bytes.

The separator follows from the header line alone, which is not a record. What the records themselves suggest
is listed in `from_rows`: it becomes a public fact only when the curator confirms that it is one. What is
declared already is proposed again unless the sample shows something else.
"""

import codecs
import csv
import io
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from service.datasets.ingest.readers.text import PLAIN, SEPARATORS, Dialect

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
#: Marks between groups of three digits, by the sign that declares them.
_GROUPING = {" ": " ", "\u00a0": " ", "\u202f": " ", "\u2009": " ", "'": "'", "\u2019": "'"}
_NUMBER = re.compile(rf"[+-]?[\d.,{''.join(_GROUPING)}]*\d")
_GROUPED = re.compile(rf"[+-]?[1-9]\d{{0,2}}([.,{''.join(_GROUPING)}])\d{{3}}(\1\d{{3}})*([.,]\d*)?")
#: One comma or point before three digits: a mark between groups of digits, or a decimal sign.
_AMBIGUOUS = re.compile(r"[+-]?[1-9]\d{0,2}[.,]\d{3}")


@dataclass(frozen=True)
class ProposedReading:
    """How a text file seems to be written; `from_rows` names what only its records show."""

    dialect: Dialect = PLAIN
    from_rows: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The proposal in the shape of a dataset's `reading`, without the header line."""
        facts = {name: value for name, value in self.dialect.to_json().items() if name != "header"}
        return {**facts, "from_rows": list(self.from_rows)}


def propose_reading(sample: bytes, declared: Dialect = PLAIN) -> ProposedReading:
    """Propose how a file is read that begins with these bytes, which may end anywhere."""
    encoding = _encoding(sample, declared.encoding)
    text = decoded(sample, encoding)
    header, _, body = text.partition("\n")
    separator = _separator(header, declared.separator)
    decimal, thousands = _signs(body, separator, declared)
    quoted_lines = declared.quoted_lines or _has_quoted_lines(text, separator)
    of_header = _encoding(sample.partition(b"\n")[0], declared.encoding)
    from_rows = {
        "decimal": decimal != declared.decimal,
        "encoding": encoding not in (declared.encoding, of_header),
        "thousands": thousands != declared.thousands,
        "quoted_lines": quoted_lines != declared.quoted_lines,
    }
    marked = tuple(name for name, is_marked in from_rows.items() if is_marked)
    dialect = Dialect(encoding, separator, decimal, thousands, quoted_lines, declared.header)
    return ProposedReading(dialect, marked)


def decoded(sample: bytes, encoding: str) -> str:
    """Return the text of the first bytes of a file, up to the last whole character."""
    name = "utf-8-sig" if encoding == "utf-8" else encoding
    return codecs.getincrementaldecoder(name)("replace").decode(sample)


def _encoding(sample: bytes, declared: str) -> str:
    """Return the first encoding in which these bytes mean something; ASCII leaves it open."""
    if sample.startswith(_UTF16_MARKS):
        return "utf-16"
    preferred = "utf-8" if declared == "utf-16" else declared
    if sample.isascii():
        return preferred
    for encoding in ("utf-8", preferred, "windows-1252"):
        try:
            codecs.getincrementaldecoder(encoding)().decode(sample)
        except UnicodeDecodeError:
            continue
        return encoding
    return "latin-1"


def _separator(header: str, declared: str) -> str:
    """Return the sign that cuts the header line into the most fields; the declared one where many do."""

    def fields(sign: str) -> int:
        try:
            return len(next(csv.reader([header], delimiter=sign), []))
        except csv.Error:
            return 0

    return max((declared, *SEPARATORS), key=fields)


def _signs(body: str, separator: str, declared: Dialect) -> tuple[str, str]:
    """Return the decimal sign, and the mark between groups of digits, that most numbers show."""
    cells = Counter(_numbers(body, separator))
    votes: Counter[str] = Counter()
    for text, times in cells.items():
        votes[decimal_sign(text)] += times
    decimal = max((declared.decimal, ".", ","), key=lambda sign: votes[sign])
    marks: Counter[str] = Counter()
    for text, times in cells.items():
        grouped = _GROUPED.fullmatch(text)
        if grouped and grouped[1] != decimal:
            marks[_GROUPING.get(grouped[1], grouped[1])] += times
    unseen = "" if declared.thousands == decimal else declared.thousands
    return decimal, marks.most_common(1)[0][0] if marks else unseen


def _numbers(body: str, separator: str) -> Iterator[str]:
    try:
        for record in csv.reader(io.StringIO(body, newline=""), delimiter=separator):
            yield from (cell for field in record if _NUMBER.fullmatch(cell := field.strip()))
    except csv.Error:
        return


def decimal_sign(text: str) -> str:
    """Return the decimal sign that a number shows; nothing where the number leaves it open."""
    marks = [sign for sign in text if sign in ",."]
    if not marks or not _NUMBER.fullmatch(text) or _AMBIGUOUS.fullmatch(text):
        return ""
    if len(marks) == 1 or len(set(marks)) == 2:
        return marks[-1]
    if _GROUPED.fullmatch(text):  # 1.234.567: a decimal sign does not repeat
        return "," if marks[0] == "." else "."
    return ""


def _has_quoted_lines(text: str, separator: str) -> bool:
    """Return True if some quoted field goes on over an end of line, and its record has all fields."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True)
    width, started = None, 0
    try:
        for record in reader:
            if width is None:
                width = len(record)
            elif reader.line_num > started + 1 and len(record) == width:
                return True
            started = reader.line_num
    except csv.Error:  # a quote that ends nowhere, or not before a separator
        return False
    return False
