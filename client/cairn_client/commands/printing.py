"""Print for a person at a terminal, or as JSON for a program."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from cairn_client.conversion import to_json
from cairn_client.formatting import number, with_exponents
from cairn_client.wire import Account

_WIDE = 200  # width of a table that goes into a pipe or a file
_SHORT = 10  # characters of a word that is kept on one line
_NUMBERS = (int, float, Decimal)


def hint(text: str) -> None:
    """Print a line to standard error, for the person at the terminal."""
    typer.echo(with_exponents(text), err=True)


def print_json(value: Any, wanted: bool = True) -> bool:
    """Print what the service answered as JSON, if that is wanted; returns whether it is."""
    if wanted:
        typer.echo(json.dumps(to_json(value), indent=2, ensure_ascii=False))
    return wanted


def shown(value: Any, *, seconds: bool = False) -> str:
    """Format a value for a person."""
    if value is None or value == "":
        return "-"
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Decimal):
        return number(value, 6)
    if isinstance(value, float | int):
        return number(value, 5)
    return with_exponents(str(value))


def in_words(facts: Mapping[str, Any]) -> str:
    """Write facts in a line, as in `kind number, low 0, whole yes`."""
    return ", ".join(f"{name.replace('_', ' ')} {_word(value)}" for name, value in facts.items())


def _word(value: Any) -> str:
    """A value in a line: lists by their entries, and texts in quotes if they are signs or empty."""
    if isinstance(value, list):
        return "/".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    text = str(value)
    return text if not isinstance(value, str) or text[:1].isalnum() else json.dumps(text, ensure_ascii=False)


def _console() -> Console:
    return Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], nothing: str) -> None:
    """Print a table without its empty columns, or a sentence when there is nothing to show."""
    values = [list(row) for row in rows]
    if not values:
        hint(nothing)
        return
    filled = [place for place in range(len(columns)) if any(row[place] not in (None, "") for row in values)]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for place in filled:
        column = [row[place] for row in values if row[place] is not None]
        numeric = all(isinstance(each, _NUMBERS) for each in column)
        # Numbers, times and short words are never broken; longer ones give way where a table is too wide.
        whole = all(isinstance(each, (*_NUMBERS, datetime)) or len(str(each)) <= _SHORT for each in column)
        justify: Literal["left", "right"] = "right" if numeric else "left"
        table.add_column(columns[place], justify=justify, overflow="fold", no_wrap=whole)
    for row in values:
        table.add_row(*(escape(shown(row[place])) for place in filled))
    _console().print(table)


def print_pairs(pairs: Iterable[tuple[str, Any]]) -> None:
    """Print names and values, one pair per line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(escape(name), escape(shown(value, seconds=True)))
    _console().print(table)


def account_rows(name: str, account: Account) -> list[list[Any]]:
    """An account as rows of a table: one for each kind of privacy loss."""
    held = (account.total, account.spent, account.reserved, account.remaining)
    units = ["epsilon", "delta"] if account.total.rho is None else ["epsilon", "rho", "delta"]
    rows = [[name, unit, *(getattr(each, unit) for each in held)] for unit in units]
    return [row if place == 0 else [" ", *row[1:]] for place, row in enumerate(rows)]
