"""Columns of a table as the coordinates of centres, and how far apart they are, as a receipt states them."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
_BOOLEANS = {"true": 1.0, "yes": 1.0, "1": 1.0, "false": 0.0, "no": 0.0, "0": 0.0}
_GAPS = ("", "nan", "NaN", "NaT", "<NA>", "None")
_MISSING = "missing"
_DAY = 86_400


@dataclass(frozen=True)
class ClusteredColumn:
    """A column that a job clustered on: its coordinates, their ends and their weight in distances."""

    facts: Mapping[str, Any]
    weight: float
    #: Lowest and highest value: the declared ones, or those that private scaling released.
    ends: tuple[Any, Any] | None

    @property
    def name(self) -> str:
        return str(self.facts["name"])

    @property
    def levels(self) -> list[str] | None:
        """The levels of a category, that of missing values included; None for other columns."""
        if self.facts["kind"] != "category":
            return None
        return [*self.facts["levels"], *([_MISSING] if self.facts.get("missing") == "level" else [])]

    @property
    def bounds(self) -> list[tuple[float, float]]:
        """The lowest and the highest number of each coordinate."""
        if self.ends is None:
            return [(0.0, 1.0)] * len(self.levels or [self.name])
        low, high = (self._number(end) for end in self.ends)
        return [(low, high)]

    @property
    def scales(self) -> list[float]:
        """Factor of each coordinate, with which Euclidean distances are those of the job."""
        if self.levels is not None:
            return [self.weight / math.sqrt(2)] * len(self.levels)
        ((low, high),) = self.bounds
        return [self.weight / (high - low)]

    def coordinates(self, values: Any) -> Floats:
        """Values of rows as coordinates, clipped to the ends; raises ValueError if one cannot be read."""
        if getattr(values, "dtype", np.dtype(object)).kind == "M" and isinstance(values, np.ndarray):
            values = values.astype("datetime64[s]")  # of nanoseconds, objects would be numbers
        found = [_plain(value) for value in np.asarray(values, dtype=object).tolist()]
        gaps = sum(value is None for value in found)
        missing = self.facts.get("missing", "refuse")
        if gaps and missing not in ("fill", "level"):
            raise ValueError(f"column {self.name}: {gaps:,} rows have no value: fill them, or leave them out")
        filled = [(self.facts.get("fill") if value is None else value) for value in found]
        if self.levels is not None:
            return self._shares(filled)
        ((low, high),) = self.bounds
        return np.clip([[self._number(value)] for value in filled], low, high)

    def _shares(self, values: list[Any]) -> Floats:
        places = {level: place for place, level in enumerate(self.levels or [])}
        other = places.get(self.facts.get("other") or "")
        shares = np.zeros((len(values), len(places)))
        for row, value in enumerate(values):
            text = _MISSING if value is None else _text(value)
            place = places.get(text, places.get(unicodedata.normalize("NFC", text), other))
            if place is None:
                levels = ", ".join(places)
                raise ValueError(f"column {self.name}: {value!r} is not one of its levels ({levels})")
            shares[row, place] = 1.0
        return shares

    def _number(self, value: Any) -> float:
        """A value as a number on the column's line: its logarithm, days or seconds since 1970."""
        kind = self.facts["kind"]
        try:
            if kind == "boolean":
                return _BOOLEANS[_text(value).lower()]
            if kind == "number":
                number = float(value)
                if not math.isfinite(number):
                    raise ValueError("not finite")
                return self._logarithm(number) if self.facts.get("log") else number
            return float(math.floor(_seconds(value) / (_DAY if kind == "date" else 1)))
        except (KeyError, TypeError, ValueError):
            like = {"boolean": "true or false", "number": "a number"}.get(kind, "a moment such as 2030-12-31")
            raise ValueError(f"column {self.name}: {value!r} is not {like}") from None

    def _logarithm(self, value: float) -> float:
        offset, low = self.facts.get("offset", 0.0), self.facts["low"]
        return math.log(max(value, low) + offset)

    def words(self, number: float) -> str:
        """A number of a coordinate as people write it."""
        kind = self.facts["kind"]
        if kind == "number" and self.facts.get("log"):
            return f"{math.exp(number) - self.facts.get('offset', 0.0):,.3g}"
        if kind in ("date", "datetime"):
            moment = datetime.fromtimestamp(number * (_DAY if kind == "date" else 1), UTC)
            return f"{moment:%Y-%m-%d}" if kind == "date" else f"{moment:%Y-%m-%d %H:%M}"
        return f"{number:,.4g}"


@dataclass(frozen=True)
class TableGeometry:
    """The columns that a job on a table clustered on, in order."""

    columns: list[ClusteredColumn]

    @classmethod
    def of(cls, receipt: Mapping[str, Any], details: Mapping[str, Any]) -> TableGeometry:
        """The geometry of a job: its receipt's choices, and the ranges that private scaling released."""
        domain = receipt["domain"]
        chosen, ranges = domain["clustered"], details.get("ranges", {})
        declared = {facts["name"]: facts for facts in domain["columns"]}
        columns = []
        for name in chosen["columns"]:
            facts = declared[name]
            ends = ranges.get(name, (facts["low"], facts["high"])) if "low" in facts else None
            columns.append(ClusteredColumn(facts, chosen["weights"][name], ends and tuple(ends)))
        return cls(columns)

    def coordinates(self, rows: Any) -> Floats:
        """Rows (a DataFrame, a mapping, an array with fields, or a list of rows) as numbers of centres."""
        parts = [column.coordinates(self._values(rows, column.name)) for column in self.columns]
        return np.concatenate(parts, axis=1)

    def _values(self, rows: Any, name: str) -> Any:
        names = [column.name for column in self.columns]
        if hasattr(rows, "keys") or getattr(getattr(rows, "dtype", None), "names", None):
            try:
                return rows[name]
            except (KeyError, ValueError):
                raise ValueError(f"the rows lack the column {name}") from None
        table = [list(row) for row in rows]
        if any(len(row) != len(names) for row in table):
            raise ValueError(f"rows must have the columns {', '.join(names)}")
        return [row[names.index(name)] for row in table]

    def place(self, points: Floats) -> Floats:
        """Coordinates where straight distances order rows as the service's distances do."""
        scaled: Floats = points * np.array([scale for column in self.columns for scale in column.scales])
        return scaled

    def edges(self) -> tuple[Floats, Floats]:
        """The lowest and the highest number of each coordinate."""
        low, high = np.array([ends for column in self.columns for ends in column.bounds], np.float64).T
        return low, high

    @property
    def words(self) -> list[Callable[[float], str]]:
        """For each coordinate how its numbers are written."""
        return [column.words for column in self.columns for _ in column.bounds]


def _plain(value: Any) -> Any:
    """A value without surrounding blanks; None where it is missing."""
    text = _text(value)
    return None if text in _GAPS else text if isinstance(value, str) else value


def _text(value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # whole numbers with gaps arrive as floats
    return str(value).strip()


def _seconds(value: Any) -> float:
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    if not isinstance(moment, datetime):
        raise TypeError("not a moment")
    return (moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment).timestamp()
