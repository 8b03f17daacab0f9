"""Releases of tables in the curator's words: means, dates, rates, shares of levels; made-up records."""

from typing import Any

import numpy as np
import numpy.typing as npt

from core.arrays import Floats
from core.columns.base import StoredColumn
from core.columns.reading import Codes
from core.data.tables.geometry import Geometry

#: What a centre is in a column that lies on a line, by the objective.
_MEASURES = {"means": "mean", "medians": "median"}


Entries = list[list[dict[str, Any]]]


def describe(
    geometry: Geometry,
    centres: Floats,
    deviations: Floats | None,
    objective: str,
    ends: tuple[Floats, Floats] | None = None,
) -> Entries:
    """For each centre an entry for each column, in JSON.

    `centres` are as `Geometry.decode` returns them, `deviations` standard deviations of the noise in them. An
    entry has the column, its kind, a measure, a value or the shares of all levels, and the noise: in units of
    the value (days for a date, seconds for a time), or for a geometric mean a factor up or down. With the
    `ends` of the centres' intervals it has those of the value, or of each share, too.
    """
    found = [
        [
            _entry(
                axis.column,
                [float(number) for number in centre[part]],
                None if deviations is None else float(deviations[row, part].max()),
                _MEASURES[objective],
            )
            for axis, part in geometry.parts
        ]
        for row, centre in enumerate(centres)
    ]
    if ends is None:
        return found
    low, high = (describe(geometry, end, None, objective) for end in ends)
    return [list(map(_with_interval, *entries)) for entries in zip(found, low, high, strict=True)]


def describe_intervals(geometry: Geometry, centres: Floats, low: Floats, high: Floats) -> Entries:
    """As `describe`, of means with the ends of an interval in place of the noise."""
    entries = describe(geometry, centres, None, "means", (low, high))
    return [
        [{name: each[name] for name in each if name not in ("noise", "noise_factor")} for each in profile]
        for profile in entries
    ]


def _with_interval(entry: dict[str, Any], low: dict[str, Any], high: dict[str, Any]) -> dict[str, Any]:
    named = "shares" if "shares" in entry else "value"
    return {**entry, f"{named}_low": low[named], f"{named}_high": high[named]}


def records(geometry: Geometry, codes: Codes) -> npt.NDArray[Any]:
    """Made-up records, as `Geometry.codes` drew them: an array with a field for each column, of its kind."""
    columns = [axis.column for axis in geometry.axes]
    values = [column.values(codes[:, place]) for place, column in enumerate(columns)]
    found = np.empty(
        len(codes), [(column.name, each.dtype) for column, each in zip(columns, values, strict=True)]
    )
    for column, each in zip(columns, values, strict=True):
        found[column.name] = each
    return found


def ranges_of(geometry: Geometry) -> dict[str, list[Any]]:
    """The lowest and the highest value of each column with bounds, in JSON."""
    return {
        line.column.name: [
            line.column.value(float(end)) for end in line.decode(np.array([-line.half, line.half]))
        ]
        for line in geometry.lines
    }


def _entry(column: StoredColumn, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
    return {"column": column.name, "kind": column.kind, **column.entry(numbers, noise, measure)}
