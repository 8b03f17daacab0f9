"""Proposals for the columns of a table, from the first cells of a file.

Each fact that cells decide is listed in the proposal's `from_rows`, whatever they decide: it becomes a public
fact only when the curator confirms that it is one. What follows from a column's name or from the types of a
file is not listed.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from typing import Any

from core.data.tables.columns import MISSING_LEVEL, MOST_LEVELS
from service.datasets.ingest.readers.batch import is_missing

#: Longest level that a category may have, in characters.
_LONGEST_LEVEL = 128
#: Levels that are proposed however few rows there are.
_FEW_LEVELS = 3
#: Kinds that a column of text may have; the first that fits all of its values is proposed.
KINDS = ("boolean", "date", "datetime", "number", "category")
_YES_OR_NO = {"true", "false", "yes", "no", "t", "f", "y", "n"}
_ORDERS = ("ymd", "dmy", "mdy")
_MOMENT = re.compile(
    r"(\d{1,4})\s?[-./]\s?(\d{1,2})\s?[-./]\s?(\d{1,4})"
    r"(?P<time>[T ]\s*\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?\s?(Z|[+-]\d{2}:?\d{2})?)?"
)
_PLAIN = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?", re.IGNORECASE)
_CODE = re.compile(r"0\d+")
#: Other spellings of the blank and the apostrophe between groups of digits.
_MARKS = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2009": " ", "\u2019": "'"})
_LIKE_DATA = re.compile(
    r"[+-]?[\d.,\s'\u2019]*\d(e[+-]?\d+)?\s?%?|\d{1,4}[-./]\d{1,2}[-./]\d{1,4}.*", re.IGNORECASE
)
_ID_NAME = re.compile(
    r"(^|[\s_-])(id|ids|uuid|key|mrn|ssn)$"
    r"|^(patient|person|customer|subject|member|case|record)[\s_-]?(no|nr|number|id)?$",
    re.IGNORECASE,
)
_CODE_NAME = re.compile(r"\b(code|zip|plz|postcode|postal)\b", re.IGNORECASE)
#: Bounds that follow from what a column means, by words in its name.
_TEMPLATES: tuple[tuple[str, int, int], ...] = (
    (r"\b(age|alter)\b", 0, 120),
    (r"\bbmi\b", 10, 80),
    (r"percent|\bpct\b|%", 0, 100),
    (r"\bhour\b", 0, 24),
    (r"\blat(itude)?\b", -90, 90),
    (r"\b(lon|lng|longitude)\b", -180, 180),
)


Facts = dict[str, Any]


@dataclass(frozen=True)
class Cells:
    """The first cells of a column as text, with what its type in the file says about all values."""

    name: str
    texts: Sequence[str]
    #: Kinds that the type can hold; text can hold any.
    kinds: tuple[str, ...] = KINDS
    #: Whether the type holds whole numbers only.
    whole: bool = False


@dataclass(frozen=True)
class Numbers:
    """How numbers are written."""

    decimal: str = "."
    thousands: str = ""

    def read(self, text: str) -> float | None:
        """Return the number that a text stands for; None if it stands for none."""
        plain = text.translate(_MARKS)
        if self.thousands:
            mark = re.escape(self.thousands)
            if re.fullmatch(rf"[+-]?\d{{1,3}}({mark}\d{{3}})+([{self.decimal}]\d*)?", plain):
                plain = plain.replace(self.thousands, "")
        if self.decimal == ",":
            plain = plain.replace(".", " ").replace(",", ".")
        number = float(plain) if _PLAIN.fullmatch(plain) else math.nan
        return number if math.isfinite(number) else None


@dataclass(frozen=True)
class Proposal:
    """A column that may be declared like this, and which of its facts cells decided."""

    facts: Facts
    from_rows: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The column as `POST /v1/datasets` takes it, with what came from rows."""
        return {**self.facts, "from_rows": list(self.from_rows)}


def looks_like_data(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return True for a first line that must not be taken for names, which are public.

    It holds numbers, dates or gaps, or a text that occurs again below it in the same column.
    """
    written = names[1:] if names and not names[0] else names  # programs leave the name of an index empty
    if not written or any(_is_data(name) for name in written):
        return True
    below = [set(column) for column in zip(*(row for row in rows if len(row) == len(names)), strict=True)]
    return any(name and name in column for name, column in zip(names, below, strict=False))


def _is_data(name: str) -> bool:
    low = name.casefold()
    return bool(is_missing(name) or low in ("true", "false", "yes", "no") or _LIKE_DATA.fullmatch(name))


def propose(columns: Sequence[Cells], numbers: Numbers) -> list[Proposal]:
    """Propose a declaration of each column; one at most tells people apart."""
    person = next((place for place, each in enumerate(columns) if _ID_NAME.search(each.name)), None)
    return [_propose(each, numbers, place == person) for place, each in enumerate(columns)]


def _propose(cells: Cells, numbers: Numbers, is_person: bool) -> Proposal:
    if is_person:
        return Proposal({"name": cells.name, "kind": "text", "role": "id"})
    texts = [text.strip() for text in cells.texts]
    present = [text for text in texts if not is_missing(text)]
    kind, facts = _kind(cells, present, numbers)
    if kind == "text":
        return Proposal({"name": cells.name, "kind": kind, "role": "ignore"}, ("kind", "role"))
    facts = {"kind": kind, "role": "cluster", **facts, "missing": _missing(facts, len(present) < len(texts))}
    known = {"kind"} if len(cells.kinds) == 1 else set()
    if cells.whole:
        known.add("whole")
    if kind == "number" and (bounds := _usual_bounds(cells.name)):
        facts["low"], facts["high"] = bounds
        known |= {"low", "high"}
    if cells.kinds != KINDS:  # only text has an order of day, month and year
        facts.pop("order", None)
    return Proposal({"name": cells.name, **facts}, tuple(name for name in facts if name not in known))


def _missing(facts: Facts, has_gaps: bool) -> str:
    if not has_gaps:
        return "refuse"
    levels = facts.get("levels")
    has_room = levels is not None and MISSING_LEVEL not in levels and len(levels) < MOST_LEVELS
    return "level" if has_room else "drop"


def _usual_bounds(name: str) -> tuple[int, int] | None:
    spaced = name.replace("_", " ")
    return next(
        ((low, high) for pattern, low, high in _TEMPLATES if re.search(pattern, spaced, re.IGNORECASE)), None
    )


def _kind(cells: Cells, present: Sequence[str], numbers: Numbers) -> tuple[str, Facts]:
    """Return the first kind that all present values have, with the facts that only it has."""
    distinct = list(dict.fromkeys(present))
    has_codes = any(map(_CODE.fullmatch, distinct))
    is_code = "number" in cells.kinds and _CODE_NAME.search(cells.name.replace("_", " "))
    readers = {
        "boolean": lambda: _boolean(distinct),
        "date": lambda: _moments(distinct, timed=False),
        "datetime": lambda: _moments(distinct, timed=True),
        "number": lambda: None if has_codes else _number(distinct, numbers),
        "category": lambda: _category(distinct, len(present)),
    }
    for kind in ("category",) if is_code else cells.kinds:
        if present and (facts := readers[kind]()) is not None:
            return kind, facts
    return "text", {}


def _boolean(distinct: Sequence[str]) -> Facts | None:
    words = {text.casefold() for text in distinct}
    return {} if words <= _YES_OR_NO or words == {"0", "1"} else None


def _number(distinct: Sequence[str], numbers: Numbers) -> Facts | None:
    found = [numbers.read(text) for text in distinct]
    values = [value for value in found if value is not None]
    if len(values) < len(found):
        return None
    whole = all(value.is_integer() for value in values)
    low, high = _rounded(min(values), ROUND_FLOOR), _rounded(max(values), ROUND_CEILING)
    return {"low": low, "high": high if high > low else low + max(1, abs(low)), "whole": whole}


def _rounded(value: float, direction: str) -> float | int:
    """Round a bound outward to two significant digits, which hide the extreme that it comes from."""
    bound = float(Context(prec=2, rounding=direction).create_decimal(repr(value)))
    return int(bound) if bound.is_integer() else bound


def _moments(distinct: Sequence[str], *, timed: bool) -> Facts | None:
    """Return bounds that are whole years, and the order of day, month and year that fits all texts."""
    matches = [match for text in distinct if (match := _MOMENT.fullmatch(text))]
    if len(matches) < len(distinct) or any(match["time"] for match in matches) != timed:
        return None
    for order in _ORDERS:
        years = [_year(match, order) for match in matches]
        found = [year for year in years if year is not None]
        if len(found) == len(years):
            first, last = (f"{min(found):04d}-01-01", f"{max(found):04d}-12-31")
            ends = (f"{first}T00:00", f"{last}T23:59") if timed else (first, last)
            return {"low": ends[0], "high": ends[1], "order": order}
    return None


def _year(match: re.Match[str], order: str) -> int | None:
    """Return the year of a date in this order; None if its numbers are no date."""
    parts = dict(zip(order, match.groups()[:3], strict=True))
    try:
        day = date(int(parts["y"]), int(parts["m"]), int(parts["d"]))
    except ValueError:
        return None
    return day.year if len(parts["y"]) == 4 else None


def _category(distinct: Sequence[str], present: int) -> Facts | None:
    """Return levels if there are few enough: at most half as many as rows, except in a very short file."""
    few = 2 <= len(distinct) <= min(MOST_LEVELS, max(_FEW_LEVELS, present // 2))
    levels = sorted(distinct)
    short = all(len(level) <= _LONGEST_LEVEL and level.isprintable() for level in levels)
    return {"levels": levels} if few and short else None
