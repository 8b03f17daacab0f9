"""Values of one column as whole steps, with what was wrong with each of them."""

import enum
import math
import re
import unicodedata
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.missing import is_missing

#: A stored step: of a column's range, or the code of a level.
Codes = npt.NDArray[np.uint16]
#: The code of a value that stays missing.
MISSING_CODE = 65535
#: Most codes that a column has besides that one.
MOST_CODES = 65535
_SECOND = np.timedelta64(1, "s")
#: A date of three numbers, at the beginning of a text.
LOCAL_DATE = re.compile(r"(\d{1,4})\s?[./-]\s?(\d{1,2})\s?[./-]\s?(\d{1,4})(?![\d./-])")
_PLAIN = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: Words for yes and no.
_WORDS = {"true": 1.0, "t": 1.0, "yes": 1.0, "y": 1.0, "false": 0.0, "f": 0.0, "no": 0.0, "n": 0.0}


class Fault(enum.IntEnum):
    """Outcome of reading a value."""

    NONE = 0
    MISSING = 1
    UNREADABLE = 2
    #: A level that is not declared.
    UNKNOWN = 3
    #: Outside the bounds, and moved to them.
    BELOW = 4
    ABOVE = 5


@dataclass(frozen=True, eq=False)
class Reading:
    """The codes of some values of one column.

    `codes` is valid only where `usable` is true: a filled gap is usable, an undeclared level without a
    catch-all is not.
    """

    codes: Codes
    faults: npt.NDArray[np.uint8]
    usable: npt.NDArray[np.bool_]

    def take(self, indices: npt.NDArray[np.integer[Any]]) -> Self:
        """The readings of these values again: for a column that came as distinct values and indices."""
        return type(self)(self.codes[indices], self.faults[indices], self.usable[indices])

    def counts(self) -> dict[str, int]:
        """Number of values of each fault, by its name in small letters; for the owner of the rows alone."""
        found = np.bincount(self.faults, minlength=len(Fault))
        return {fault.name.lower(): int(found[fault]) for fault in Fault if fault is not Fault.NONE}


#: Numbers, and masks of those that are missing and of those that could not be read.
Parsed = tuple[Floats, npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


def as_numbers(values: npt.NDArray[Any]) -> Parsed:
    """Values as finite numbers."""
    if values.dtype.kind not in "fiub":
        return _of_distinct(values, _number)
    floats = values.astype(np.float64)
    missing = np.isnan(floats)
    unreadable = np.isinf(floats)
    return np.where(missing | unreadable, 0.0, floats), missing, unreadable


def is_yes_or_no(text: str) -> bool:
    """Whether a text is a word for yes or no."""
    return text.casefold() in _WORDS


def as_booleans(values: npt.NDArray[Any]) -> Parsed:
    """Values as 0 or 1: those two numbers, or a word for yes or no."""
    if values.dtype.kind in "fiub":
        numbers, missing, unreadable = as_numbers(values)
        return numbers, missing, unreadable | ((numbers != 0) & (numbers != 1))
    return _of_distinct(values, _boolean)


def as_seconds(values: npt.NDArray[Any], order: str | None = None) -> Parsed:
    """Dates and times as seconds since 1970 in UTC; text in the notation of ISO 8601, or in this order."""
    if values.dtype.kind != "M":
        return _of_distinct(values, lambda value: _seconds(value, order))
    missing = np.isnat(values)
    seconds = (values - np.datetime64(0, "s")) / _SECOND
    return np.where(missing, 0.0, seconds), missing, np.zeros(len(values), dtype=np.bool_)


def as_text(
    values: npt.NDArray[Any], levels: Collection[str] = ()
) -> tuple[list[str], npt.NDArray[np.intp], npt.NDArray[np.bool_]]:
    """The distinct texts among the values, the index of each value's own, and a mask of missing ones.

    No level is missing, whatever it is called.
    """
    distinct, indices = _distinct(values)
    texts = [_text(value) for value in distinct]
    missing = np.array([is_missing(text) and text not in levels for text in texts], dtype=np.bool_)
    return texts, indices, missing[indices]


def composed(text: str) -> str:
    """A text in Unicode's composed form (NFC), as levels are declared: programs write “é” in two ways."""
    return unicodedata.normalize("NFC", text)


def _of_distinct(values: npt.NDArray[Any], parse: Callable[[Any], float]) -> Parsed:
    """Parse each distinct value once."""
    distinct, indices = _distinct(values)
    numbers = np.zeros(len(distinct))
    missing, unreadable = np.zeros((2, len(distinct)), dtype=np.bool_)
    for place, value in enumerate(distinct):
        if is_missing(_text(value)):
            missing[place] = True
            continue
        try:
            numbers[place] = parse(value)
        except (TypeError, ValueError, OverflowError):
            unreadable[place] = True
    unreadable |= ~np.isfinite(numbers)
    numbers[unreadable] = 0.0
    return numbers[indices], missing[indices], unreadable[indices]


def _distinct(values: npt.NDArray[Any]) -> tuple[list[Any], npt.NDArray[np.intp]]:
    places: dict[tuple[type, Any], int] = {}
    found = values.tolist()
    # NaN is not equal to itself; true and 1 are equal, but not the same value.
    keys = (
        (str, "") if value is None or (isinstance(value, float) and value != value) else (type(value), value)
        for value in found
    )
    indices = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.intp, len(found))
    return [value for _, value in places], indices


def _text(value: Any) -> str:
    """A value as text without surrounding blanks."""
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # a column of whole numbers with gaps arrives as floats
    return str(value).strip()


def _number(value: Any) -> float:
    """A number; of texts, those in plain decimal notation."""
    if isinstance(value, (str, bytes)):
        value = _text(value)
        if not _PLAIN.fullmatch(value):
            raise ValueError("not a number")
    return float(value)


def _boolean(value: Any) -> float:
    word = _text(value).lower()
    number = _WORDS[word] if word in _WORDS else _number(word)
    if number not in (0.0, 1.0):
        raise ValueError("not a boolean")
    return number


def _seconds(value: Any, order: str | None = None) -> float:
    moment = value if hasattr(value, "isoformat") else _iso(_text(value), order)
    read = datetime.fromisoformat(moment if isinstance(moment, str) else moment.isoformat())
    read = read.replace(tzinfo=UTC) if read.tzinfo is None else read
    return read.timestamp()


def _iso(text: str, order: str | None) -> str:
    """A moment in the notation of ISO 8601; a date that begins with a year is in that order."""
    found = LOCAL_DATE.match(text)
    if found is None:
        return text
    parts = dict(zip("ymd" if len(found[1]) == 4 else order or "ymd", found.groups(), strict=True))
    if len(parts["y"]) != 4:
        raise ValueError("years have four digits")
    day = f"{parts['y']}-{int(parts['m']):02d}-{int(parts['d']):02d}"
    time = text[found.end() :]
    return f"{day} {time.strip()}" if time[:1].isspace() else day + time


def on_line(numbers: Floats, low: float, high: float, codes: int) -> tuple[Codes, npt.NDArray[np.uint8]]:
    """The nearest of `codes` even steps from `low` to `high`, and which numbers lay outside."""
    faults = np.where(numbers < low, Fault.BELOW, np.where(numbers > high, Fault.ABOVE, Fault.NONE))
    position = (np.clip(numbers, low, high) - low) / (high - low) * (codes - 1)
    return np.rint(position).astype(np.uint16), faults.astype(np.uint8)


def seconds_of(text: str) -> float:
    """Seconds since 1970 of a date or a time in the notation of ISO 8601; ValueError for any other text."""
    seconds = _seconds(text)
    if not math.isfinite(seconds):
        raise ValueError("not a moment")
    return seconds
