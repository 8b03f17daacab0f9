"""Shared by all commands: the client, tables and JSON, exit codes, error messages in one sentence."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from decimal import Decimal
from enum import IntEnum
from typing import Annotated, Any, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.core import TyperGroup

from cairn_client import errors
from cairn_client.client import Client
from cairn_client.formatting import number
from cairn_client.wire import Account, amount_text, to_json

__all__ = [
    "DatasetName",
    "ExitCode",
    "Group",
    "JobId",
    "Json",
    "account_rows",
    "amount_option",
    "client",
    "hint",
    "print_json",
    "print_pairs",
    "print_table",
]

_WIDE = 200  # width of a table that goes into a pipe or a file
_SHORT = 10  # characters of a word that is kept on one line
_NUMBERS = (int, float, Decimal)


class ExitCode(IntEnum):
    """Exit codes of `cairn`, documented in docs/commands.md."""

    OK = 0
    REFUSED = 1
    USAGE = 2
    NOT_SIGNED_IN = 3
    NOT_FOUND = 4
    BUDGET = 5
    AWAY = 6
    NO_RESULT = 7
    BAD_DATA = 8
    INTERRUPTED = 130


_CODES: list[tuple[tuple[type[BaseException], ...], ExitCode]] = [
    ((errors.NotSignedIn, errors.Unauthorized, errors.Forbidden), ExitCode.NOT_SIGNED_IN),
    ((errors.NotFound,), ExitCode.NOT_FOUND),
    ((errors.BudgetExhausted,), ExitCode.BUDGET),
    (
        (
            errors.Unreachable,
            errors.NotCairn,
            errors.Unavailable,
            errors.RateLimited,
            errors.TooManyQueued,
            errors.WaitTimeout,
        ),
        ExitCode.AWAY,
    ),
    ((errors.JobFailed, errors.JobCancelled), ExitCode.NO_RESULT),
    ((errors.BadFormat, errors.BadRows, errors.DigestMismatch, errors.TooLarge), ExitCode.BAD_DATA),
]


def exit_code(error: BaseException) -> ExitCode:
    """The exit code for an error."""
    return next((code for kinds, code in _CODES if isinstance(error, kinds)), ExitCode.REFUSED)


class Group(TyperGroup):
    """A command with sub-commands that reports an error in one sentence, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command."""
        try:
            return super().invoke(ctx)
        except errors.CairnError as error:
            code = exit_code(error)
            hint(_sentence(error))
        except KeyboardInterrupt:
            code = ExitCode.INTERRUPTED
            hint("cairn: interrupted.")
        except (OSError, ValueError) as error:
            code = ExitCode.REFUSED
            hint(_sentence(error))
        raise typer.Exit(code)


def _sentence(error: Exception) -> str:
    text = str(error)
    if isinstance(error, errors.Forbidden) and "key" not in text:
        text += ": sign in with such a key"
    elif isinstance(error, errors.Unauthorized):
        text += ", and sign in again with `cairn login`"
    elif isinstance(error, errors.BadRows):
        text = text.replace("on_bad_row='drop'", "--on-bad-row drop")
    elif isinstance(error, errors.InvalidRequest) and "set of public sites" in text:
        text += "; choose one with --sites (`cairn sites list` shows them)"
    elif isinstance(error, errors.NotFound):
        text = text.replace("POST /v1/jobs", "`cairn submit`")
    elif isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    return f"cairn: {text.rstrip('.')}."


def hint(text: str) -> None:
    """Print a line to standard error, for the person at the terminal."""
    typer.echo(text, err=True)


def client() -> Client:
    """A client with the stored address and key."""
    return Client()


# --- what to print ------------------------------------------------------------------------------------------

Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]


def print_json(value: Any) -> None:
    """Print what the service answered, as JSON."""
    typer.echo(json.dumps(to_json(value), indent=2, ensure_ascii=False))


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
    return str(value)


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


# --- what to read -------------------------------------------------------------------------------------------


def _amount(text: str) -> str:
    try:
        return amount_text(text)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


def amount_option(words: str) -> Any:
    """An option for an amount of epsilon or delta."""
    return typer.Option(help=words, parser=_amount, metavar="NUMBER")


def _names(ask: Callable[[Client], list[str]]) -> Callable[[str], list[str]]:
    """Complete names in the shell; complete nothing if the service does not answer quickly."""

    def complete(incomplete: str) -> list[str]:
        try:
            with Client(timeout=2.0, patience=0.0) as signed_in:
                return [name for name in ask(signed_in) if name.startswith(incomplete)]
        except errors.CairnError:
            return []

    return complete


complete_datasets = _names(lambda signed_in: [each.name for each in signed_in.datasets()])
complete_jobs = _names(lambda signed_in: [each.id for each in signed_in.jobs(limit=20)])

DatasetName = Annotated[
    str,
    typer.Argument(help="Name of the dataset.", metavar="DATASET", autocompletion=complete_datasets),
]
JobId = Annotated[
    str,
    typer.Argument(
        help="Id of the job, or its first characters; the newest job by default.",
        metavar="JOB",
        autocompletion=complete_jobs,
    ),
]
