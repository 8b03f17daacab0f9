"""Results and made-up rows as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy.typing as npt

from core.questions.view import rounded_to_noise
from service.operations.csv_cells import escaped

Rows = Sequence[Sequence[Any]]
_ENDS = ("low", "high")


def result_csv(body: Mapping[str, Any]) -> str:
    """Return a result as CSV: a line for each cluster, numbered from 1, with what is known of its error.

    Numbers that have an interval are rounded to their noise.
    """
    columns, known = (
        _columns(body["columns"], body["centres"]),
        body.get("level") or body.get("intervals") or {},
    )
    centres, *ends = _rounded(_centres(body), *(_ends(body, known, end) for end in _ENDS))
    derived = _sizes(body, known)
    for place, name in enumerate(columns if ends else ()):
        derived |= {
            f"{name}_{end}": [row[place] for row in rows] for end, rows in zip(_ENDS, ends, strict=True)
        }
    prefix = "cluster_" if set(derived) & set(columns) else ""
    names = ["cluster", *columns, *(prefix + name for name in derived)]
    lines = [
        [place + 1, *centre, *(values[place] for values in derived.values())]
        for place, centre in enumerate(centres)
    ]
    return written(names, lines)


def _rounded(*parts: Rows | None) -> list[Rows]:
    """Return rows of values and, where they are known, of both ends of intervals, rounded to the noise."""
    values, low, high = parts
    assert values is not None
    if low is None or high is None:
        return [values]
    rows = [
        list(zip(*map(rounded_to_noise, *row), strict=True)) for row in zip(values, low, high, strict=True)
    ]
    return [list(each) for each in zip(*rows, strict=True)]


def _centres(body: Mapping[str, Any]) -> Rows:
    """Return each centre in the data's units; of a table, in the kinds of its columns."""
    if body.get("profiles") is None:
        centres: Rows = body["centres"]
        return centres
    return [_values(profile) for profile in body["profiles"]]


def _ends(body: Mapping[str, Any], known: Mapping[str, Any], end: str) -> Rows | None:
    """Return ends of the intervals of each centre, where they are known."""
    name = f"centre_{end}"
    if name not in known or body.get("profiles") is None:
        return known.get(name)
    return [_values(profile, f"_{end}") for profile in body["profiles"]]


def _sizes(body: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return sizes with their noise and their intervals, as far as they are known."""
    sizes, noise = body["sizes"], (body.get("noise") or {}).get("size")
    if sizes is None:
        return {}
    found: dict[str, Sequence[Any]] = {"size": sizes}
    if noise is not None:
        found["size_noise"] = [noise] * len(sizes)
    if "size_low" in known:
        rows = list(map(rounded_to_noise, sizes, known["size_low"], known["size_high"]))
        ends = zip(("size", "size_low", "size_high"), zip(*rows, strict=True), strict=True)
        found |= dict(ends)
    return found


def _values(profile: Sequence[Mapping[str, Any]], end: str = "") -> list[Any]:
    """Values of a centre of a table, or of the ends of their intervals: a share for each level."""
    found = (entry.get(f"shares{end}", {"": entry.get(f"value{end}")}).values() for entry in profile)
    return [value for column in found for value in column]


def plain_rows(rows: npt.NDArray[Any]) -> list[list[Any]]:
    """Return made-up rows as JSON has them: of a table also levels, booleans, dates and times."""
    return [list(map(_plain, row)) for row in rows.tolist()]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    return value.isoformat() if isinstance(value, date) else value


def rows_csv(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return made-up rows as CSV."""
    return written(columns, rows)


def _columns(names: Sequence[str] | None, rows: Sequence[Sequence[float]]) -> Sequence[str]:
    return names or [f"x{place}" for place in range(len(rows[0]))]


def written(names: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    """Return lines as CSV, after a line of names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(escaped(names))
    writer.writerows(map(escaped, lines))
    return text.getvalue()
