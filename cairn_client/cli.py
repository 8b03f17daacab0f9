"""The command `cairn`, for analysts and curators; each command is a few calls of the Python client."""

from __future__ import annotations

import typer

from cairn_client.commands import budgets, datasets, jobs, people, session
from cairn_client.commands.common import Group

__all__ = ["app"]

app = typer.Typer(
    cls=Group,
    help="Differentially private clustering: ask a Cairn service for centres, or keep its datasets.",
    epilog="Exit codes: 0 done, 1 refused, 2 wrong usage, 3 not signed in or wrong role, 4 not found, "
    "5 budget or cap too small, 6 service away or busy, 7 job without a result, 8 bad data, 130 stopped.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for part in (session, datasets, budgets, jobs, people):
    part.add_to(app)

if __name__ == "__main__":
    app()
