"""Tables of measured figures inside Markdown pages, rewritten in place by the benchmark that measured them.

A page marks the place with `<!-- table NAME -->` and `<!-- end of table -->`; what lies between is replaced.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["markdown", "rewrite_table"]


def markdown(rows: Sequence[Mapping[str, object]]) -> str:
    """Rows of equal keys as a Markdown table."""
    head, *lines = (
        "| " + " | ".join(map(str, line)) + " |\n" for line in (rows[0], *(row.values() for row in rows))
    )
    return head + "|---" * len(rows[0]) + "|\n" + "".join(lines)


def rewrite_table(page: Path, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Replace the table of that name in the page, which must mark one place for it."""
    start, end = f"<!-- table {name} -->\n", "<!-- end of table -->"
    marked = re.compile(rf"{re.escape(start)}[^<]*{end}")  # another mark is never part of a table
    text, places = marked.subn(lambda _: f"{start}\n{markdown(rows)}\n{end}", page.read_text())
    if places != 1:
        raise ValueError(f"{page} has {places} places for the table {name!r}: mark exactly one")
    page.write_text(text)
