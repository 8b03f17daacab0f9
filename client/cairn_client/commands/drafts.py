"""Commands for drafts: upload rows, read the report on them, seal or throw away."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Literal

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, Json, exit_code, sentence
from cairn_client.commands.describe import TableFile, declared
from cairn_client.commands.printing import hint, in_words, print_json, print_pairs, print_table
from cairn_client.commands.reading import (
    ConfirmedFromRows,
    Decimal,
    Encoding,
    Header,
    QuotedLines,
    Separator,
    Thousands,
    change_of,
    edit_command,
    present_reading,
    reading_of,
)
from cairn_client.dataset import Dataset
from cairn_client.describing import Proposal
from cairn_client.errors import BadFormat, BadRows
from cairn_client.uploading import Sent, media_type
from cairn_client.wire import DatasetFacts, Doubt, UploadReport

Confirm = Annotated[
    list[Doubt] | None,
    typer.Option(
        metavar="|".join(Doubt),
        help="A doubt in the report that you have checked and accept; can be repeated.",
    ),
]


def upload(
    name: DatasetName,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="CSV, Excel, Parquet, Arrow, NPY or NPZ file; `-` for standard input. Several CSV files "
            "with the same first line are read as one.",
        ),
    ],
    on_bad_row: Annotated[
        Literal["refuse", "drop"],
        typer.Option(help="If a row cannot be used: `refuse` the whole file, or `drop` such rows."),
    ] = "refuse",
    kind: Annotated[str | None, typer.Option(help="Media type, if the file name does not show it.")] = None,
    seal: Annotated[bool, typer.Option("--seal", help="Seal the rows if nothing looks wrong.")] = False,
    confirm: Confirm = None,
    period: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Upload the rows of this period; it is added if it is new."),
    ] = None,
    correct: Annotated[
        bool, typer.Option("--correct", help="Replace the rows that are there once these are sealed.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Upload the rows of a draft and print a report on them. Jobs use them once it is sealed."""
    sealed = f"{period} of {name}" if period else name
    of_period = f" --period {period}" if period else ""
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        if correct:
            dataset.correct() if period is None else dataset.correct_period(period)
        with _opened(files) as body:
            kind = kind or (media_type(files[0]) if len(files) == 1 else None)
            report = _upload(dataset, body, kind, on_bad_row, period)
        if not print_json(report, as_json):
            print_report(report)
        if seal:
            dataset.seal(confirm or (), sha256=report.sha256, period=period)
            hint(f"{sealed} is sealed.")
            return
    if not report.rows:
        hint(f"Next, upload a file with usable rows: cairn upload {name}{of_period} FILE")
        return
    options = "".join(f" --confirm {each}" for each in sorted({each.confirm for each in report.doubts}))
    hint(f"Next, if this is right: cairn dataset seal {name}{of_period}{options}")


def _upload(
    dataset: Dataset,
    body: IO[bytes] | list[str],
    kind: str | None,
    on_bad_row: Literal["refuse", "drop"],
    period: str | None,
) -> UploadReport:
    """Upload rows, again if they are refused and the curator declares that the file is read otherwise."""
    try:
        with _speedometer(dataset.name) as progress:
            return dataset.upload(body, kind=kind, on_bad_row=on_bad_row, progress=progress, period=period)
    except (BadFormat, BadRows) as refusal:
        if refusal.reading is None:
            raise
        hint(sentence(refusal))
        present = present_reading(dataset.facts)
        change = change_of(refusal.reading, present)
        if not _may_declare(dataset.name, change):
            raise typer.Exit(exit_code(refusal)) from None
        _hint_revised(dataset.edit(reading={**present, **change.confirmed().facts}))
    return _upload(dataset, body, kind, on_bad_row, period)


def _may_declare(name: str, change: Proposal) -> bool:
    """Show how a file seems to be written; ask whether to declare that, else print the command that does."""
    hint(f"The file seems to be written like this, which {name} does not declare: {in_words(change.facts)}.")
    if change.from_rows:
        facts = in_words({fact: change.facts[fact] for fact in change.from_rows})
        hint(f"This came from the rows and would become public: {facts}.")
    if sys.stdin.isatty() and typer.confirm("Declare that, and upload again?", err=True):
        return True
    hint(f"To declare that: {edit_command(name, change)}")
    hint("Then upload again.")
    return False


def print_report(report: UploadReport) -> None:
    """Print what was found in the rows of an upload."""
    print_pairs(
        [
            *([("read as", report.read_as)] if report.read_as else []),
            ("rows stored", report.rows),
            ("rows clipped to the bounds", report.clipped_rows),
            ("bad rows left out", report.bad_rows - report.gap_rows),
            *([("rows left out, as declared of missing values", report.gap_rows)] if report.gap_rows else []),
            *(
                [("rows left out, over the limit per person", report.rows_over_limit)]
                if report.rows_over_limit
                else []
            ),
            *([("columns ignored", ", ".join(report.ignored_columns))] if report.ignored_columns else []),
            *(("warning", each) for each in report.warnings),
            *(("look again", each.detail) for each in report.doubts),
        ]
    )
    if report.columns:
        print_table(
            ["column", "missing", "unreadable", "unknown", "below", "above", "examples"],
            [
                [
                    each.name,
                    each.missing or None,
                    each.unreadable or None,
                    each.unknown or None,
                    each.below or None,
                    each.above or None,
                    ", ".join(each.examples),
                ]
                for each in report.columns
            ],
            "",
        )


def seal_dataset(
    name: DatasetName,
    confirm: Confirm = None,
    period: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Seal this period of the dataset.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Seal a draft, or a correction, with its uploaded rows. Jobs can then run on them."""
    with Client() as signed_in:
        facts = signed_in.dataset(name).seal(confirm or (), period=period)
    if not print_json(facts, as_json):
        typer.echo(f"{period} of {name} is sealed." if period else f"{name} is sealed.")


def edit(
    name: DatasetName,
    size: Annotated[int | None, typer.Option(help="About how many records there are.")] = None,
    description: Annotated[str | None, typer.Option(help="Description for analysts.")] = None,
    bounds: Annotated[
        list[str] | None,
        typer.Option("--bounds", metavar="NAME:LOW:HIGH", help="New bounds of a column; can be repeated."),
    ] = None,
    table: TableFile = None,
    encoding: Encoding = None,
    separator: Separator = None,
    decimal: Decimal = None,
    thousands: Thousands = None,
    quoted_lines: QuotedLines = None,
    header: Header = None,
    confirmed_from_rows: ConfirmedFromRows = None,
    as_json: Json = False,
) -> None:
    """Change public facts of a draft; those of how text is read that you do not name stay as they are.

    New bounds, and another way to read text, delete its rows; changes after an upload are marked.
    """
    reading = reading_of(encoding, separator, decimal, thousands, quoted_lines, header, confirmed_from_rows)
    described = declared(table, reading)
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        changes: dict[str, object] = {"size": size, "description": description, **described}
        if "reading" in described:
            changes["reading"] = {**present_reading(dataset.facts), **described["reading"]}
        if bounds:
            changes["bounds"] = _new_bounds(dataset.facts.columns or [], dataset.facts.bounds, bounds)
        facts = dataset.edit(**{each: value for each, value in changes.items() if value is not None})
    if print_json(facts, as_json):
        return
    typer.echo(f"{name} is changed.")
    _hint_revised(facts)


def _hint_revised(facts: DatasetFacts) -> None:
    if facts.revised:
        hint(f"Marked as changed after a look at the rows: {', '.join(facts.revised)}.")


def _new_bounds(columns: list[str], present: dict[str, object], changes: list[str]) -> dict[str, object]:
    box = present.get("box")
    if not isinstance(box, dict):
        raise typer.BadParameter("only columns with a low and a high have bounds to change")
    low, high = list(box["low"]), list(box["high"])
    for change in changes:
        column, *numbers = change.rsplit(":", 2)
        try:
            place = columns.index(column)
            low[place], high[place] = (float(number) for number in numbers)
        except ValueError:
            raise typer.BadParameter(
                "write the bounds of a column as NAME:LOW:HIGH, as in age:0:120"
            ) from None
    return {"box": {"low": low, "high": high}}


def discard(
    name: DatasetName,
    rows: Annotated[
        bool,
        typer.Option(
            "--rows", help="Delete only rows that are not sealed: of the draft, or of a correction."
        ),
    ] = False,
    period: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Delete the draft of this period only.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a draft with its rows. Its name can be used again."""
    what = f"the rows of {name} that are not sealed" if rows else f"the draft {name}"
    what = what if period is None else f"the draft of {period} of {name}"
    if not yes:
        typer.confirm(f"Delete {what}?", abort=True, err=True)
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        if period is not None:
            dataset.discard_period(period)
        else:
            dataset.throw_away_rows() if rows else dataset.discard()
    typer.echo(f"Deleted {what}.")


@contextmanager
def _opened(files: list[str]) -> Iterator[IO[bytes] | list[str]]:
    """Open the file, or a copy of standard input, which must be read twice; several files stay paths."""
    if len(files) > 1:
        yield files
        return
    if files != ["-"]:
        with Path(files[0]).open("rb") as opened:
            yield opened
        return
    with tempfile.TemporaryFile() as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
        yield kept


@contextmanager
def _speedometer(name: str) -> Iterator[Sent]:
    """A progress bar with the speed, if standard error is a terminal."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(f"Uploading {name}", total=None)

        def sent(done: int, total: int) -> None:
            words = f"Storing {name}" if done >= total else f"Uploading {name}"
            bar.update(task, completed=done, total=total, description=words)

        yield sent


def add_to(app: typer.Typer, dataset: typer.Typer) -> None:
    """Add these commands."""
    app.command()(upload)
    dataset.command("seal")(seal_dataset)
    dataset.command()(edit)
    dataset.command()(discard)
