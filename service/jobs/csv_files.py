"""Results and made-up rows as CSV."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any


def result_csv(body: Mapping[str, Any]) -> str:
    """Return a result as CSV: a line for each cluster, numbered from 1, with what is known of its error."""
    columns = _columns(body["columns"], body["centres"])
    derived = _derived(body, columns)
    prefix = "cluster_" if set(derived) & set(columns) else ""
    names = ["cluster", *columns, *(prefix + name for name in derived)]
    lines = [
        [place + 1, *centre, *(repr(values[place]) for values in derived.values())]
        for place, centre in enumerate(_centres(body))
    ]
    return written(names, lines)


def _centres(body: Mapping[str, Any]) -> Iterator[list[Any]]:
    """Yield each centre in the data's units; of a table, in the kinds of its columns."""
    if body.get("profiles") is None:
        yield from ([repr(number) for number in centre] for centre in body["centres"])
        return
    for profile in body["profiles"]:
        values = (entry.get("shares", {"": entry.get("value")}).values() for entry in profile)
        yield [value for column in values for value in column]


def rows_csv(columns: Sequence[str] | None, rows: Sequence[Sequence[float]]) -> str:
    """Return made-up rows as CSV."""
    return written(_columns(columns, rows), (map(repr, row) for row in rows))


def _columns(names: Sequence[str] | None, rows: Sequence[Sequence[float]]) -> Sequence[str]:
    return names or [f"x{place}" for place in range(len(rows[0]))]


def _derived(body: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Sequence[float]]:
    """Columns about the clusters: sizes with their noise, or intervals where k was left open."""
    found: dict[str, Sequence[float]] = {}
    sizes, level, noise = body["sizes"], body.get("level"), (body.get("noise") or {}).get("size")
    if sizes is not None:
        found["size"] = sizes
        if noise is not None:
            found["size_noise"] = [noise] * len(sizes)
    if level is not None:
        found |= {end: level[end] for end in ("size_low", "size_high")}
        for place, name in enumerate(columns):
            for end in ("low", "high"):
                found[f"{name}_{end}"] = [bounds[place] for bounds in level[f"centre_{end}"]]
    return found


def written(names: Iterable[str], lines: Iterable[Iterable[Any]]) -> str:
    """Return lines as CSV, after a line of names."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(names)
    writer.writerows(lines)
    return text.getvalue()
