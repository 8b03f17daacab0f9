"""The command that proposes a description of a table, and the file that it writes for other commands."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from cairn_client.client import Client
from cairn_client.columns import Described
from cairn_client.commands.printing import hint, in_words, print_pairs, print_table
from cairn_client.commands.reading import reading_in_words
from cairn_client.describing import CONFIRMED, FROM_ROWS, Proposal

#: Most characters of a proposal in a table.
_LONGEST = 100
TableFile = Annotated[
    Path | None,
    typer.Option(
        "--table", help="A file that `cairn dataset describe` wrote: columns, and how the text is read."
    ),
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
            metavar="NAME", help="A column whose proposed facts may be made public; can be repeated."
        ),
    ] = None,
    public_reading: Annotated[
        bool, typer.Option("--public-reading", help="How the text is read may be made public.")
    ] = False,
) -> None:
    """Propose kinds of columns, and how a text file is read, from the first lines of a file.

    They are sent to your service (of a spreadsheet, Parquet or Arrow file, all of it), which stores nothing.

    Facts taken from rows become public with the dataset. At a terminal you are asked about each column, and
    about how the text is read. Otherwise they are marked in the output, and `cairn dataset create` refuses it
    until you have confirmed or replaced them.
    """
    with Client() as signed_in:
        hint(f"Sending the first lines of {file} to your service, {signed_in.url}. It stores nothing.")
        found = signed_in.describe(file)
    for each in found.facts.remarks:
        hint(each)
    if found.facts.problem:
        raise typer.BadParameter(found.facts.problem)
    names = [each.facts["name"] for each in found.columns]
    if unknown := set(public or ()) - set(names):
        raise typer.BadParameter(
            f"{file} has no column {' or '.join(sorted(unknown))}", param_hint="--public"
        )
    reading = _asked("How the text is read", found.reading, public_reading)
    columns = [
        _asked(each.facts["name"], each, each.facts["name"] in (public or ())) for each in found.columns
    ]
    described = {"reading": reading.to_json(), "table": [each.to_json() for each in columns]}
    output.write_text(json.dumps(described, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    _print(columns, reading if found.facts.format == "csv" else None)
    left = any(each.from_rows for each in (reading, *columns))
    todo = "Confirm or replace in it what came from rows" if left else "Check it"
    hint(f"Wrote {output}. {todo}, then: cairn dataset create NAME --table {output} --size N --epsilon E")


def _asked(name: str, proposal: Proposal, is_public: bool) -> Proposal:
    """The proposal, confirmed where the curator says that what came from the rows is public."""
    if not is_public and proposal.from_rows and sys.stdin.isatty():
        facts = in_words({fact: proposal.facts[fact] for fact in proposal.from_rows})
        question = f"{name}: {facts}. This came from the rows. Is it public: would you know it without them?"
        is_public = typer.confirm(question, err=True)
    return proposal.confirmed() if is_public else proposal


def _print(columns: Sequence[Proposal], reading: Proposal | None) -> None:
    if reading is not None:
        left = [("from rows, to be confirmed", ", ".join(reading.from_rows))] if reading.from_rows else []
        print_pairs([("text read as", reading_in_words(reading.facts)), *left])
    rows = [
        [each.facts["name"], each.facts["kind"], _shown(each), ", ".join(each.from_rows)] for each in columns
    ]
    print_table(
        ["column", "kind", "proposal", "from rows, to be confirmed"], rows, "The file has no columns."
    )


def _shown(proposal: Proposal) -> str:
    """The facts of a proposal in a line of a table, without those that are off or empty."""
    hidden = ("name", "kind", CONFIRMED)
    words = in_words(
        {
            name: value
            for name, value in proposal.facts.items()
            if name not in hidden and value is not False and value != ""
        }
    )
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def range_of(column: Described) -> str:
    """The bounds or levels of a column in a line."""
    if "levels" in column:
        return "/".join(column["levels"])
    return (
        f"{column['low']} to {column['high']}{' (log)' if column.get('log') else ''}"
        if "low" in column
        else ""
    )


def declared(path: Path | None, reading: Described) -> dict[str, Any]:
    """`table` and `reading` of a request: those of a file of descriptions, and what options replace in it.

    A usage error names all facts that came from rows and are neither confirmed nor replaced.
    """
    columns, proposed = _load(path)
    if reading:
        proposed = (proposed or Proposal({})).replaced(reading)
    _require_confirmed(path, columns or (), proposed)
    found: dict[str, Any] = {}
    if columns is not None:
        found["table"] = [each.facts for each in columns]
    if proposed is not None:
        found["reading"] = proposed.facts
    return found


def _require_confirmed(path: Path | None, columns: Sequence[Proposal], reading: Proposal | None) -> None:
    left = [f"{each.facts.get('name')} ({', '.join(each.from_rows)})" for each in columns if each.from_rows]
    if reading is not None and reading.from_rows:
        left.append(f"how the text is read ({', '.join(reading.from_rows)})")
    if left:
        raise typer.BadParameter(
            f"facts in {path} came from the rows and would become public: {'; '.join(left)}. Move the names "
            f"of those that are public from {FROM_ROWS} to {CONFIRMED}. Replace the others by what you know "
            f"without the rows, and delete their names from {FROM_ROWS}. `cairn dataset describe` asks you "
            "about each column, or takes --public and --public-reading"
        )


def _load(path: Path | None) -> tuple[list[Proposal] | None, Proposal | None]:
    """The columns in a file of descriptions, and how it says that text is read."""
    if path is None:
        return None, None
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        table, reading = (data["table"], data.get("reading")) if isinstance(data, dict) else (data, None)
        columns = [Proposal.read(each) for each in table]
        return columns, None if reading is None else Proposal.read(reading)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise typer.BadParameter(
            f"{path} is not a description of a table; `cairn dataset describe` writes one"
        ) from None
