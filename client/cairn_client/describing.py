"""A first description of a table from the first lines of a file.

Delimited text is read on the curator's own computer, and nothing is sent. What is read off rows (levels,
bounds, gaps) is marked, since it becomes public: the curator must confirm it, column by column. Names are
never taken from a line that looks like data.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cairn_client.columns import Described

_SAMPLE = 1 << 18
_SEPARATORS = ",;\t|"
_NUMBER = re.compile(r"[+-]?[\d.,\u0020\u00a0\u202f'\u2019]*\d(e[+-]?\d+)?", re.IGNORECASE)
_DATE = re.compile(r"(\d{1,4})[-./](\d{1,2})[-./](\d{1,4})(?P<time>[T ]\d{1,2}:\d{2}.*)?")
_YES_OR_NO = {"true", "false", "yes", "no", "t", "f", "y", "n", "0", "1"}
_MISSING = {"", "na", "n/a", "nan", "null", "none", "nat", "<na>", "#n/a"}
_MOST_LEVELS = 30
#: Of a column: the facts that came from rows and were confirmed to be public.
CONFIRMED = "confirmed_from_rows"
#: Bounds that follow from what a column means, by words in its name.
_TEMPLATES: tuple[tuple[str, float, float], ...] = (
    (r"\bage\b|\balter\b", 0, 120),
    (r"\bbmi\b", 10, 80),
    (r"percent|\bpct\b|%", 0, 100),
    (r"\bhour\b", 0, 24),
    (r"\blat(itude)?\b", -90, 90),
    (r"\b(lon|lng|longitude)\b", -180, 180),
)


@dataclass(frozen=True)
class Proposal:
    """A column that may be declared so, and which facts of it were read off rows."""

    column: Described
    from_rows: tuple[str, ...] = ()

    def confirmed(self) -> Proposal:
        """The proposal with what came from rows confirmed as public; the service records which facts."""
        return Proposal({**self.column, **({CONFIRMED: list(self.from_rows)} if self.from_rows else {})})

    def to_json(self) -> Described:
        """The column for a file of descriptions; what came from rows is marked until it is confirmed."""
        return {**self.column, **({"from_rows": list(self.from_rows)} if self.from_rows else {})}


@dataclass(frozen=True)
class Description:
    """Proposals for all columns of a file; without names, where its first line looks like data."""

    columns: list[Proposal]
    problem: str = ""
    separator: str = field(default=",", repr=False)


def describe(path: str | Path) -> Description:
    """Read the first lines of a delimited text file and propose a kind for each of its columns."""
    sample = _sample(path)
    if not _is_text(sample):
        raise ValueError(f"{path} is not a text file: Client().describe has the service read other formats")
    lines = _decoded(sample).splitlines()
    return describe_lines(lines[:-1] if len(sample) == _SAMPLE else lines)


def is_text(path: str | Path) -> bool:
    """Return True for a file that can be described on this computer."""
    return _is_text(_sample(path))


def _sample(path: str | Path) -> bytes:
    """The first bytes of a file, unpacked if it is a gzip file."""
    with open(path, "rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    try:
        with gzip.open(path) if packed else open(path, "rb") as file:
            return file.read(_SAMPLE)
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise ValueError(f"{path} is a damaged gzip file: compress it again") from None


def _is_text(sample: bytes) -> bool:
    if sample.startswith((b"PK\x03\x04", b"PAR1", b"ARROW1")):
        return False
    return b"\0" not in sample[:1000] or sample.startswith((b"\xff\xfe", b"\xfe\xff"))


def describe_lines(lines: Sequence[str]) -> Description:
    """Propose a kind for each column of these lines."""
    if not lines or not lines[0].strip():
        raise ValueError("the first line is empty: put the names of the columns there")
    separator = max(_SEPARATORS, key=lambda sign: len(next(csv.reader([lines[0]], delimiter=sign))))
    names, *rows = ([each.strip() for each in row] for row in csv.reader(lines, delimiter=separator) if row)
    if any(_is_data(name) for name in names):
        words = "the first line looks like data, not like names of columns, so nothing was taken from it: "
        return Description([], f"{words}names are public; add a first line with the names", separator)
    columns = [[row[place] for row in rows if len(row) == len(names)] for place in range(len(names))]
    found = [_propose(name, values) for name, values in zip(names, columns, strict=True)]
    return Description(found, separator=separator)


def _decoded(sample: bytes) -> str:
    encoding = "utf-16" if sample.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        return sample.decode(encoding)
    except UnicodeDecodeError as error:
        broken_off = error.start > len(sample) - 4  # in the middle of the last sign
        return sample[: error.start].decode(encoding) if broken_off else sample.decode("latin-1")


def _is_data(name: str) -> bool:
    low = name.casefold()
    words = low in _MISSING or low in ("true", "false", "yes", "no")
    return bool(words or _NUMBER.fullmatch(name) or _DATE.fullmatch(name))


def _propose(name: str, values: Sequence[str]) -> Proposal:
    """The kind that fits all values; bounds and levels from the name's meaning, else from the rows."""
    present = [value for value in values if value.casefold() not in _MISSING]
    distinct = list(dict.fromkeys(present))
    if re.search(r"(^|_| )id$", name, re.IGNORECASE):
        return Proposal({"name": name, "kind": "text", "role": "id"})
    facts, from_rows = _kind(name, present, distinct)
    if len(present) < len(values) and facts["kind"] != "text":
        facts["missing"] = "level" if facts["kind"] == "category" else "drop"
        from_rows = (*from_rows, "missing")
    return Proposal({"name": name, **facts}, from_rows)


def _kind(name: str, present: Sequence[str], distinct: Sequence[str]) -> tuple[Described, tuple[str, ...]]:
    if not present:
        return {"kind": "text", "role": "ignore"}, ()
    if all(value.casefold() in _YES_OR_NO for value in distinct) and len(distinct) <= 2:
        return {"kind": "boolean"}, ()
    if all(_DATE.fullmatch(value) for value in distinct):
        return _moments(distinct)
    if all(_NUMBER.fullmatch(value) for value in distinct):
        return _numbers(name, distinct)
    if len(distinct) <= _MOST_LEVELS and len(distinct) < max(3, len(present) / 2):
        return {"kind": "category", "levels": sorted(distinct)}, ("levels",)
    return {"kind": "text", "role": "ignore"}, ()


def _moments(texts: Sequence[str]) -> tuple[Described, tuple[str, ...]]:
    matches = [match for text in texts if (match := _DATE.fullmatch(text))]
    kind = "datetime" if any(match["time"] for match in matches) else "date"
    order = "ymd" if all(len(match[1]) == 4 for match in matches) else "dmy"
    if order == "dmy" and any(int(match[2]) > 12 for match in matches):
        order = "mdy"
    days = sorted(_iso(match, order) for match in matches)
    written = {} if order == "ymd" else {"order": order}
    return {"kind": kind, "low": days[0], "high": days[-1], **written}, ("low", "high")


def _iso(match: re.Match[str], order: str) -> str:
    parts = dict(zip(order, match.groups()[:3], strict=True))
    return f"{int(parts['y']):04d}-{int(parts['m']):02d}-{int(parts['d']):02d}"


def _numbers(name: str, texts: Sequence[str]) -> tuple[Described, tuple[str, ...]]:
    comma = any(re.search(r",\d{1,2}$|,\d{4,}$", text) for text in texts)
    numbers = [_number(text, comma) for text in texts]
    whole = all(number.is_integer() for number in numbers)
    facts: Described = {"kind": "number", "whole": whole}
    spaced = name.replace("_", " ")
    for pattern, low, high in _TEMPLATES:
        if re.search(pattern, spaced, re.IGNORECASE):
            return {**facts, "low": low, "high": high}, ()
    low, high = min(numbers), max(numbers)
    return {**facts, "low": low, "high": high if high > low else low + 1}, ("low", "high")


def _number(text: str, comma: bool) -> float:
    kept = re.sub(r"[\s'\u2019]", "", text)
    return float(kept.replace(".", "").replace(",", ".") if comma else kept.replace(",", ""))


def confirmed(columns: Sequence[dict[str, Any]]) -> list[Described]:
    """The columns of a file of descriptions; ValueError while something read off rows is unconfirmed."""
    for column in columns:
        if unconfirmed := column.get("from_rows"):
            facts = " and ".join(unconfirmed)
            raise ValueError(
                f"column {column.get('name')}: {facts} came from the rows and would become public. Write "
                "what you know without them and delete its from_rows; or, if they are public, rename it to "
                f"{CONFIRMED}, or describe the file with --public"
            )
    return [{name: value for name, value in column.items() if name != "from_rows"} for column in columns]
