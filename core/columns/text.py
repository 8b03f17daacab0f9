"""Text of any kind: an id, or a column that is left out."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.columns.base import Column
from core.columns.cells import Cells, Proposed
from core.columns.reading import Fault, Reading, as_text


@dataclass(frozen=True, kw_only=True)
class Text(Column):
    """Any text: an id, or a column that is left out. No value of it is stored."""

    kind = "text"
    title = "text"
    example: ClassVar[Mapping[str, Any]] = {"name": "patient", "role": "id"}
    roles = ("id", "ignore")
    proposed_for = frozenset({"boolean", "number", "date", "moment", "text"})
    proposed_for_codes = True

    codes = 0

    role: str = "ignore"
    fill: None = None

    def __post_init__(self) -> None:
        if self.is_stored or self.missing == "fill":
            raise self._wrong("text can only be an id or ignored: make it a category to cluster on it")
        super().__post_init__()

    def _read(self, values: npt.NDArray[Any], gaps: npt.NDArray[np.bool_]) -> Reading:
        _, _, missing = as_text(values)
        missing |= gaps
        faults = np.where(missing, Fault.MISSING, Fault.NONE).astype(np.uint8)
        return Reading(np.zeros(len(values), np.uint16), faults, ~missing)

    @classmethod
    def propose(cls, cells: Cells) -> Proposed | None:
        """Fits all cells, also where every one is missing."""
        return Proposed()
