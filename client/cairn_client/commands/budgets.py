"""Commands about money: budgets, grants, the ledger."""

from __future__ import annotations

import csv
import sys
from typing import Annotated

import typer

from cairn_client.commands.common import (
    DatasetName,
    Json,
    account_rows,
    amount_option,
    client,
    hint,
    print_json,
    print_table,
)
from cairn_client.wire import to_json

__all__ = ["add_to"]

Epsilon = Annotated[str, amount_option("Epsilon, such as 0.5.")]
Delta = Annotated[str, amount_option("Delta, such as 1e-6; 0 for pure differential privacy.")]


def budget(
    name: DatasetName,
    epsilon: Annotated[str | None, amount_option("Raise the total to this epsilon.")] = None,
    delta: Annotated[str | None, amount_option("Raise the total to this delta.")] = None,
    as_json: Json = False,
) -> None:
    """Show what is left of a dataset's budget and of your cap; the owner may raise the total."""
    with client() as signed_in:
        dataset = signed_in.dataset(name)
        facts = dataset.facts
        if epsilon is not None or delta is not None:
            before = facts.budget.declared
            facts = dataset.raise_budget(epsilon or before.epsilon, delta or before.delta)
    if as_json:
        print_json({"budget": facts.budget, "cap": facts.cap})
        return
    rows = account_rows("dataset", facts.budget) + account_rows("your cap", facts.cap)
    columns = ["", "total", "spent", "reserved", "epsilon left", "delta left"]
    if facts.accountant == "zcdp":
        print_table([*columns, "rho left"], rows, "")
    else:
        print_table(columns, [row[:-1] for row in rows], "")


def grant(
    name: DatasetName,
    analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Name of the analyst.")],
    epsilon: Epsilon,
    delta: Delta = "0",
    as_json: Json = False,
) -> None:
    """Let an analyst spend up to a cap, or move the cap; never below what they have used."""
    with client() as signed_in:
        made = signed_in.dataset(name).grant(analyst, epsilon, delta)
    if as_json:
        print_json(made)
    else:
        typer.echo(f"{made.analyst} may spend {made.cap.declared} of {name}; {made.cap.remaining} is left.")


def revoke(
    name: DatasetName, analyst: Annotated[str, typer.Argument(metavar="ANALYST", help="Name of the analyst.")]
) -> None:
    """Withdraw an analyst's grant and queued jobs; what they spent stays spent."""
    with client() as signed_in:
        signed_in.dataset(name).revoke(analyst)
    typer.echo(f"{analyst} may no longer use {name}.")


def grants(name: DatasetName, as_json: Json = False) -> None:
    """List who may use a dataset, and how far."""
    with client() as signed_in:
        found = signed_in.dataset(name).grants()
    if as_json:
        print_json(found)
        return
    rows = [
        [each.analyst, each.cap.declared, each.cap.spent, each.cap.remaining, each.revoked_at]
        for each in found
    ]
    nothing = f"Nobody may use {name} yet: cairn grant {name} ANALYST --epsilon 1"
    print_table(["analyst", "cap", "spent", "left", "withdrawn"], rows, nothing)


def ledger(
    name: DatasetName,
    verify: Annotated[bool, typer.Option("--verify", help="Have the service replay it first.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV instead of a table.")] = False,
    as_json: Json = False,
) -> None:
    """Show the ledger: all of it to the owner, an analyst's own entries to the analyst."""
    with client() as signed_in:
        dataset = signed_in.dataset(name)
        report = dataset.verify_ledger() if verify else None
        rows = dataset.ledger()
    if as_json:
        print_json(rows if report is None else {"verify": report, "items": rows})
    elif as_csv:
        flat = [{**entry, **entry.pop("amount")} for entry in map(to_json, rows)]
        names = [
            "sequence",
            "kind",
            "at",
            "analyst",
            "job",
            "epsilon",
            "rho",
            "delta",
            "actor",
            "previous",
            "hash",
        ]
        writer = csv.DictWriter(sys.stdout, names, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
    else:
        table = [[e.sequence, e.kind, e.at, e.analyst, e.job, e.amount, e.actor] for e in rows]
        print_table(["#", "kind", "at", "analyst", "job", "amount", "actor"], table, "No entries yet.")
    if report is not None and not report.ok:
        hint(f"The ledger of {name} does not add up: {'; '.join(report.faults)}.")
        raise typer.Exit(1)
    if report is not None:
        hint(f"Verified: {report.entries} entries, every hash and every balance is right.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (budget, grant, revoke, grants, ledger):
        app.command()(command)
