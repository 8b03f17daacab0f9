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
    lines = [list(rows[0]), ["---"] * len(rows[0]), *([str(cell) for cell in row.values()] for row in rows)]
    return (
        "".join("| " + " | ".join(line) + " |\n" for line in lines)
        .replace("| --- ", "|---")
        .replace("|--- |", "|---|")
    )


def rewrite_table(page: Path, name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Replace the table of that name in the page, which must mark one place for it."""
    marked = re.compile(rf"(<!-- table {re.escape(name)} -->\n\n).*?(\n<!-- end of table -->)", re.DOTALL)
    text, places = marked.subn(lambda found: found[1] + markdown(rows) + found[2], page.read_text())
    if places != 1:
        raise ValueError(f"{page} has {places} places for the table {name!r}: mark exactly one")
    page.write_text(text)
