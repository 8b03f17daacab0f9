"""Moments between bounds, in steps of a second."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from core.columns.moments import EPOCH, Moments


@dataclass(frozen=True, kw_only=True)
class DateTime(Moments):
    """Moments between bounds, to the second; in UTC where no time zone is given."""

    kind = "datetime"
    scale = "datetime"
    title = "date and time"
    example: ClassVar[Mapping[str, Any]] = {
        "name": "admitted_at",
        "low": "2024-01-01T00:00",
        "high": "2024-12-31T23:59",
    }
    proposed_for = frozenset({"moment", "text"})
    unit = 1.0
    numpy_type = "datetime64[s]"
    is_timed = True
    ends_of_day = ("T00:00", "T23:59")

    def value(self, place: float) -> str:
        return (EPOCH + timedelta(seconds=round(place))).strftime("%Y-%m-%dT%H:%M:%SZ")
