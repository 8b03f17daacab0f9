"""Yes or no: true and false, yes and no, 1 and 0."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.columns.base import Cuts
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
    typical_difference = 1.0
    reads = frozenset({"boolean", "number"})
    proposed_for = frozenset({"boolean", "text"})
    line = (0.0, 1.0)
    codes = 2
    level_names = ("false", "true")
    scale = "share"

    fill: bool | None = None

    def _parse(self, values: npt.NDArray[Any]) -> Parsed:
        return as_booleans(values)

    def problem(self, text: str, notation: Notation) -> str:
        return "is neither yes nor no (yes, no, true, false, 1, 0); correct it, or make the column a category"

    def cut(self, most: int) -> Cuts:
        return Cuts((0, 1, 2), middles=self.line)

    def moments(self, means: Sequence[float | None], spreads: Sequence[float | None]) -> dict[str, list[Any]]:
        return {"rates": list(means)}

    def entry(self, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
        return {"measure": "rate", "value": numbers[0], "noise": noise}

    def values(self, codes: Codes) -> npt.NDArray[Any]:
        return np.equal(codes, 1)

    @classmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        fits = all(map(is_yes_or_no, cells.distinct)) or set(cells.distinct) == {"0", "1"}
        return Proposed() if fits else None
