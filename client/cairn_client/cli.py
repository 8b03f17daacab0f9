"""The command `cairn`, for analysts and curators."""

from importlib.metadata import version
from typing import Annotated

import typer

from cairn_client.commands import (
    access,
    budgets,
    datasets,
    jobs,
    people,
    populations,
    questions,
    receipts,
    session,
)
from cairn_client.commands.common import Group

app = typer.Typer(
    cls=Group,
    epilog="Exit codes: 0 success, 1 refused, 2 wrong usage, 3 not signed in or wrong role, 4 not found, "
    "5 does not fit the budget or cap, 6 service unavailable, 7 job without a result, 8 bad data, "
    "130 interrupted.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"cairn {version('cairn-client')}")
        raise typer.Exit


@app.callback()
def main(
    show_version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_say_version, is_eager=True),
    ] = False,
) -> None:
    """Cluster private data with a Cairn service, or manage its datasets."""


for part in (session, datasets, budgets, access, jobs, questions, receipts, people, populations):
    part.add_to(app)

if __name__ == "__main__":
    app()
