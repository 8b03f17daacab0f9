"""Commands for populations: people who may be in several datasets."""

from typing import Annotated

import typer

from cairn_client.client import Client
from cairn_client.commands.common import Group, Json, amount_option
from cairn_client.commands.printing import account_rows, print_json, print_pairs, print_table
from cairn_client.wire import Amount, PopulationFacts

PopulationName = Annotated[str, typer.Argument(metavar="POPULATION", help="Name of the population.")]


def list_populations(as_json: Json = False) -> None:
    """List the populations that you own, may use, or have datasets in."""
    with Client() as signed_in:
        found = signed_in.populations()
    if print_json(found, as_json):
        return
    rows = [[each.name, each.owner, _count(each), each.budget.total, each.budget.remaining] for each in found]
    nothing = "No populations yet: cairn population create NAME --epsilon 3 --delta 1e-6"
    print_table(["name", "owner", "datasets", "total", "left"], rows, nothing)


def show(name: PopulationName, as_json: Json = False) -> None:
    """Show a population: what is left of it, and what each of its datasets has used."""
    with Client() as signed_in:
        found = signed_in.population(name)
    _print(found, as_json)


def create(
    name: PopulationName,
    epsilon: Annotated[
        str, amount_option("The most epsilon that one person may lose in all datasets, such as 3.")
    ],
    delta: Annotated[str, amount_option("The most delta, such as 1e-6.")] = "0",
    accountant: Annotated[str, typer.Option(help="How losses add up: zcdp or sum.")] = "zcdp",
    description: Annotated[str, typer.Option(help="Who these people are.")] = "",
    curators: Annotated[
        str, typer.Option(metavar="NAMES", help="Other curators, with commas, who may let datasets join.")
    ] = "",
    as_json: Json = False,
) -> None:
    """Create a population, whose total limits what one person loses in all its datasets together."""
    with Client() as signed_in:
        made = signed_in.create_population(
            name,
            epsilon=epsilon,
            delta=delta,
            accountant=accountant,
            description=description,
            curators=_names(curators),
        )
    if not print_json(made, as_json):
        typer.echo(f"{name} is created. Next: cairn population join {name} DATASET")


def join(
    name: PopulationName,
    dataset: Annotated[str, typer.Argument(metavar="DATASET", help="Name of a sealed dataset of yours.")],
    one_row: Annotated[
        bool,
        typer.Option(
            "--one-row-per-person",
            help="Declare that nobody has two rows in it, or in one of its periods: it has no id column.",
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Let a dataset join a population, with all that its jobs have cost. It never leaves."""
    if not yes:
        typer.confirm(f"Let {dataset} join {name} for good?", abort=True, err=True)
    with Client() as signed_in:
        found = signed_in.join_population(name, dataset, one_row_per_person=one_row)
    if not print_json(found, as_json):
        typer.echo(f"{dataset} is in {name}, which has {found.budget.remaining} left.")


def budget(
    name: PopulationName,
    epsilon: Annotated[str | None, amount_option("Raise the total to this epsilon.")] = None,
    delta: Annotated[str | None, amount_option("Raise the total to this delta.")] = None,
    as_json: Json = False,
) -> None:
    """Show what is left of a population. Its owner can raise the total."""
    with Client() as signed_in:
        raised = epsilon is not None or delta is not None
        found = signed_in.raise_population(name, epsilon, delta) if raised else signed_in.population(name)
    if not print_json(found.budget, as_json):
        print_table(["", "", "total", "spent", "reserved", "left"], account_rows(name, found.budget), "")


def share(
    name: PopulationName,
    curators: Annotated[
        str,
        typer.Argument(metavar="NAMES", help="All other curators who may use it, with commas; or `none`."),
    ],
    as_json: Json = False,
) -> None:
    """Say which other curators may let their datasets join; those that are there stay."""
    with Client() as signed_in:
        found = signed_in.edit_population(name, curators=[] if curators == "none" else _names(curators))
    if not print_json(found, as_json):
        typer.echo(f"Curators who may use {name}: {', '.join([found.owner, *found.curators])}.")


def _names(text: str) -> list[str]:
    return [each.strip() for each in text.split(",") if each.strip()]


def _count(found: PopulationFacts) -> int:
    return len(found.datasets) + (found.others.datasets if found.others else 0)


def _print(found: PopulationFacts, as_json: bool) -> None:
    if print_json(found, as_json):
        return
    print_pairs(
        [
            ("name", found.name),
            ("owner", found.owner),
            ("other curators", ", ".join(found.curators) or "none"),
            ("description", found.description or "none"),
            ("accountant", found.accountant),
            ("total", found.budget.total),
            ("left", found.budget.remaining),
        ]
    )
    typer.echo("")
    rows: list[list[object]] = [
        [each.name, each.owner, each.state, each.spent, _or_nothing(each.reserved)] for each in found.datasets
    ]
    if found.others is not None:
        count = f"{found.others.datasets} of other curators"
        rows.append([count, None, None, found.others.spent, _or_nothing(found.others.reserved)])
    nothing = f"No dataset is in it yet: cairn population join {found.name} DATASET"
    print_table(["dataset", "owner", "state", "spent", "reserved"], rows, nothing)


def _or_nothing(amount: Amount) -> Amount | None:
    return amount if amount.epsilon or amount.delta else None


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    population = typer.Typer(
        cls=Group, no_args_is_help=True, help="People who may be in several datasets, with one total for all."
    )
    population.command("list")(list_populations)
    for command in (show, create, join, budget, share):
        population.command()(command)
    app.add_typer(population, name="population")
