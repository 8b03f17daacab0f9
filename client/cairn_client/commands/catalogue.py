"""Commands for the catalogue: what can be asked for, and what is shown of one's own datasets."""

from collections.abc import Sequence
from typing import Annotated

import typer

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, Json
from cairn_client.commands.printing import hint, print_json, print_pairs, print_table
from cairn_client.wire import ShownGroup


def catalogue(
    name: Annotated[
        str | None, typer.Argument(metavar="DATASET", help="Show what the catalogue says of this dataset.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the datasets that can be asked for: their owners show some facts to people without a grant."""
    with Client() as signed_in:
        if name is not None:
            entry = signed_in.catalogue_entry(name)
            if not print_json(entry, as_json):
                print_pairs([("name", entry.name), ("title", entry.title), *_lines(entry.groups)])
            return
        found = signed_in.catalogue()
    rows = [[each.name, each.title, each.since, each.accessible] for each in found]
    if not print_json(found, as_json):
        columns = ["name", "title", "listed since", "yours to use"]
        print_table(columns, rows, "The catalogue is empty: no owner lists a dataset.")


def listing(
    name: DatasetName,
    show: Annotated[
        list[str] | None,
        typer.Option(metavar="GROUP", help="A group of facts to show; can be repeated."),
    ] = None,
    title: Annotated[str | None, typer.Option(help="A title, shown next to the name.")] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out of the catalogue.")] = False,
    as_json: Json = False,
) -> None:
    """Show what the catalogue shows of a dataset of yours, or list it for people without a grant.

    With --title or --show it is listed with these alone: its name, the title and the groups that you name.
    """
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        if remove:
            dataset.remove_from_catalogue()
        elif show is not None or title is not None:
            dataset.list_in_catalogue(show or (), title or "")
        found = dataset.listing()
    if print_json(found, as_json):
        return
    print_table(
        ["group", "shown", "what it says"],
        [[each.group, each.group in found.shows, "; ".join(each.lines)] for each in found.groups],
        "There is nothing to show.",
    )
    if found.since is None:
        hint(f"{name} is not in the catalogue. To list it: cairn dataset listing {name} --show GROUP")
    else:
        hint(f"{name} is in the catalogue since {found.since.astimezone():%Y-%m-%d %H:%M}.")


def _lines(groups: Sequence[ShownGroup]) -> list[tuple[str, str]]:
    """The facts of an entry, each with its title where it begins."""
    return [
        (each.title if place == 0 else "", line) for each in groups for place, line in enumerate(each.lines)
    ]
