"""Centres of a table in the curator's words: a mean, a geometric mean, a date, a rate or shares of levels."""

import math
from typing import Any

import numpy as np

from core.arrays import Floats
from core.data.columns import Boolean, Category, Column, Number, Ranged
from core.data.geometry import Geometry

#: What a centre is in a column that lies on a line, by the objective.
_MEASURES = {"means": "mean", "medians": "median"}


def describe(
    geometry: Geometry, centres: Floats, deviations: Floats | None, objective: str
) -> list[list[dict[str, Any]]]:
    """For each centre an entry for each column, in JSON.

    `centres` are as `Geometry.decode` returns them, `deviations` standard deviations of the noise in them. An
    entry has the column, its kind, a measure, a value or the shares of all levels, and the noise: in units of
    the value (days for a date, seconds for a time), or for a geometric mean a factor up or down.
    """
    return [
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


def ranges_of(geometry: Geometry) -> dict[str, list[Any]]:
    """The lowest and the highest value of each column with bounds, in JSON."""
    ranges = {}
    for line in geometry.lines:
        assert isinstance(line.column, Ranged)
        ends = line.decode(np.array([-line.half, line.half]))
        ranges[line.column.name] = [line.column.value(float(end)) for end in ends]
    return ranges


def _entry(column: Column, numbers: list[float], noise: float | None, measure: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"column": column.name, "kind": column.kind}
    if isinstance(column, Category):
        shares = dict(zip(column.names, numbers, strict=True))
        return {**entry, "measure": "shares", "shares": shares, "noise": noise}
    if isinstance(column, Boolean):
        return {**entry, "measure": "rate", "value": numbers[0], "noise": noise}
    assert isinstance(column, Ranged)
    value = column.value(numbers[0])
    if isinstance(column, Number) and column.log:
        factor = None if noise is None else math.exp(min(noise, 700.0))
        return {**entry, "measure": f"geometric {measure}", "value": value, "noise_factor": factor}
    return {**entry, "measure": measure, "value": value, "noise": noise}
