"""HTML views for notebooks: facts as a list, tables with a heading."""

from collections.abc import Iterable, Sequence
from html import escape


def facts_html(title: str, facts: Iterable[tuple[str, object]]) -> str:
    """Return a heading with names and what they say; what is empty is left out."""
    rows = "".join(
        f"<tr><th style='text-align: left'>{escape(name)}</th>"
        f"<td style='text-align: left'>{escape(str(value))}</td></tr>"
        for name, value in facts
        if value not in (None, "")
    )
    return f"<b>{escape(title)}</b><table>{rows}</table>"


def table_html(title: str, headings: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with a heading."""
    head = "".join(f"<th>{escape(str(each))}</th>" for each in headings)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(each))}</td>' for each in row)}</tr>" for row in rows)
    return f"<b>{escape(title)}</b><table><tr>{head}</tr>{body}</table>"
