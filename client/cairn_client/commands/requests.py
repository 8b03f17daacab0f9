"""Options of a request on the command line, and the request that they make."""

import json
from typing import Annotated, Any, Literal

import typer

from cairn_client.commands.common import amount_option
from cairn_client.dataset import JobRequest


def parsed_clusters(text: str) -> int | tuple[int, int]:
    """Read `7`, or `1-32` for a range."""
    first, dash, last = text.partition("-")
    if not first.isdecimal() or int(first) < 1 or (dash and not last.isdecimal()):
        raise typer.BadParameter(
            f"{text!r} is neither a number of clusters, such as 7, nor a range, such as 1-32"
        )
    return (int(first), int(last)) if dash else int(first)


Clusters = Annotated[
    Any,
    typer.Option(
        "--clusters",
        "-k",
        parser=parsed_clusters,
        metavar="K",
        help="Number of clusters, or a range such as 1-32: one job then answers for every number in it.",
    ),
]
RehearseOn = Annotated[
    str | None,
    typer.Option(
        metavar="JOB", help="Rehearse on the made-up rows of an earlier job that left k open; free, too."
    ),
]
Epsilon = Annotated[str, amount_option("Epsilon to spend, such as 0.5.")]
Delta = Annotated[
    str | None,
    amount_option("Delta to spend. By default a small one, or 0 if the dataset or your cap allows none."),
]
Objective = Annotated[
    Literal["means", "medians"],
    typer.Option(help="Minimise squared distances (means) or distances (medians)."),
]
Algorithm = Annotated[str, typer.Option(help="A name from `cairn algorithms`; `auto` chooses one.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="An option of the algorithm; can be repeated."),
]
Sites = Annotated[
    str | None, typer.Option(help="A set of public sites, for algorithms that choose centres among them.")
]
Columns = Annotated[
    str | None, typer.Option(help="Columns of a table to cluster on, such as age,region. Default: all.")
]
Weights = Annotated[
    list[str] | None,
    typer.Option(
        "--weight",
        metavar="NAME=NUMBER|fair",
        help="How much a column of a table counts; can be repeated. `fair`: as its kind should.",
    ),
]
Scaling = Annotated[
    Literal["declared", "private"] | None,
    typer.Option(
        help="`private` scales columns of a table by their real ranges, measured with 5% of epsilon."
    ),
]


def parsed_periods(text: str) -> list[str] | tuple[str | None, str | None]:
    """Read `2026-01,2026-03`, or `2026-01..2026-03` for a range, of which either end may be left out."""
    first, dots, last = text.partition("..")
    if dots:
        return (first or None, last or None)
    return [label.strip() for label in text.split(",")]


PeriodsOption = Annotated[
    Any,
    typer.Option(
        "--periods",
        parser=parsed_periods,
        metavar="LABELS",
        help="Periods to read: labels such as 2026-01,2026-03, or a range such as 2026-01..2026-03. "
        "Default: all.",
    ),
]


def request_of(objective: str, algorithm: str, options: list[str] | None, sites: str | None) -> JobRequest:
    """Return the part of a request that any dataset takes."""
    return {
        "objective": objective,
        "algorithm": algorithm,
        "options": parsed_options(options),
        "sites": sites,
    }


def parsed_options(options: list[str] | None) -> dict[str, Any]:
    """Parse NAME=VALUE pairs of options; a value is JSON if it can be read as such, else a string."""
    found: dict[str, Any] = {}
    for each in options or []:
        name, equals, text = each.partition("=")
        if not equals:
            raise typer.BadParameter("write an option of the algorithm as NAME=VALUE")
        try:
            found[name] = json.loads(text)
        except ValueError:
            found[name] = text
    return found


def table_request(columns: str | None, weights: list[str] | None, scaling: str | None) -> JobRequest:
    """Return the part of a request that only tables take."""
    chosen = None if columns is None else [name.strip() for name in columns.split(",")]
    if weights == ["fair"]:
        return {"columns": chosen, "weights": "fair", "scaling": scaling}
    try:
        weighed = {
            name: float(number) for name, _, number in (each.rpartition("=") for each in weights or [])
        }
    except ValueError:
        raise typer.BadParameter("write the weight of a column as NAME=NUMBER, as in age=2") from None
    return {"columns": chosen, "weights": weighed, "scaling": scaling}
