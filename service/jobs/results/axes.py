"""The axes of a result's centres, for plots: from the receipt and what private scaling released."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sqlalchemy.orm import Session

from core.arrays import Floats
from core.columns.axes import Axis, Line
from core.columns.line import Ranged
from core.data import Dense, Domain, Geometry, Ids, Sparse
from core.plan import CLUSTER
from service.jobs.results import answers, stored
from service.operations.tables import Job

_EMPTY: dict[str, Any] = {"units": [], "low": [], "high": [], "scales": None, "offsets": None}


def axes(session: Session, job: Job) -> dict[str, Any]:
    """Return units, ends and scales of the coordinates of a job's centres; empty where it has none."""
    if job.kind != CLUSTER:
        return _EMPTY
    receipt = stored.receipt(session, job.id)
    ranges = (stored.part(session, job.id, "details") or {}).get("ranges", {})
    return of_domain(answers.clustered(receipt["domain"]), ranges)


def of_domain(domain: Domain, ranges: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    """Return the axes of a domain, of a table between the ranges that private scaling released."""
    if isinstance(domain, Ids):
        return _EMPTY
    if isinstance(domain, Geometry):
        return _of_table(domain, ranges)
    units = domain.unit_lengths()
    low, high = _ends(domain, len(units))
    return {**_EMPTY, "units": units.tolist(), "low": low.tolist(), "high": high.tolist()}


def _ends(domain: Dense | Sparse, width: int) -> tuple[Floats, Floats]:
    """The least and the greatest value of each coordinate."""
    if isinstance(domain, Dense) and domain.low is not None and domain.high is not None:
        return np.array(domain.low), np.array(domain.high)
    centre = np.array(domain.centre) if isinstance(domain, Dense) else np.zeros(width)
    assert domain.radius is not None
    return centre - domain.radius, centre + domain.radius


def _of_table(geometry: Geometry, ranges: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
    found: dict[str, list[Any]] = {name: [] for name in _EMPTY}
    for axis in geometry.axes:
        low, high = axis.column.line if isinstance(axis, Line) else (0.0, 1.0)
        for name, value in (
            ("units", _unit(axis, ranges)),
            ("low", low),
            ("high", high),
            ("scales", axis.column.scale),
            ("offsets", getattr(axis.column, "offset", 0.0)),
        ):
            found[name] += [value] * len(axis.names)
    return found


def _unit(axis: Axis, ranges: Mapping[str, Sequence[Any]]) -> float:
    """Length of a step, between the ends that private scaling released if it did."""
    column = axis.column
    if column.name not in ranges or not isinstance(column, Ranged):
        return axis.unit
    low, high = (column.place(end) for end in ranges[column.name])
    return (high - low) / axis.width
