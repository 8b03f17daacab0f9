"""Columns of a dataset in bins that follow from public bounds and levels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.arrays import Floats
from core.data import Boolean, Category, Column, Dense, Number, Stored, Table
from core.data.tables.ranged import Ranged
from core.errors import InvalidRequest
from core.views import Binning, Bins

#: One bin that holds every record, whatever its values.
EVERYONE = Binning(0, (-(1 << 15), 1 << 16))


@dataclass(frozen=True)
class BinnedColumn:
    """A column and its bins; places on the column's line are empty where it has levels."""

    column: Column
    binning: Binning
    #: The first value of each bin, and the last value of all.
    starts: tuple[float, ...] = ()
    #: Where bins end: half way between the last value of one and the first of the next.
    ends: tuple[float, ...] = ()
    #: The middle of each bin.
    middles: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def bins(self) -> int:
        """Number of bins, that of missing values included."""
        return self.binning.bins

    @cached_property
    def levels(self) -> list[str] | None:
        """Names of the levels, in the order of their bins; None where bins lie on a line."""
        if isinstance(self.column, Category):
            return list(self.column.names)
        return ["false", "true"] if isinstance(self.column, Boolean) else None

    def value(self, place: float) -> Any:
        """A place on the line as a value of the column."""
        assert isinstance(self.column, Ranged)
        value = self.column.value(place)
        return float(round(value)) if isinstance(self.column, Number) and self.column.whole else value

    def to_json(self) -> dict[str, Any]:
        """The column and its bins: levels, or edges of which the last belongs to the last bin."""
        named: dict[str, Any] = {"column": self.name, "kind": self.column.kind}
        if self.levels is not None:
            named["levels"] = self.levels
        else:
            named["edges"] = [self.value(start) for start in self.starts]
        return {**named, "missing": self.binning.missing}

    def moments(self, counts: Floats) -> dict[str, list[Any]]:
        """Mean and spread of each row of counts, from the middles of bins; the rate of a boolean.

        On a log scale these are the geometric mean and a factor up or down. Where nothing was counted the
        mean is None.
        """
        known = counts[:, : counts.shape[1] - self.binning.missing]
        totals = known.sum(axis=1)
        if isinstance(self.column, Boolean):
            return {"rates": [_over(float(row[1]), total) for row, total in zip(known, totals, strict=True)]}
        if self.levels is not None:
            return {}
        middles = np.array(self.middles)
        means, spreads = [], []
        for row, total in zip(known, totals, strict=True):
            mean = _over(float(row @ middles), total)
            means.append(None if mean is None else self._mean(mean))
            squared = None if mean is None else _over(float(row @ (middles - mean) ** 2), total)
            spreads.append(None if squared is None else self._spread(math.sqrt(squared)))
        return {"means": means, "spreads": spreads}

    @property
    def _log(self) -> bool:
        return isinstance(self.column, Number) and self.column.log

    def _mean(self, place: float) -> Any:
        assert isinstance(self.column, Ranged)
        return self.column.value(place)

    def _spread(self, deviation: float) -> float:
        return math.exp(min(deviation, 700.0)) if self._log else deviation


def _over(part: float, whole: float) -> float | None:
    return part / float(whole) if whole > 0 else None


def require_columns(stored: Stored, names: Sequence[str] | None, most: int | None = None) -> tuple[str, ...]:
    """The columns that a question names, or all; refuses unknown ones, repetitions and too many."""
    if not isinstance(stored, Table | Dense):
        raise InvalidRequest(
            f"questions are for tables and dense columns, not for {stored.kind} data: only clusterings can "
            "be asked for here",
            parameter="kind",
        )
    known = stored.columns
    chosen = known if names is None else tuple(names)
    unknown = [name for name in chosen if name not in known]
    if unknown:
        shown = ", ".join(known[:20])
        raise InvalidRequest(
            f"there is no column {unknown[0]!r}; the columns to choose from are: {shown}", parameter="columns"
        )
    if len(set(chosen)) != len(chosen) or not chosen:
        raise InvalidRequest("columns must name at least one column, each once", parameter="columns")
    if most is not None and len(chosen) > most:
        raise InvalidRequest(f"name at most {most} columns", parameter="columns")
    return chosen


def declared_columns(stored: Stored) -> tuple[Column, ...]:
    """The stored columns; those of rows of numbers as a table would declare them."""
    if isinstance(stored, Table):
        return tuple(stored.stored)
    assert isinstance(stored, Dense)
    return tuple(_number(stored, place) for place in range(stored.dimension))


def bounds_between(column: Ranged, low: float, high: float) -> tuple[Any, Any] | None:
    """Two places on a column's line as values inside its bounds; None where nothing lies between them."""
    ends: Any = column
    whole = isinstance(column, Number) and column.whole
    first, last = column.line
    pair = []
    for place, bound, outwards in ((low, ends.low, math.floor), (high, ends.high, math.ceil)):
        value = bound if not first < place < last else column.value(place)
        pair.append(float(outwards(value)) if whole else value)
    return (pair[0], pair[1]) if low < high and pair[0] != pair[1] else None


def binned_columns(stored: Stored, names: Sequence[str], bins: int) -> tuple[BinnedColumn, ...]:
    """Columns with a bin for each level, or at most `bins` even bins between the public bounds."""
    if isinstance(stored, Table):
        places = {column.name: (place, column) for place, column in enumerate(stored.stored)}
        return tuple(_of_table(*places[name], bins) for name in names)
    assert isinstance(stored, Dense)
    return tuple(_of_dense(stored, stored.columns.index(name), bins) for name in names)


def _of_table(place: int, column: Column, bins: int) -> BinnedColumn:
    missing, codes = column.missing == "keep", column.codes
    if not isinstance(column, Ranged):
        return BinnedColumn(column, Binning(place, tuple(range(codes + 1)), missing))
    bins = min(bins, codes)
    edges = [-(-number * codes // bins) for number in range(bins + 1)]
    codes_at = np.array(edges, dtype=np.float64)
    lines = (codes_at, codes_at - 0.5, (codes_at[:-1] + codes_at[1:] - 1) / 2)
    starts, ends, middles = (tuple(column.on_line(positions).tolist()) for positions in lines)
    return BinnedColumn(column, Binning(place, tuple(edges), missing), starts, ends, middles)


def _of_dense(domain: Dense, place: int, bins: int) -> BinnedColumn:
    column = _number(domain, place)
    points = np.zeros((bins + 1, domain.dimension)) + _middle(domain)
    points[:, place] = np.linspace(column.low, column.high, bins + 1)
    # A column that has fewer steps than bins gets fewer bins.
    edges, kept = np.unique(domain.encode_points(points)[:, place], return_index=True)
    along = points[kept, place]
    ends, middles = tuple(along.tolist()), tuple(((along[:-1] + along[1:]) / 2).tolist())
    return BinnedColumn(column, Binning(place, tuple(edges.tolist())), ends, ends, middles)


def _number(domain: Dense, place: int) -> Number:
    low, high = _bounds(domain, place)
    return Number(name=domain.columns[place], low=low, high=high, role="keep", missing="refuse")


def _middle(domain: Dense) -> Floats:
    middle: Floats = domain.decode(np.zeros((1, domain.dimension)))[0]
    return middle


def _bounds(domain: Dense, place: int) -> tuple[float, float]:
    if domain.low is not None and domain.high is not None:
        return domain.low[place], domain.high[place]
    assert domain.radius is not None
    middle = float(_middle(domain)[place])
    return middle - domain.radius, middle + domain.radius


def bins_of(stored: Stored, binnings: Sequence[Binning]) -> Bins:
    """The view of a dataset's rows in these bins."""
    return Bins(stored.fingerprint, tuple(binnings), signed=isinstance(stored, Dense))
