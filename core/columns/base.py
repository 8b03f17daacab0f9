"""The base of all kinds of columns of a table, as a curator declares them before a row is read.

A kind is one class that declares everything about its columns: which facts describe them, how values are
read, which coordinates and bins they have, how released numbers are shown, and what is proposed for the cells
of a file. `core.columns.registry` lists the kinds; nobody else does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
import numpy.typing as npt

from core.columns.cells import Cells, FileType, Proposed
from core.columns.notation import Notation
from core.columns.reading import MISSING_CODE, Codes, Fault, Reading
from core.errors import InvalidDomain

if TYPE_CHECKING:
    from core.columns.axes import Axis

#: What a column is for: distances, later questions only, telling people apart, nothing.
Role = Literal["cluster", "keep", "id", "ignore"]
ROLES: tuple[Role, ...] = get_args(Role)
#: What a missing value does: refuses the file, leaves the row out, becomes the fill value, becomes a level of
#: its own, or (in columns that are kept for questions) stays missing.
Missing = Literal["refuse", "drop", "fill", "level", "keep"]
MISSING: tuple[Missing, ...] = get_args(Missing)
#: Least and largest weight of a column.
WEIGHTS = (1e-3, 1e3)
#: The typical (root mean squared) difference of two numbers, as a share of the distance of their bounds.
#: Bounds are declared with room to spare: nine standard deviations apart. Fair weights give it to all kinds.
TYPICAL_DIFFERENCE = 2**0.5 / 9


def says(description: str) -> Mapping[str, str]:
    """The metadata of a field that is a fact to declare: what it means, for API documents and forms."""
    return {"description": description}


@dataclass(frozen=True, kw_only=True)
class Column(ABC):
    """Public facts about a column; `weight` is how far apart two values at its ends are, or two levels."""

    #: The name of the kind in requests and receipts.
    kind: ClassVar[str]
    #: The name of the kind for people.
    title: ClassVar[str]
    #: The facts of a typical column.
    example: ClassVar[Mapping[str, Any]]
    #: What a column of this kind may be for.
    roles: ClassVar[tuple[Role, ...]] = ROLES
    #: Whether missing values may become a level of their own.
    has_levels: ClassVar[bool] = False
    #: Whether values lie between a lower and an upper bound, `low` and `high`.
    has_bounds: ClassVar[bool] = False
    #: Whether text is read as numbers in the notation of its file.
    is_numeric: ClassVar[bool] = False
    #: Types of a file, besides text, whose values are read.
    reads: ClassVar[frozenset[FileType]] = frozenset()
    #: Types of a file for whose values the kind is proposed, if they fit.
    proposed_for: ClassVar[frozenset[FileType]] = frozenset()
    #: How far apart two records typically are that differ, for a weight of one: two levels, or both ends.
    typical_difference: ClassVar[float] = TYPICAL_DIFFERENCE
    #: Whether the kind is proposed for digits that are codes, such as postcodes.
    proposed_for_codes: ClassVar[bool] = False

    name: str
    weight: float = 1.0
    role: str = "cluster"
    #: Empty takes "keep" for columns that are kept for questions, else "refuse".
    missing: str = ""
    fill: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InvalidDomain("every column needs a name", parameter="columns")
        if self.role not in self.roles:
            raise self._wrong(f"role must be one of {', '.join(self.roles)}")
        if self.missing == "":
            object.__setattr__(self, "missing", "keep" if self.role == "keep" else "refuse")
        object.__setattr__(self, "weight", read_weight(self.weight, self.name))
        for problem in self._problems_with_missing():
            raise self._wrong(problem)

    def _problems_with_missing(self) -> Iterator[str]:
        if self.missing not in MISSING:
            yield f"missing must be one of {', '.join(MISSING)}"
        if self.missing == "keep" and self.role == "cluster":
            yield "a column to cluster on cannot keep missing values: fill them, or drop the row"
        if self.role == "id" and self.missing not in ("refuse", "drop"):
            yield "a row without an id belongs to nobody: drop the row, or refuse the file"
        if self.missing == "level" and not self.has_levels:
            yield "only a category has a level for missing values: give a fill value"
        if (self.missing == "fill") != (self.fill is not None):
            yield 'give a fill value if missing is "fill", and only then'
        if self.missing == "fill" and not self._fills():
            yield f"the fill value {self.fill!r} is not a value of the column inside its bounds"

    def _wrong(self, problem: str) -> InvalidDomain:
        return InvalidDomain(f"column {self.name}: {problem}", parameter="columns")

    @classmethod
    def fair_weight(cls) -> float:
        """Weight by which two typical records differ as much as in a number: it follows from the kind."""
        return round(TYPICAL_DIFFERENCE / cls.typical_difference, 2)

    @classmethod
    def missing_choices(cls) -> tuple[Missing, ...]:
        """What may be declared for missing values, depending on the role."""
        if "keep" not in cls.roles:
            return ("refuse", "drop")
        return tuple(each for each in MISSING if each != "level" or cls.has_levels)

    @property
    def words(self) -> str:
        """The declared facts in words."""
        return self.title

    @property
    @abstractmethod
    def codes(self) -> int:
        """Number of codes that a stored value has, the one of missing values not counted."""

    @property
    def is_stored(self) -> bool:
        """True when rows keep a value of this column."""
        return self.role in ("cluster", "keep")

    def read(self, values: npt.ArrayLike, missing: npt.ArrayLike | None = None) -> Reading:
        """Values (numbers, booleans, texts or datetimes) as codes; `missing` marks further gaps.

        Each value is read by itself: those of a list keep their types, whatever the others are.
        """
        array = values if isinstance(values, np.ndarray) else _objects(values)
        gaps = np.zeros(len(array), dtype=np.bool_) if missing is None else np.asarray(missing, np.bool_)
        return self._filled(self._read(array, gaps))

    @abstractmethod
    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        """Values as codes; those of missing values are ignored."""

    def problem(self, text: str, notation: Notation) -> str:
        """What is wrong with a text that cannot be read, and what to do about it."""
        return f"is not a {self.kind}; correct it, or declare the column as text to leave it out"

    def _filled(self, found: Reading) -> Reading:
        code = self._missing_code
        if code is None:
            return found
        gaps = found.faults == Fault.MISSING
        return Reading(np.where(gaps, np.uint16(code), found.codes), found.faults, found.usable | gaps)

    @cached_property
    def _missing_code(self) -> int | None:
        """The code that a missing value is stored as; None where its row is not stored."""
        if self.missing == "keep":
            return MISSING_CODE
        if self.missing == "level":
            return self.codes - 1
        return int(self._fill_reading.codes[0]) if self.missing == "fill" else None

    @property
    def _fill_reading(self) -> Reading:
        return self._read(_objects([self.fill]), np.zeros(1, np.bool_))

    def _fills(self) -> bool:
        found = self._fill_reading
        return bool(found.usable[0]) and found.faults[0] == Fault.NONE

    @classmethod
    @abstractmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        """What to declare for columns that begin with these cells; None if the cells do not fit."""

    def to_json(self) -> dict[str, Any]:
        """The column as declared; `column_from_json` reads it."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        plain = {name: list(v) if isinstance(v, tuple) else v for name, v in given.items()}
        return {"kind": self.kind, **{name: value for name, value in plain.items() if value is not None}}


@dataclass(frozen=True)
class Cuts:
    """A stored column in bins."""

    #: The code at which each bin starts, and that after the last one.
    edges: tuple[int, ...]
    #: On the column's line: the first value of each bin, and the last value of all; empty where it has none.
    starts: tuple[float, ...] = ()
    #: Where bins end: half way between the last value of one and the first of the next.
    ends: tuple[float, ...] = ()
    #: The middle of each bin.
    middles: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class StoredColumn(Column):
    """A kind whose values rows can keep, in whole steps of its own: of its range, or the code of a level."""

    #: Whether values set groups apart however few records differ in them, as levels do.
    is_discrete: ClassVar[bool] = False

    @property
    def level_names(self) -> tuple[str, ...] | None:
        """The names of levels, by code; None where values lie on a line."""
        return None

    @property
    def scale(self) -> str:
        """What numbers of its coordinates are, for labels of axes: number, log, share, date or datetime."""
        return "number"

    @property
    @abstractmethod
    def width(self) -> int:
        """Number of coordinates."""

    @property
    @abstractmethod
    def longest(self) -> float:
        """The squared length of a record's part in this column, for a weight of one."""

    @abstractmethod
    def axis(self, place: int, reach: float, codes: tuple[int, int]) -> Axis:
        """The coordinates of codes, at this place of a row, whose ends or levels are `reach` units apart.

        Codes are clipped to those from the first to the last of `codes`, where the column lies on a line.
        """

    def matches(self, other: StoredColumn) -> bool:
        """Whether each code stands for the same value in another dataset's column, whatever its weight is."""
        if (self.kind, self.codes) != (other.kind, other.codes):
            return False
        codes = np.arange(self.codes).astype(np.uint16)
        return bool(np.array_equal(self.values(codes), other.values(codes)))

    @abstractmethod
    def cut(self, most: int) -> Cuts:
        """A bin for each level, or at most this many even bins between the bounds."""

    @abstractmethod
    def moments(self, means: Sequence[float | None], spreads: Sequence[float | None]) -> dict[str, list[Any]]:
        """Means and spreads of groups on the column's line, as people read them; None where unknown."""

    def value(self, place: float) -> Any:
        """A decoded coordinate, or a place between bins, as the curator would write it."""
        return place

    def edge(self, place: float) -> Any:
        """The edge of a bin as the curator would write it."""
        return self.value(place)

    @abstractmethod
    def entry(self, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
        """A released centre in this column, given its decoded coordinates and the noise in them."""

    @abstractmethod
    def values(self, codes: Codes) -> npt.NDArray[Any]:
        """The values of stored codes, as an array of their own type."""


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
