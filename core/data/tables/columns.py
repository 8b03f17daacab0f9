"""Columns without an order, and the kinds of columns by name."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.data.tables.column import Column
from core.data.tables.ranged import Date, DateTime, Number
from core.data.tables.reading import Fault, Reading, as_booleans, as_text
from core.errors import InvalidDomain

MOST_LEVELS = 256
#: The level that missing values become under "level".
MISSING_LEVEL = "missing"


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
    has_levels: ClassVar[bool] = True
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
