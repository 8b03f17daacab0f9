"""One of some public levels; other values are unknown, or become a level that is chosen for them."""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.columns.axes import Axis, Levels
from core.columns.base import Cuts, StoredColumn, says
from core.columns.cells import Cells, Proposed
from core.columns.notation import Notation
from core.columns.order import in_order
from core.columns.reading import Codes, Fault, Reading, as_text, composed

MOST_LEVELS = 256
#: The level that missing values become under "level".
MISSING_LEVEL = "missing"
#: Longest level that is proposed, in characters.
_LONGEST_LEVEL = 128
#: This many levels are proposed however few rows there are.
_FEW_LEVELS = 3
#: Levels are compared with unknown values up to this length.
_LONGEST_GUESS = 100
#: Most levels that are listed in words.
_LISTED = 8


@dataclass(frozen=True, kw_only=True)
class Category(StoredColumn):
    """One of some public levels."""

    kind = "category"
    title = "category"
    example: ClassVar[Mapping[str, Any]] = {
        "name": "region",
        "levels": ["north", "south", "other"],
        "other": "other",
    }
    has_levels = True
    is_discrete = True
    typical_difference = 1.0
    reads = frozenset({"boolean", "number"})
    proposed_for = frozenset({"text"})
    proposed_for_codes = True

    levels: tuple[str, ...]
    other: str | None = field(default=None, metadata=says("the level that all other values become"))
    fill: str | None = None

    def __post_init__(self) -> None:
        given: Any = self.levels
        if not isinstance(given, list | tuple) or not all(isinstance(e, str) and e.strip() for e in given):
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
    def words(self) -> str:
        more = f" and {len(self.levels) - _LISTED} more" if len(self.levels) > _LISTED else ""
        other = f"; anything else counts as {self.other}" if self.other else ""
        return f"one of {len(self.levels)} levels: {', '.join(self.levels[:_LISTED])}{more}{other}"

    @property
    def names(self) -> tuple[str, ...]:
        """The levels by code, that of missing values included."""
        return (*self.levels, MISSING_LEVEL) if self.missing == "level" else self.levels

    @property
    def level_names(self) -> tuple[str, ...]:
        return self.names

    @property
    def codes(self) -> int:
        return len(self.names)

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        code_of = {level: code for code, level in enumerate(self.levels)}
        texts, indices, missing = as_text(values, code_of)
        missing |= gaps
        other = code_of.get(self.other or "", -1)
        # Texts are found as they are declared; booleans and whole numbers by how they are written.
        code = [code_of.get(text, code_of.get(composed(text))) for text in texts]
        found = np.array([other if each is None else each for each in code], dtype=np.int64)[indices]
        declared = np.array([each is not None for each in code], dtype=np.bool_)[indices]
        faults = np.where(missing, Fault.MISSING, np.where(declared, Fault.NONE, Fault.UNKNOWN))
        usable = ~missing & (found >= 0)
        return Reading(np.maximum(found, 0).astype(np.uint16), faults.astype(np.uint8), usable)

    def problem(self, text: str, notation: Notation) -> str:
        close = difflib.get_close_matches(text, self.levels, 1) if len(text) < _LONGEST_GUESS else []
        advice = "correct it, add it as a level, or choose a level for all other values"
        if close:
            return f"is not one of the column's levels; did you mean “{close[0]}”? If not, {advice}"
        return f"is not one of the column's levels; {advice}"

    @property
    def scale(self) -> str:
        return "share"

    @property
    def width(self) -> int:
        return self.codes

    @property
    def longest(self) -> float:
        return (self.codes - 1) / (2 * self.codes)

    def axis(self, place: int, reach: float, codes: tuple[int, int]) -> Axis:
        return Levels(self, place, max(1, math.floor(reach / math.sqrt(2))))

    def cut(self, most: int) -> Cuts:
        return Cuts(tuple(range(self.codes + 1)))

    def moments(self, means: Sequence[float | None], spreads: Sequence[float | None]) -> dict[str, list[Any]]:
        return {}

    def entry(self, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
        shares = dict(zip(self.names, numbers, strict=True))
        return {"measure": "shares", "shares": shares, "noise": noise}

    def values(self, codes: Codes) -> npt.NDArray[Any]:
        return np.array(self.names)[codes]

    @classmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        """Levels if there are few: at most half as many as rows, except in a very short file."""
        levels = in_order(set(map(composed, cells.distinct)))
        few = 2 <= len(levels) <= min(MOST_LEVELS, max(_FEW_LEVELS, len(cells.present) // 2))
        if not few or not all(len(level) <= _LONGEST_LEVEL and level.isprintable() for level in levels):
            return None
        has_room = MISSING_LEVEL not in levels and len(levels) < MOST_LEVELS
        missing = {"missing": "level"} if cells.have_gaps and has_room else {}
        return Proposed({"levels": levels, **missing})
