"""Options that declare how delimited text is read, and how that is shown."""

import shlex
from typing import Annotated, Any

import typer

from cairn_client.columns import Described
from cairn_client.commands.printing import in_words
from cairn_client.describing import CONFIRMED, Proposal
from cairn_client.wire import DatasetFacts

_TAB = "tab"
#: Facts that are not worth a word as long as they are so.
_USUAL = {"thousands": "", "quoted_lines": False, "header": True}
Encoding = Annotated[
    str | None,
    typer.Option(help="Of text files: utf-8 (the default), utf-16, windows-1252 or latin-1."),
]
Separator = Annotated[
    str | None,
    typer.Option(metavar="SIGN", help="Between the fields of text files: , (the default) ; | or tab."),
]
Decimal = Annotated[
    str | None, typer.Option(metavar="SIGN", help="Decimal sign in text files: . (the default) or a comma.")
]
Thousands = Annotated[
    str | None,
    typer.Option(
        metavar="SIGN", help="Between groups of three digits in text files: , . ' or a blank. Default: none."
    ),
]
QuotedLines = Annotated[
    bool | None,
    typer.Option(
        "--quoted-lines/--no-quoted-lines",
        help="Whether fields in quotes may contain line breaks. Default: every line is a record.",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of text files names the columns. Default: it does.",
    ),
]
ConfirmedFromRows = Annotated[
    str | None,
    typer.Option(
        metavar="FACTS",
        help="Facts of these that you took from the rows and confirm to be public, as in encoding,decimal.",
    ),
]


def reading_of(
    encoding: str | None,
    separator: str | None,
    decimal: str | None,
    thousands: str | None,
    quoted_lines: bool | None,
    header: bool | None,
    confirmed_from_rows: str | None,
) -> Described:
    """Return what the options declare."""
    declared: dict[str, Any] = {
        "encoding": encoding,
        "separator": "\t" if separator == _TAB else separator,
        "decimal": decimal,
        "thousands": thousands,
        "quoted_lines": quoted_lines,
        "header": header,
        CONFIRMED: confirmed_from_rows and [name.strip() for name in confirmed_from_rows.split(",")],
    }
    return {name: value for name, value in declared.items() if value is not None}


def present_reading(facts: DatasetFacts) -> Described:
    """Return how a dataset reads text, without the marks of what came from rows, which the service keeps."""
    marks = ("format", CONFIRMED)
    return {name: value for name, value in facts.reading.items() if name not in marks and value is not None}


def reading_in_words(reading: Described) -> str:
    """Write how text is read in a line."""
    shown = {name: value for name, value in reading.items() if name != CONFIRMED}
    return in_words({name: value for name, value in shown.items() if _USUAL.get(name) != value})


def change_of(proposed: Proposal, present: Described) -> Proposal:
    """Return what is proposed otherwise than it is."""
    facts = {name: value for name, value in proposed.facts.items() if present.get(name) != value}
    return Proposal(facts, tuple(name for name in proposed.from_rows if name in facts))


def edit_command(dataset: str, change: Proposal) -> str:
    """Return the command that declares this for a draft and confirms what came from rows."""
    words = ["cairn", "dataset", "edit", dataset]
    for name, value in change.facts.items():
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{option}" if value else f"--no-{option}")
        else:
            words += [f"--{option}", _TAB if value == "\t" else value]
    if change.from_rows:
        words += ["--confirmed-from-rows", ",".join(change.from_rows)]
    return shlex.join(words)
