"""The command that proposes a description of a table, and what other commands read of it."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from cairn_client.client import Client
from cairn_client.columns import Described
from cairn_client.commands.printing import hint, print_table
from cairn_client.describing import CONFIRMED, Description, Proposal, confirmed, is_text
from cairn_client.describing import describe as describe_file

TableFile = Annotated[
    Path | None,
    typer.Option("--table", help="Columns of a table: a file that `cairn dataset describe` wrote."),
]


def describe(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Delimited text, spreadsheet, Parquet or Arrow.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Write the description to this file.")
    ] = Path("table.json"),
    public: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME", help="A column whose levels, bounds and gaps may be made public; can be repeated."
        ),
    ] = None,
) -> None:
    """Propose kinds of columns from the first lines of a file.

    A text file stays on this computer. Of other files the service reads the first lines; nothing is stored.

    Levels and bounds taken from rows become public with the dataset. At a terminal you are asked about each
    such column. Otherwise it is marked in the output, and `cairn dataset create` refuses it until you have
    confirmed or replaced it.
    """
    found = describe_file(file) if is_text(file) else _described_by_the_service(file)
    if found.problem:
        raise typer.BadParameter(found.problem)
    columns = [_asked(each, public or []) for each in found.columns]
    output.write_text(json.dumps({"table": [each.to_json() for each in columns]}, indent=2) + "\n")
    rows = [
        [each.column["name"], each.column["kind"], _facts(each), ", ".join(each.from_rows)]
        for each in columns
    ]
    print_table(
        ["column", "kind", "proposal", "from rows, to be confirmed"], rows, "The file has no columns."
    )
    hint(f"Wrote {output}. Check it, then: cairn dataset create NAME --table {output} --size N --epsilon E")


def _described_by_the_service(file: Path) -> Description:
    hint(f"{file} is not a text file: the service reads its first lines, and stores nothing.")
    with Client() as signed_in:
        return signed_in.describe(file)


def _asked(proposal: Proposal, public: list[str]) -> Proposal:
    """The proposal, confirmed where the curator says that what came from the rows is public."""
    name = proposal.column["name"]
    if name in public:
        return proposal.confirmed()
    if not proposal.from_rows:
        return proposal
    if not sys.stdin.isatty():
        return proposal
    facts = " and ".join(proposal.from_rows)
    question = f"{name}: {_facts(proposal)}. Is this public: would you know {facts} without the rows?"
    known = typer.confirm(question, err=True)
    return proposal.confirmed() if known else proposal


def _facts(proposal: Proposal) -> str:
    """The facts of a column in a line."""
    hidden = ("name", "kind", CONFIRMED)
    said = {
        name: value for name, value in proposal.column.items() if name not in hidden and value is not False
    }
    words = ", ".join(f"{name} {_word(value)}" for name, value in said.items())
    return words if len(words) <= 100 else f"{words[:97]}..."


def _word(value: Any) -> str:
    return "/".join(value) if isinstance(value, list) else "" if value is True else str(value)


def range_of(column: Described) -> str:
    """The bounds or levels of a column in a line."""
    if "levels" in column:
        return _word(column["levels"])
    return (
        f"{column['low']} to {column['high']}{' (log)' if column.get('log') else ''}"
        if "low" in column
        else ""
    )


def read_table(path: Path | None) -> list[Described] | None:
    """The columns in a file of descriptions; a usage error where they cannot be declared yet."""
    if path is None:
        return None
    try:
        data = json.loads(path.read_text())
        return confirmed(data["table"] if isinstance(data, dict) else data)
    except (ValueError, KeyError, TypeError) as error:
        words = str(error) if isinstance(error, ValueError) and "column" in str(error) else (
            f"{path} is not a description of a table; `cairn dataset describe` writes one"
        )  # fmt: skip
        raise typer.BadParameter(words) from None
