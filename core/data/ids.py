"""Domains of site numbers: every row names one of some public sites."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.data.base import LARGEST_DIMENSION, PublicFacts, whole
from core.errors import InvalidData


@dataclass(frozen=True, kw_only=True)
class Ids(PublicFacts):
    """Rows that name one of `count` public sites by its number."""

    kind: ClassVar[str] = "ids"
    count: int

    def __post_init__(self) -> None:
        super().__post_init__()
        whole(self.count, "count", 1, LARGEST_DIMENSION)

    @property
    def dimension(self) -> int:
        return 1

    @property
    def columns(self) -> tuple[str, ...]:
        return ("site",)

    def encode(self, rows: npt.ArrayLike) -> npt.NDArray[np.int32]:
        """Site numbers as int32; numbers outside 0..count-1 are clipped to the nearest site."""
        array = np.asarray(rows)
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            raise InvalidData("rows must be one column of site numbers")
        if not np.isfinite(array).all() or np.any(array != np.floor(array)):
            raise InvalidData("site numbers must be whole numbers")
        sites: npt.NDArray[np.int32] = np.clip(array, 0, self.count - 1).astype(np.int32)
        return sites

    def decode(self, units: npt.ArrayLike) -> Floats:
        """Centres among sites are the numbers of those sites."""
        return np.clip(np.asarray(units, dtype=np.float64), 0, self.count - 1)

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "count": self.count}
