"""Yes or no: true and false, yes and no, 1 and 0."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.base import Cuts, over
from core.columns.cells import Cells, Proposed
from core.columns.line import OnLine
from core.columns.notation import Notation
from core.columns.reading import Codes, Parsed, as_booleans, is_yes_or_no


@dataclass(frozen=True, kw_only=True)
class Boolean(OnLine):
    """Yes or no: true and false, yes and no, 1 and 0."""

    kind = "boolean"
    title = "yes or no"
    example: ClassVar[Mapping[str, Any]] = {"name": "smoker", "missing": "drop"}
    is_discrete = True
    reads = frozenset({"boolean", "number"})
    proposed_for = frozenset({"boolean", "text"})
    line = (0.0, 1.0)
    codes = 2
    level_names = ("false", "true")

    fill: bool | None = None

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        return as_booleans(values)

    def problem(self, text: str, notation: Notation) -> str:
        return "is neither yes nor no (yes, no, true, false, 1, 0); correct it, or make the column a category"

    def cut(self, most: int) -> Cuts:
        return Cuts((0, 1, 2))

    def moments(self, counts: Floats, middles: Floats) -> dict[str, list[Any]]:
        totals = counts.sum(axis=1)
        return {"rates": [over(float(row[1]), total) for row, total in zip(counts, totals, strict=True)]}

    def entry(self, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
        return {"measure": "rate", "value": numbers[0], "noise": noise}

    def values(self, codes: Codes) -> npt.NDArray[Any]:
        return np.equal(codes, 1)

    @classmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        fits = all(map(is_yes_or_no, cells.distinct)) or set(cells.distinct) == {"0", "1"}
        return Proposed() if fits else None
