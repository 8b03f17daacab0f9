"""Dates between bounds, in steps of a day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from core.columns.moments import EPOCH, Moments


@dataclass(frozen=True, kw_only=True)
class Date(Moments):
    """Dates between bounds."""

    kind = "date"
    scale = "date"
    title = "date"
    example: ClassVar[Mapping[str, Any]] = {
        "name": "visited",
        "low": "2024-01-01",
        "high": "2024-12-31",
        "order": "dmy",
    }
    proposed_for = frozenset({"date", "moment", "text"})
    unit = 86_400.0
    numpy_type = "datetime64[D]"
    is_timed = False
    ends_of_day = ("", "")

    def value(self, place: float) -> str:
        return (EPOCH + timedelta(days=round(place))).date().isoformat()
