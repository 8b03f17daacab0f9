"""The columns that a question is about, cut into bins by public bounds and levels."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from core.arrays import Floats
from core.columns.base import StoredColumn
from core.data import Dense, Number, Stored, Table
from core.errors import InvalidRequest
from core.postprocessing.intervals import NoisyHistograms
from core.views import Binning, Bins

#: One bin that holds every record, whatever its values.
EVERYONE = Binning(0, (-(1 << 15), 1 << 16))


@dataclass(frozen=True)
class BinnedColumn:
    """A column and its bins; places on the column's line are empty where it has levels."""

    column: StoredColumn
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
        names = self.column.level_names
        return None if names is None else list(names)

    def value(self, place: float) -> Any:
        """A place on the line as a value of the column."""
        return self.column.edge(place)

    def to_json(self) -> dict[str, Any]:
        """The column and its bins: levels, or edges of which the last belongs to the last bin."""
        named: dict[str, Any] = {"column": self.name, "kind": self.column.kind}
        if self.levels is not None:
            named["levels"] = self.levels
        else:
            named["edges"] = [self.value(start) for start in self.starts]
        return {**named, "missing": self.binning.missing}

    def moments(self, released: NoisyHistograms, place: int, counts: Floats) -> dict[str, list[Any]]:
        """Mean and spread of each row of consistent counts, from the middles of bins; the rate of a boolean.

        On a log scale these are the geometric mean and a factor up or down. Where nothing was counted they
        are None. With the ends of their intervals, which follow from the histogram as released.
        """
        if not self.middles:
            return {}
        middles = np.array(self.middles)
        known = counts[:, : len(middles)]
        totals = known.sum(axis=1)
        shares = known / np.where(totals > 0, totals, 1.0)[:, None]
        means = np.where(totals > 0, shares @ middles, middles.mean())
        offsets = middles - means[:, None]
        spreads = np.sqrt((shares * offsets**2).sum(axis=1))
        half_bin = float((middles - self.starts[:-1]).max()) if self.starts else 0.0
        of_means, of_spreads = released.moments(place, middles, half_bin, means, spreads)
        found: dict[str, list[Any]] = {}
        for suffix, (first, second) in {
            "": (np.where(totals > 0, means, np.nan), np.where(totals > 0, spreads, np.nan)),
            "_low": (of_means.low, of_spreads.low),
            "_high": (of_means.high, of_spreads.high),
        }.items():
            named = self.column.moments(_known(first), _known(second))
            found.update({f"{name}{suffix}": values for name, values in named.items()})
        return found


def _known(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def with_intervals(released: NoisyHistograms, place: int, counts: Floats, totals: Floats) -> dict[str, Any]:
    """Consistent counts of each group and their shares of its size, with intervals."""
    shares = counts / np.maximum(totals, 1.0)[:, None]
    return {
        "counts": counts.tolist(),
        **released.counts(place, counts).to_json("counts"),
        "shares": shares.tolist(),
        **released.shares(place, shares).to_json("shares"),
    }


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


def declared_columns(stored: Stored) -> tuple[StoredColumn, ...]:
    """The stored columns; those of rows of numbers as a table would declare them."""
    if isinstance(stored, Table):
        return stored.stored
    assert isinstance(stored, Dense)
    return tuple(_number(stored, place) for place in range(stored.dimension))


def binned_columns(stored: Stored, names: Sequence[str], bins: int) -> tuple[BinnedColumn, ...]:
    """Columns with a bin for each level, or at most `bins` even bins between the public bounds."""
    if isinstance(stored, Table):
        places = {column.name: (place, column) for place, column in enumerate(stored.stored)}
        return tuple(_of_table(*places[name], bins) for name in names)
    assert isinstance(stored, Dense)
    return tuple(_of_dense(stored, stored.columns.index(name), bins) for name in names)


def _of_table(place: int, column: StoredColumn, bins: int) -> BinnedColumn:
    cuts = column.cut(bins)
    binning = Binning(place, cuts.edges, column.missing == "keep")
    return BinnedColumn(column, binning, cuts.starts, cuts.ends, cuts.middles)


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
