"""The base of all kinds of columns of a table, as a curator declares them before a row is read.

A column of a table is stored in whole steps of its own: even steps of its range, or the code of a level. How
columns of different kinds make up one geometry is for each job to say (`core.data.tables.geometry`).
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.data.tables.reading import MISSING_CODE, Fault, Reading
from core.errors import InvalidDomain

#: What a column is for: distances, later questions only, telling people apart, nothing.
ROLES = ("cluster", "keep", "id", "ignore")
#: What a missing value does: refuses the file, leaves the row out, becomes the fill value, becomes a level of
#: its own, or (in columns that are kept for questions) stays missing.
MISSING = ("refuse", "drop", "fill", "level", "keep")
#: Heaviest column over the lightest one of a table.
WEIGHTS = (1e-3, 1e3)


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """Public facts about a column; `weight` is how far apart two values at its ends are, or two levels."""

    kind: ClassVar[str]
    #: Whether missing values may become a level of their own.
    has_levels: ClassVar[bool] = False
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
        if self.missing == "level" and not self.has_levels:
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
        """Values (numbers, booleans, texts or datetimes) as codes; `missing` marks further gaps.

        Each value is read by itself: those of a list keep their types, whatever the others are.
        """
        array = values if isinstance(values, np.ndarray) else _objects(values)
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


def _objects(values: Any) -> npt.NDArray[np.object_]:
    listed = list(values)
    array = np.empty(len(listed), dtype=object)
    array[:] = listed
    return array


def read_weight(value: Any, name: str) -> float:
    """A weight of a column, within limits that leave every column some steps of the geometry."""
    least, most = WEIGHTS
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not least <= value <= most:
        raise InvalidDomain(
            f"column {name}: weight must be between {least:g} and {most:g}", parameter="weights"
        )
    return float(value)
