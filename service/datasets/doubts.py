"""Doubts about the rows of a draft: what its owner must confirm before they are sealed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: Rows left out, or clipped in one column, beyond this share of them are a doubt.
_SHARE = 1 / 5
#: A declared size that is wrong by more than this factor is one, too.
_FACTOR = 3


@dataclass(frozen=True)
class Doubt:
    """A reason to look again, and the word that confirms that all is well."""

    confirm: str
    detail: str


def doubts(report: Mapping[str, Any], size: int) -> list[Doubt]:
    """Return the doubts that a report raises about rows that were declared as about `size`."""
    rows, left_out = report["rows"], report["bad_rows"] + report["rows_over_limit"]
    found = []
    if left_out > _SHARE * (rows + left_out):
        found.append(Doubt("left-out", f"{left_out:,} of {rows + left_out:,} rows were left out"))
    clipped = [
        (column["below"] + column["above"], column["name"])
        for column in report["columns"]
        if column["below"] + column["above"] > _SHARE * rows
    ]
    for count, name in sorted(clipped, reverse=True)[:3]:
        words = f"{count:,} of {rows:,} values of {name} lie outside its bounds and were clipped to them"
        found.append(Doubt("clipped", words))
    by_column = any(column["below"] + column["above"] for column in report["columns"])
    if not by_column and report["clipped_rows"] > _SHARE * rows:  # a ball has no bounds of columns
        words = f"{report['clipped_rows']:,} of {rows:,} rows lie outside the bounds and were clipped to them"
        found.append(Doubt("clipped", words))
    if rows > _FACTOR * size or size > _FACTOR * rows:
        found.append(Doubt("size", f"there are {rows:,} rows, but the size was declared as {size:,}"))
    return found
