"""Commands for datasets: list, show, create, sites, retire."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from cairn_client.client import Client, ball, box, ids, sparse
from cairn_client.commands import drafts
from cairn_client.commands.catalogue import catalogue, listing
from cairn_client.commands.common import DatasetName, Group, Json, amount_option
from cairn_client.commands.describe import TableFile, declared, describe, range_of
from cairn_client.commands.printing import hint, print_json, print_pairs, print_table, shown
from cairn_client.commands.public_rows import public_rows, public_rows_line
from cairn_client.commands.reading import (
    ConfirmedFromRows,
    Decimal,
    Encoding,
    Header,
    QuotedLines,
    Separator,
    Thousands,
    present_reading,
    reading_in_words,
    reading_of,
)
from cairn_client.commands.working_bounds import bounds as bounds_command
from cairn_client.commands.working_bounds import working_lines
from cairn_client.wire import DatasetFacts, SiteKind


def list_datasets(as_json: Json = False) -> None:
    """List the datasets that you own or may use."""
    with Client() as signed_in:
        found = [each.facts for each in signed_in.datasets()]
    if print_json(found, as_json):
        return
    rows = []
    for each in found:
        mine = each.cap or each.budget
        rows.append(
            [each.name, each.state, each.dimension, each.size, mine.remaining.epsilon, mine.remaining.delta]
        )
    print_table(
        ["name", "state", "columns", "records", "epsilon left", "delta left"],
        rows,
        "No datasets yet: ask a curator for a grant, or create one with `cairn dataset create`.",
    )


def show(name: DatasetName, as_json: Json = False) -> None:
    """Show the public facts of a dataset."""
    with Client() as signed_in:
        facts = signed_in.dataset(name).facts
    if print_json(facts, as_json):
        return
    _print_facts(facts)


def _print_facts(facts: DatasetFacts) -> None:
    columns = facts.columns or []
    bounds = [("bounds", _short(shape, numbers, columns)) for shape, numbers in facts.bounds.items()]
    print_pairs(
        [
            ("name", facts.name),
            ("description", facts.description),
            ("state", facts.state),
            *(
                [("version", f"{facts.version}, since {shown(facts.corrected_at)}")]
                if facts.corrected_at
                else []
            ),
            ("columns", ", ".join(columns[:20]) + (" ..." if len(columns) > 20 else "") or facts.dimension),
            *bounds,
            *(("working bounds", each) for each in working_lines(facts)),
            *([("public rows", public_rows_line(facts))] if facts.public_rows else []),
            *([("scaling", facts.scaling)] if facts.table is None else []),
            ("text read as", reading_in_words(present_reading(facts))),
            ("records (public)", f"about {facts.size:,}"),
            ("protects each", facts.privacy_unit),
            ("accountant", facts.accountant),
            ("budget left", facts.budget.remaining),
            *([("your cap left", facts.cap.remaining)] if facts.cap else []),
            *_population(facts),
            *([("rows uploaded", facts.upload.rows)] if facts.upload else []),
            *(("warning", each) for each in facts.warnings),
        ]
    )
    if facts.table is not None:
        typer.echo()
        rows = [
            [each["name"], each["kind"], each["role"], each["weight"], each["missing"], range_of(each)]
            for each in facts.table
        ]
        print_table(["column", "kind", "role", "weight", "missing", "range"], rows, "")


def _population(facts: DatasetFacts) -> list[tuple[str, object]]:
    found = facts.population
    return [] if found is None else [("population", found.name), ("left for its people", found.remaining)]


def _short(shape: str, numbers: Any, columns: Sequence[str]) -> str:
    if shape == "box" and columns:
        each = zip(columns, numbers["low"], numbers["high"], strict=True)
        text = ", ".join(f"{name} from {low:g} to {high:g}" for name, low, high in each)
    else:
        text = f"{shape} " + ", ".join(f"{name} {value}" for name, value in dict(numbers).items())
    return text if len(text) <= 120 else text[:117] + "..."


def _bound_option(which: str) -> Any:
    return typer.Option(help=f"{which} bound of every column, if they have no names.")


def create(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name: lower-case letters, digits, `.`, `_`, `-`.")
    ],
    size: Annotated[
        int, typer.Option(help="About how many records there are. It is shown to analysts, so round it.")
    ],
    epsilon: Annotated[str, amount_option("The most epsilon that all jobs together may spend.")],
    delta: Annotated[str, amount_option("The most delta that all jobs together may spend.")] = "0",
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME:LOW:HIGH",
            help="A column with its bounds (NAME alone with --ball); can be repeated.",
        ),
    ] = None,
    dimension: Annotated[int | None, typer.Option(help="Number of columns, if they have no names.")] = None,
    low: Annotated[float | None, _bound_option("Lower")] = None,
    high: Annotated[float | None, _bound_option("Upper")] = None,
    ball_radius: Annotated[
        float | None, typer.Option("--ball", help="Bound rows by their distance from the origin instead.")
    ] = None,
    sparse_radius: Annotated[
        float | None, typer.Option("--sparse", help="Like --ball, for sparse rows.")
    ] = None,
    table: TableFile = None,
    site_count: Annotated[
        int | None,
        typer.Option("--ids", help="Rows are the numbers of public sites; this is how many sites there are."),
    ] = None,
    description: Annotated[str, typer.Option(help="Description for analysts.")] = "",
    scaling: Annotated[
        Literal["unit", "none"],
        typer.Option(help="`unit` scales every column to its bounds, `none` uses the values as they are."),
    ] = "unit",
    rows_per_person: Annotated[int, typer.Option(help="The most rows that belong to one person.")] = 1,
    id_column: Annotated[
        str | None,
        typer.Option(help="Column with a person's id. It limits rows per person and is not stored."),
    ] = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    quoted_lines: QuotedLines = None,
    header: Header = None,
    confirmed_from_rows: ConfirmedFromRows = None,
    accountant: Annotated[str, typer.Option(help="How the costs of jobs add up, such as zcdp.")] = "sum",
    planned_release: Annotated[
        bool,
        typer.Option(
            "--planned-release/--no-planned-release",
            "--release-ticks/--no-release-ticks",
            help="Publish results at planned times, which hide how long a job took.",
        ),
    ] = True,
    least_epsilon: Annotated[str, amount_option("The least epsilon that a job must ask for.")] = "0.001",
    jobs_per_hour: Annotated[int, typer.Option(help="The most jobs of one analyst in an hour.")] = 1000,
    unit: Annotated[
        Literal["record", "person-in-period", "person"] | None,
        typer.Option(
            help="Give the dataset periods; whom their budgets protect. Size and budget are then of a period."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Create a dataset from public facts. `cairn upload` then adds its rows."""
    reading = reading_of(encoding, separator, decimal, thousands, quoted_lines, header, confirmed_from_rows)
    described = declared(table, reading)
    names, bounds = (
        _bounds(column or [], low, high, ball_radius, sparse_radius, site_count)
        if table is None
        else (None, None)
    )
    with Client() as signed_in:
        made = signed_in.create_dataset(
            name,
            bounds=bounds,
            **described,
            columns=names,
            dimension=dimension,
            size=size,
            epsilon=epsilon,
            delta=delta,
            description=description,
            scaling=scaling,
            rows_per_person=rows_per_person,
            id_column=id_column,
            accountant=accountant,
            planned_release=planned_release,
            least_epsilon=least_epsilon,
            jobs_per_hour=jobs_per_hour,
            unit=unit,
        )
    if print_json(made.facts, as_json):
        return
    _print_facts(made.facts)
    of_period = " --period LABEL" if unit else ""
    hint(f"Next, upload the rows: cairn upload {name}{of_period} FILE")


def _bounds(
    columns: list[str],
    low: float | None,
    high: float | None,
    radius: float | None,
    sparse_radius: float | None,
    site_count: int | None,
) -> tuple[list[str] | None, Any]:
    """The names of the columns and the bounds that the options describe."""
    if sparse_radius is not None:
        return None, sparse(sparse_radius)
    if site_count is not None:
        return None, ids(site_count)
    if radius is not None:
        return columns or None, ball(radius)
    if not columns:
        if low is None or high is None:
            raise typer.BadParameter(
                "name columns with --column NAME:LOW:HIGH, give a --table, or --dimension, --low and --high"
            )
        return None, box(low, high)
    parts = [each.rsplit(":", 2) for each in columns]
    try:
        lows, highs = [float(part[1]) for part in parts], [float(part[2]) for part in parts]
    except (IndexError, ValueError):
        raise typer.BadParameter("write a column as NAME:LOW:HIGH, for example age:0:120") from None
    return [part[0] for part in parts], box(lows, highs)


def hand_over(
    name: DatasetName,
    curator: Annotated[str, typer.Argument(help="Name of the curator who owns it from now on.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Hand a dataset over to another curator. You lose access; its grants and its ledger go with it."""
    if not yes:
        typer.confirm(f"Hand {name} over to {curator} and lose access?", abort=True, err=True)
    with Client() as signed_in:
        signed_in.dataset(name).hand_over(curator)
    typer.echo(f"{curator} owns {name} now.")


def retire(
    name: DatasetName,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: Json = False,
) -> None:
    """Delete a dataset's rows permanently. Its ledger is kept; queued jobs are cancelled without charge."""
    if not yes:
        typer.confirm(f"Delete the rows of {name} permanently?", abort=True, err=True)
    with Client() as signed_in:
        done = signed_in.dataset(name).retire()
    if not print_json(done, as_json):
        typer.echo(f"{name} is retired. Queued jobs cancelled without charge: {done.voided_jobs}.")


def periods(name: DatasetName, as_json: Json = False) -> None:
    """List the periods of a dataset, with what is left of each."""
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        found, facts = dataset.periods(), dataset.facts
    if print_json(found, as_json):
        return
    rows = []
    for each in found:
        left = (each.cap or each.budget or facts.cap or facts.budget).remaining
        size, version = f"about {each.size:,}", each.version
        rows.append([each.label, version, each.state, size, each.sealed_at, left])
    nothing = f"{name} has no periods" + (
        f" yet: cairn upload {name} --period LABEL FILE" if facts.unit else "."
    )
    print_table(["period", "version", "state", "records", "sealed", "left"], rows, nothing)
    if facts.lost_in_all is not None and found:
        typer.echo(f"Somebody with rows in all of them has lost {facts.lost_in_all} in all.")


def list_sites(name: DatasetName, as_json: Json = False) -> None:
    """List the sets of public sites of a dataset."""
    with Client() as signed_in:
        found = signed_in.dataset(name).sites()
    rows = [[each.name, each.kind, each.count, each.width] for each in found]
    if not print_json(found, as_json):
        print_table(["name", "kind", "sites", "width"], rows, f"{name} has no sets of sites.")


def put_sites(
    name: DatasetName,
    site_set: Annotated[str, typer.Argument(metavar="SITES", help="Name of the set of sites.")],
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="CSV without a header, or NPY; one site per row."),
    ],
    kind: Annotated[
        SiteKind,
        typer.Option(
            help="What the numbers mean: values of the dataset's columns, latitude and longitude, "
            "or the distance from each site to each other."
        ),
    ] = "coordinates",
    as_json: Json = False,
) -> None:
    """Store a set of public sites, for algorithms that choose centres among sites."""
    with Client() as signed_in:
        made = signed_in.dataset(name).put_sites(site_set, file, kind)
    if not print_json(made, as_json):
        typer.echo(f"{made.name}: {made.count:,} sites stored as {made.kind}.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    dataset = typer.Typer(
        cls=Group, no_args_is_help=True, help="List, show, create, seal and retire datasets."
    )
    dataset.command("list")(list_datasets)
    dataset.command()(show)
    dataset.command()(describe)
    dataset.command()(create)
    drafts.add_to(app, dataset)
    dataset.command("bounds")(bounds_command)
    dataset.command()(public_rows)
    dataset.command()(periods)
    dataset.command()(listing)
    dataset.command()(hand_over)
    dataset.command()(retire)
    app.add_typer(dataset, name="dataset")
    app.command("datasets", help="The same as `cairn dataset list`.")(list_datasets)
    app.command()(catalogue)
    sites = typer.Typer(cls=Group, no_args_is_help=True, help="Sets of public sites, for facility location.")
    sites.command("list")(list_sites)
    sites.command("put")(put_sites)
    app.add_typer(sites, name="sites")
