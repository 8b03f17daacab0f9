"""Results and made-up rows as CSV."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from typing import Any

import numpy.typing as npt

from service.operations.csv_cells import escaped


def result_csv(body: Mapping[str, Any]) -> str:
    """Return a result as CSV: a line for each cluster, numbered from 1, with what is known of its error."""
    columns = _columns(body["columns"], body["centres"])
    derived = _derived(body, columns)
    prefix = "cluster_" if set(derived) & set(columns) else ""
    names = ["cluster", *columns, *(prefix + name for name in derived)]
    lines = [
        [place + 1, *centre, *(values[place] for values in derived.values())]
        for place, centre in enumerate(_centres(body))
    ]
    return written(names, lines)


def _centres(body: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield each centre in the data's units; of a table, in the kinds of its columns."""
    if body.get("profiles") is None:
        yield from body["centres"]
        return
    for profile in body["profiles"]:
        yield _values(profile)


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


def _derived(body: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Sequence[Any]]:
    """Columns about the clusters: sizes with their noise, or intervals where k was left open."""
    found: dict[str, Sequence[Any]] = {}
    sizes, level, noise = body["sizes"], body.get("level"), (body.get("noise") or {}).get("size")
    if sizes is not None:
        found["size"] = sizes
        if noise is not None:
            found["size_noise"] = [noise] * len(sizes)
    if level is not None:
        found |= {end: level[end] for end in ("size_low", "size_high")}
        ends = {end: _ends(body, end) for end in ("low", "high")}
        for place, name in enumerate(columns):
            found |= {f"{name}_{end}": [values[place] for values in ends[end]] for end in ends}
    return found


def _ends(body: Mapping[str, Any], end: str) -> Sequence[Sequence[Any]]:
    """Ends of the intervals of each centre; of a table in the kinds of its columns."""
    if body.get("profiles") is None:
        ends: Sequence[Sequence[Any]] = body["level"][f"centre_{end}"]
        return ends
    return [_values(profile, f"_{end}") for profile in body["profiles"]]


def written(names: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    """Return lines as CSV, after a line of names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(escaped(names))
    writer.writerows(map(escaped, lines))
    return text.getvalue()
