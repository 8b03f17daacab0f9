"""Commands for questions: kinds, ask."""

from pathlib import Path
from typing import Annotated

import typer

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, Json
from cairn_client.commands.jobs import print_plan, wait_for
from cairn_client.commands.printing import print_json, print_table
from cairn_client.commands.requests import (
    Delta,
    Epsilon,
    Options,
    PeriodsOption,
    RehearseOn,
    parsed_options,
)
from cairn_client.commands.results import print_findings
from cairn_client.questions import QuestionRequest


def kinds(as_json: Json = False) -> None:
    """List the questions that can be asked in addition to clusterings, with their options."""
    with Client() as signed_in:
        found = signed_in.kinds()
    if print_json(found, as_json):
        return
    rows = [
        [each.name, each.clusterings or "", ", ".join(each.options.get("properties", {})), each.summary]
        for each in found
    ]
    print_table(["kind", "clusterings", "options", "summary"], rows, "There are none.")


def ask(
    name: DatasetName,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="A name from `cairn kinds`, such as profile.")],
    epsilon: Epsilon,
    delta: Delta = None,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--of", metavar="JOB[:K]", help="A clustering that it is about; give it twice for `compare`."
        ),
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="The columns that it is about, such as age,region. Default: all.")
    ] = None,
    option: Options = None,
    periods: PeriodsOption = None,
    rehearsal: Annotated[
        bool, typer.Option("--rehearsal", help="Run on synthetic rows instead of the data; free.")
    ] = False,
    rehearse_on: RehearseOn = None,
    plan: Annotated[
        bool, typer.Option("--plan", help="Show what it would cost, and ask nothing. Exit code 5: too much.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the answer to this file (.csv or .json).")
    ] = None,
    as_json: Json = False,
) -> None:
    """Ask a question about a dataset or about the clusters of an earlier job, and print the answer."""
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        request: QuestionRequest = {
            "delta": delta,
            "columns": None if columns is None else [each.strip() for each in columns.split(",")],
            "clusterings": [_clustering(signed_in, each) for each in of or []],
            "options": parsed_options(option),
            "periods": periods,
            "rehearsal": rehearsal,
            "rehearse_on": None if rehearse_on is None else signed_in.job(rehearse_on).id,
        }
        if plan:
            print_plan(dataset.plan_question(kind, epsilon, **request), as_json)
            return
        job = dataset.ask(kind, epsilon, **request)
        print_findings(wait_for(job, job.findings), output, as_json)


def _clustering(signed_in: Client, text: str) -> dict[str, str | int]:
    job, colon, k = text.partition(":")
    if colon and not k.isdecimal():
        raise typer.BadParameter("name a clustering as JOB or JOB:K, as in 6f1cbb0e:4")
    named: dict[str, str | int] = {"job": signed_in.job(job).id}
    return {**named, "k": int(k)} if colon else named


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (kinds, ask):
        app.command()(command)
