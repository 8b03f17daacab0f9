"""Kinds of columns of a table, as a curator declares them before a row is read.

A column of a table is stored in whole steps of its own: even steps of its range, or the code of a level. How
columns of different kinds make up one geometry is for each job to say (`core.data.geometry`).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data.base import numbers
from core.data.reading import (
    MISSING_CODE,
    MOST_CODES,
    ORDERS,
    Fault,
    Parsed,
    Reading,
    as_booleans,
    as_numbers,
    as_seconds,
    as_text,
    on_line,
    seconds_of,
)
from core.errors import InvalidDomain

#: What a column is for: distances, later questions only, telling people apart, nothing.
ROLES = ("cluster", "keep", "id", "ignore")
#: What a missing value does: refuses the file, leaves the row out, becomes the fill value, becomes a level of
#: its own, or (in columns that are kept for questions) stays missing.
MISSING = ("refuse", "drop", "fill", "level", "keep")
MOST_LEVELS = 256
#: The level that missing values become under "level".
MISSING_LEVEL = "missing"
#: Heaviest column over the lightest one of a table.
WEIGHTS = (1e-3, 1e3)
_DAY = 86_400.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """Public facts about a column; `weight` is how far apart two values at its ends are, or two levels."""

    kind: ClassVar[str]
    name: str
    weight: float = 1.0
    role: str = "cluster"
    #: Empty takes "keep" for columns that are kept for questions, else "refuse".
    missing: str = ""
    fill: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidDomain("every column needs a name", parameter="columns")
        if self.role not in ROLES:
            raise self._wrong(f"role must be one of {', '.join(ROLES)}")
        if self.missing == "":
            object.__setattr__(self, "missing", "keep" if self.role == "keep" else "refuse")
        if self.missing not in MISSING:
            raise self._wrong(f"missing must be one of {', '.join(MISSING)}")
        object.__setattr__(self, "weight", read_weight(self.weight, self.name))
        if self.missing == "keep" and self.role == "cluster":
            raise self._wrong("a column to cluster on cannot keep missing values: fill them, or drop the row")
        if self.role == "id" and self.missing not in ("refuse", "drop"):
            raise self._wrong("a row without an id belongs to nobody: drop the row, or refuse the file")
        if self.missing == "level" and not isinstance(self, Category):
            raise self._wrong("only a category has a level for missing values: give a fill value")
        if (self.missing == "fill") != (self.fill is not None):
            raise self._wrong('give a fill value if missing is "fill", and only then')
        if self.missing == "fill" and not self._fills():
            raise self._wrong(f"the fill value {self.fill!r} is not a value of the column inside its bounds")

    def _wrong(self, problem: str) -> InvalidDomain:
        return InvalidDomain(f"column {self.name}: {problem}", parameter="columns")

    @property
    def stored(self) -> bool:
        """True when rows keep a value of this column."""
        return self.role in ("cluster", "keep")

    @property
    @abstractmethod
    def codes(self) -> int:
        """Number of codes that a stored value has, the one of missing values not counted."""

    def read(self, values: npt.ArrayLike, missing: npt.ArrayLike | None = None) -> Reading:
        """Values (numbers, booleans, texts or datetimes) as codes; `missing` marks further gaps."""
        array = np.asarray(values)
        gaps = np.zeros(len(array), dtype=np.bool_) if missing is None else np.asarray(missing, np.bool_)
        return self._filled(self._read(array, gaps))

    @abstractmethod
    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        """Values as codes, those that are missing being of no use yet."""

    def _filled(self, found: Reading) -> Reading:
        gaps = found.faults == Fault.MISSING
        code = self._missing_code
        if code is None:
            return found
        return Reading(np.where(gaps, np.uint16(code), found.codes), found.faults, found.usable | gaps)

    @cached_property
    def _missing_code(self) -> int | None:
        """The code that a missing value is stored as; None where its row is not stored."""
        match self.missing:
            case "keep":
                return MISSING_CODE
            case "level":
                return self.codes - 1
            case "fill":
                return int(self._read(np.array([self.fill]), np.zeros(1, np.bool_)).codes[0])
        return None

    def _fills(self) -> bool:
        found = self._read(np.array([self.fill]), np.zeros(1, np.bool_))
        return bool(found.usable[0]) and found.faults[0] == Fault.NONE

    def to_json(self) -> dict[str, Any]:
        """The column as declared; `column_from_json` reads it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in given.items()}
        return {"kind": self.kind, **{name: value for name, value in plain.items() if value is not None}}


def read_weight(value: Any, name: str) -> float:
    """A weight of a column, within limits that leave every column some steps of the geometry."""
    least, most = WEIGHTS
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InvalidDomain(
            f"column {name}: weight must be between {least:g} and {most:g}", parameter="weights"
        )
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Ranged(Column):
    """A column of values on a line: stored as even steps from one bound to the other."""

    @property
    @abstractmethod
    def line(self) -> tuple[float, float]:
        """The bounds where steps are even: of the values, of their logarithms, in days or in seconds."""

    @abstractmethod
    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        """Values on the line."""

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        found, missing, unreadable = self._parse(values)
        missing |= gaps
        unreadable &= ~missing
        codes, faults = on_line(found, *self.line, self.codes)
        faults[unreadable], faults[missing] = Fault.UNREADABLE, Fault.MISSING
        return Reading(codes, faults, ~(missing | unreadable))

    def on_line(self, positions: Floats) -> Floats:
        """Positions between codes, as released, on the line."""
        low, high = self.line
        return low + np.clip(positions / (self.codes - 1), 0.0, 1.0) * (high - low)

    @abstractmethod
    def value(self, place: float) -> Any:
        """A place on the line as a value that the curator would write."""

    def place(self, value: Any) -> float:
        """The place of a released value on the line, inside the bounds."""
        (found,), _, _ = self._parse(np.array([value]))
        return float(np.clip(found, *self.line))


@dataclass(frozen=True, kw_only=True)
class Number(Ranged):
    """Numbers between bounds; `whole` for counts, `log` where ratios matter rather than differences.

    With `log` steps are even in log(value + offset), so `low + offset` must be above zero.
    """

    kind: ClassVar[str] = "number"
    low: float
    high: float
    whole: bool = False
    log: bool = False
    offset: float = 0.0

    def __post_init__(self) -> None:
        for name in ("low", "high", "offset"):
            (value,) = numbers([getattr(self, name)], 1, name)
            object.__setattr__(self, name, value)
        if not isinstance(self.whole, bool) or not isinstance(self.log, bool):
            raise self._wrong("whole and log are true or false")
        if not self.low < self.high:
            raise self._wrong("low must be below high")
        if self.offset and not self.log:
            raise self._wrong("an offset is only possible on a log scale")
        if self.log and not self.low + self.offset > 0:
            raise self._wrong("on a log scale low + offset must be above zero: give an offset for zeros")
        if self.whole and not (self.low.is_integer() and self.high.is_integer()):
            raise self._wrong("bounds of whole numbers must be whole")
        super().__post_init__()

    @property
    def codes(self) -> int:
        if self.whole and not self.log:
            return int(min(self.high - self.low + 1, MOST_CODES))
        return MOST_CODES

    @cached_property
    def line(self) -> tuple[float, float]:
        if self.log:
            return math.log(self.low + self.offset), math.log(self.high + self.offset)
        return self.low, self.high

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        found, missing, unreadable = as_numbers(values)
        if self.whole:
            unreadable |= found != np.rint(found)
        if self.log:
            # Below the lower bound there may be no logarithm; anything there is moved to the bound.
            found = np.log(np.maximum(found + self.offset, (self.low + self.offset) / 2))
        return found, missing, unreadable

    def value(self, place: float) -> float:
        return math.exp(place) - self.offset if self.log else place


@dataclass(frozen=True, kw_only=True)
class _Moments(Ranged):
    """Dates or times between bounds in the notation of ISO 8601."""

    unit: ClassVar[float]
    low: str
    high: str
    #: Of year, month and day in text; by default as in ISO 8601.
    order: str | None = None

    def __post_init__(self) -> None:
        if self.order not in (None, *ORDERS):
            raise self._wrong(f"order must be one of {', '.join(ORDERS)}")
        for name in ("low", "high"):
            given = getattr(self, name)
            try:
                text = given if isinstance(given, str) else given.isoformat()
                object.__setattr__(self, name, text)
                seconds_of(text)
            except (AttributeError, TypeError, ValueError):
                raise self._wrong(f"{name} must be a {self.kind} such as 2030-12-31") from None
        if not self.line[0] < self.line[1]:
            raise self._wrong("low must be before high")
        super().__post_init__()

    @cached_property
    def line(self) -> tuple[float, float]:
        return self._place(seconds_of(self.low)), self._place(seconds_of(self.high))

    @property
    def codes(self) -> int:
        return int(min(self.line[1] - self.line[0] + 1, MOST_CODES))

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        seconds, missing, unreadable = as_seconds(values, self.order)
        return np.floor(seconds / self.unit), missing, unreadable

    def _place(self, seconds: float) -> float:
        return math.floor(seconds / self.unit)


@dataclass(frozen=True, kw_only=True)
class Date(_Moments):
    """Dates between bounds."""

    kind: ClassVar[str] = "date"
    unit: ClassVar[float] = _DAY

    def value(self, place: float) -> str:
        return (_EPOCH + timedelta(days=round(place))).date().isoformat()


@dataclass(frozen=True, kw_only=True)
class DateTime(_Moments):
    """Moments between bounds, to the second; without a time zone they are in UTC."""

    kind: ClassVar[str] = "datetime"
    unit: ClassVar[float] = 1.0

    def value(self, place: float) -> str:
        return (_EPOCH + timedelta(seconds=round(place))).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, kw_only=True)
class Boolean(Column):
    """True or false; a centre has the rate of true."""

    kind: ClassVar[str] = "boolean"

    @property
    def codes(self) -> int:
        return 2

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        found, missing, unreadable = as_booleans(values)
        missing |= gaps
        unreadable &= ~missing
        faults = np.where(missing, Fault.MISSING, np.where(unreadable, Fault.UNREADABLE, Fault.NONE))
        return Reading((found == 1).astype(np.uint16), faults.astype(np.uint8), ~(missing | unreadable))


@dataclass(frozen=True, kw_only=True)
class Category(Column):
    """One of some public levels; values that are none of them are unknown, or become the level `other`."""

    kind: ClassVar[str] = "category"
    levels: tuple[str, ...]
    other: str | None = None

    def __post_init__(self) -> None:
        given: Any = self.levels
        if isinstance(given, str) or not all(isinstance(level, str) and level.strip() for level in given):
            raise self._wrong("levels must be a list of texts that are not empty")
        object.__setattr__(self, "levels", tuple(level.strip() for level in given))
        if len(set(self.levels)) != len(self.levels):
            raise self._wrong("two levels are the same")
        if self.other is not None and self.other not in self.levels:
            raise self._wrong("other must be one of the levels")
        if self.missing == "level" and MISSING_LEVEL in self.levels:
            raise self._wrong(f'"{MISSING_LEVEL}" is the level of missing values: rename the declared one')
        if not 2 <= len(self.names) <= MOST_LEVELS:
            raise self._wrong(f"a category has between 2 and {MOST_LEVELS} levels")
        super().__post_init__()

    @property
    def names(self) -> tuple[str, ...]:
        """The levels by code, that of missing values included."""
        return (*self.levels, MISSING_LEVEL) if self.missing == "level" else self.levels

    @property
    def codes(self) -> int:
        return len(self.names)

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        texts, indices, missing = as_text(values)
        missing |= gaps
        code_of = {level: code for code, level in enumerate(self.levels)}
        other = code_of.get(self.other or "", -1)
        # Texts are found as they are declared; booleans and whole numbers by how they are written.
        found = np.array([code_of.get(text, other) for text in texts], dtype=np.int64)[indices]
        declared = np.array([text in code_of for text in texts], dtype=np.bool_)[indices]
        faults = np.where(missing, Fault.MISSING, np.where(declared, Fault.NONE, Fault.UNKNOWN))
        usable = ~missing & (found >= 0)
        return Reading(np.maximum(found, 0).astype(np.uint16), faults.astype(np.uint8), usable)


@dataclass(frozen=True, kw_only=True)
class Text(Column):
    """Any text: an id, or a column that is left out. No value of it is stored."""

    kind: ClassVar[str] = "text"
    role: str = "ignore"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.stored or self.missing == "fill":
            raise self._wrong("text can only be an id or ignored: make it a category to cluster on it")

    @property
    def codes(self) -> int:
        return 0

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        _, _, missing = as_text(values)
        missing |= gaps
        faults = np.where(missing, Fault.MISSING, Fault.NONE).astype(np.uint8)
        return Reading(np.zeros(len(values), np.uint16), faults, ~missing)


KINDS: dict[str, type[Any]] = {kind.kind: kind for kind in (Number, Boolean, Category, Date, DateTime, Text)}


def column_from_json(data: Mapping[str, Any]) -> Column:
    """The column that `to_json` described."""
    kind = KINDS.get(data.get("kind", "")) if isinstance(data.get("kind"), str) else None
    name = data.get("name", "")
    if kind is None:
        raise InvalidDomain(f"column {name}: kind must be one of {', '.join(KINDS)}", parameter="columns")
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in data.items() if key != "kind"}
    unknown = sorted(set(given) - {field.name for field in fields(kind)})
    if unknown:
        raise InvalidDomain(f"column {name}: a {kind.kind} has no {', '.join(unknown)}", parameter="columns")
    try:
        made: Column = kind(**given)
        return made
    except TypeError:
        wanted = {"number": "low and high", "category": "levels"}.get(kind.kind, "low and high")
        raise InvalidDomain(
            f"column {name}: a {kind.kind} needs a name, {wanted}", parameter="columns"
        ) from None
