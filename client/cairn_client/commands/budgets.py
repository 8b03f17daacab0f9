"""Commands for budgets, grants and the ledger."""

import csv
import sys
from datetime import datetime, timedelta
from typing import Annotated, Any, cast

import typer

from cairn_client.client import Client
from cairn_client.commands.common import DatasetName, Json, amount_option
from cairn_client.commands.printing import account_rows, hint, print_json, print_table
from cairn_client.conversion import to_json
from cairn_client.csv_cells import escaped
from cairn_client.dataset import Terms
from cairn_client.formatting import shorten
from cairn_client.wire import Amount, LedgerRow, VerifyReport

Analyst = Annotated[str, typer.Argument(metavar="ANALYST", help="Name of the analyst.")]
Kinds = Annotated[
    str | None,
    typer.Option(help="Kinds of jobs that may be submitted, such as cluster,profile; or `all`."),
]
Purpose = Annotated[str | None, typer.Option(help="What the data may be used for.")]
Permit = Annotated[str | None, typer.Option(help="The number of the permit.")]
Until = Annotated[
    str | None,
    typer.Option(
        metavar="DATE", help="Its last day, such as 2030-12-31, by this machine's clock; or `none`."
    ),
]
_ACCOUNT = ["", "total", "spent", "reserved", "left"]


def budget(
    name: DatasetName,
    epsilon: Annotated[str | None, amount_option("Raise the total to this epsilon.")] = None,
    delta: Annotated[str | None, amount_option("Raise the total to this delta.")] = None,
    period: Annotated[
        str | None, typer.Option(metavar="LABEL", help="Raise the total of this period.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what is left of a dataset's budget and of your cap. Its owner can raise the total."""
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        raised = epsilon is not None or delta is not None
        facts = dataset.raise_budget(epsilon, delta, period=period) if raised else dataset.facts
    if print_json({"budget": facts.budget, "cap": facts.cap}, as_json):
        return
    rows = account_rows("dataset", facts.budget)
    if facts.cap is not None:
        rows += account_rows("your cap", facts.cap)
    print_table(["", *_ACCOUNT], rows, "")


def grant(
    name: DatasetName,
    analyst: Analyst,
    epsilon: Annotated[str | None, amount_option("The most epsilon they may spend, such as 0.5.")] = None,
    delta: Annotated[
        str | None,
        amount_option(
            "The most delta they may spend, such as 1e-6; 0 allows pure differential privacy only."
        ),
    ] = None,
    kinds: Kinds = None,
    purpose: Purpose = None,
    permit: Permit = None,
    until: Until = None,
    results: Annotated[
        bool | None,
        typer.Option("--keep-results/--no-results", help="Whether results can be read after its end."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Set an analyst's cap, the most that they may spend, and the kinds of jobs that they may ask for.

    It cannot be below what they have used. What you leave out keeps its present value. A new grant needs
    --epsilon; its delta is 0 unless you name one, and it allows clusterings alone unless you name --kinds.
    """
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        allowed = named_kinds(signed_in, kinds)
        named = {"purpose": purpose, "permit": permit, "keeps_results": results}
        terms: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
        terms |= {} if until is None else {"ends_at": end_of(until)}
        made = dataset.grant(analyst, epsilon, delta, allowed, **cast(Terms, terms))
        total = dataset.facts.budget.declared
    cap = made.cap.declared
    if not print_json(made, as_json):
        typer.echo(f"{made.analyst} may spend {cap} of {name}; {made.cap.remaining} is left.")
    if cap.epsilon > total.epsilon or cap.delta > total.delta:
        hint(f"Warning: this cap is above the dataset's total of {total}, which limits all jobs together.")


def named_kinds(signed_in: Client, kinds: str | None) -> list[str] | None:
    """Return the kinds of jobs in a list with commas; every kind for `all`."""
    if kinds == "all":
        return ["cluster", *(each.name for each in signed_in.kinds())]
    return None if kinds is None else [each.strip() for each in kinds.split(",")]


def end_of(day: str) -> datetime | None:
    """Return the end of a day here; None for `none`."""
    if day == "none":
        return None
    try:
        return (datetime.fromisoformat(day) + timedelta(days=1)).astimezone()
    except ValueError:
        raise typer.BadParameter(f"'{day}' is not a date: write it like 2030-12-31") from None


def revoke(name: DatasetName, analyst: Analyst) -> None:
    """Withdraw an analyst's grant. Their queued jobs are cancelled; what they spent stays spent."""
    with Client() as signed_in:
        signed_in.dataset(name).revoke(analyst)
    typer.echo(f"{analyst} can no longer use {name}.")


def grants(name: DatasetName, as_json: Json = False) -> None:
    """List the analysts who may use a dataset, with their caps."""
    with Client() as signed_in:
        found = signed_in.dataset(name).grants()
    if print_json(found, as_json):
        return
    rows = [
        [*row, each.permit or each.purpose, each.ends_at, each.revoked_at]
        for each in found
        for row in account_rows(each.analyst, each.cap)
    ]
    nothing = f"Nobody has been granted {name} yet: cairn grant {name} ANALYST --epsilon 1"
    print_table(["analyst", "", "cap", *_ACCOUNT[2:], "permit", "until", "withdrawn"], rows, nothing)


def ledger(
    name: DatasetName,
    verify: Annotated[
        bool, typer.Option("--verify", help="Have the service check hashes, balances and charges.")
    ] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Verify every entry, not only those after the last checkpoint.")
    ] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    as_json: Json = False,
) -> None:
    """Show the ledger of a dataset. Its owner sees all entries, an analyst their own."""
    with Client() as signed_in:
        dataset = signed_in.dataset(name)
        report = dataset.verify_ledger(whole=whole) if verify or whole else None
        rows = dataset.ledger()
    if as_json:
        print_json(rows if report is None else {"verify": report, "items": rows})
    elif as_csv:
        _write_csv(rows)
    else:
        _print_entries(rows)
    if report is not None:
        _tell(name, report)


def _write_csv(rows: list[LedgerRow]) -> None:
    flat = [{**entry, **entry.pop("amount")} for entry in map(to_json, rows)]
    columns = ["sequence", "kind", "at", "analyst", "job", "epsilon", "rho", "delta", "actor"]
    columns += ["previous", "hash"]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(escaped(entry.get(name) for name in columns) for entry in flat)


def _print_entries(rows: list[LedgerRow]) -> None:
    ids = dict(zip(jobs := [e.job for e in rows if e.job], shorten(jobs), strict=True))
    columns = ["#", "kind", "at", "analyst", "job", "epsilon", "rho", "delta", "by"]
    table = []
    for e in rows:
        job, (epsilon, rho) = e.job and ids[e.job], _loss(e.amount)
        table.append([e.sequence, e.kind, e.at, e.analyst, job, epsilon, rho, e.amount.delta, e.actor])
    print_table(columns, table, "No entries yet.")


def _tell(name: str, report: VerifyReport) -> None:
    """What a verification found; exits with 1 if it found errors."""
    if not report.ok:
        hint(f"The ledger of {name} has errors: {'; '.join(report.faults)}.")
        raise typer.Exit(1)
    new = f"{report.entries - report.since:,} of them new" if report.since else "all of them"
    hint(f"Verified {report.entries:,} entries ({new}): hashes, balances and charges are correct.")


def _loss(amount: Amount) -> tuple[Any, Any]:
    """The epsilon column or the rho column, whichever the dataset's accountant uses."""
    return (amount.epsilon, None) if amount.rho is None else (None, amount.rho)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (budget, grant, revoke, grants, ledger):
        app.command()(command)
