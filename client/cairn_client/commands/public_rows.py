"""The command for public rows: show, attach, detach."""

from pathlib import Path
from typing import Annotated

import typer

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, Json
from cairn_client.commands.printing import print_json
from cairn_client.wire import DatasetFacts


def public_rows(
    name: DatasetName,
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="Rows of the same kind, in any format of rows.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Detach the rows that are attached.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm that the rows are public, and of nobody in the dataset.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Show the public rows of a dataset, or attach some for jobs that are planned from now on to learn from.

    The guarantee does not cover them: they must be public, and of none of the people in the dataset.
    """
    if file is not None and not yes:
        typer.confirm(
            f"Are the rows of {file} public, and of none of the people in {name}?", abort=True, err=True
        )
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        if remove:
            dataset.remove_public_rows()
        facts = dataset.facts if file is None else dataset.set_public_rows(file)
    if not print_json({"public_rows": facts.public_rows}, as_json):
        typer.echo(public_rows_line(facts) or f"{name} has no public rows.")


def public_rows_line(facts: DatasetFacts) -> str:
    """The public rows of a dataset, or nothing."""
    found = facts.public_rows
    return f"{found.rows:,} rows, SHA-256 {found.digest}" if found else ""
