"""The command for working bounds: show, set, remove."""

from typing import Annotated

import typer

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, Json
from cairn_client.commands.printing import print_json
from cairn_client.wire import DatasetFacts
from cairn_client.working_bounds import Bounds

#: Kinds of columns that have bounds.
_BOUNDED = ("number", "date", "datetime")


def bounds(
    name: DatasetName,
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME:LOW:HIGH", help="A column with narrower bounds; can be repeated."),
    ] = None,
    released_by: Annotated[
        str | None,
        typer.Option(help="A finished job (quantiles or summary) whose released values become the bounds."),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(help="With --released-by: the columns, such as age,cost. Default: all it has."),
    ] = None,
    declared: Annotated[bool, typer.Option("--declared", help="Use the declared bounds again.")] = False,
    as_json: Json = False,
) -> None:
    """Show the working bounds of a dataset, or set narrower ones for jobs that are planned from now on.

    Rows are clipped to them when they are read: nothing is uploaded again, and earlier jobs keep theirs.
    Columns that you do not name keep what they have.
    """
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        given: dict[str, Bounds] = {}
        if released_by is not None:
            job = signed_in.job(released_by)
            found = [each["column"] for each in job.findings()["columns"] if each["kind"] in _BOUNDED]
            named = found if columns is None else [each.strip() for each in columns.split(",")]
            given |= dict.fromkeys(named, job)
        given |= dict(_typed(each) for each in column or [])
        if declared:
            dataset.remove_working_bounds()
        facts = dataset.set_working_bounds(given) if given else dataset.facts
    if print_json({"working_bounds": facts.working_bounds}, as_json):
        return
    for line in working_lines(facts) or [f"New jobs on {name} use the declared bounds."]:
        typer.echo(line)


def working_lines(facts: DatasetFacts) -> list[str]:
    """The working bounds of a dataset, a line for each column."""
    found = facts.working_bounds.columns if facts.working_bounds else []
    return [f"{each.column} from {each.low} to {each.high}, {each.origin}" for each in found]


def _typed(text: str) -> tuple[str, Bounds]:
    """A column with its bounds: numbers where they are numbers, else dates."""
    name, *ends = text.rsplit(":", 2)
    if len(ends) != 2 or not all(ends):
        raise typer.BadParameter("write a column as NAME:LOW:HIGH, as in age:18:90")
    low, high = (_number(each) for each in ends)
    return name, (low, high)


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
