"""Commands for receipts: receipt, verify."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cairn_client.client import Client
from cairn_client.commands.common import ExitCode, JobId, Json
from cairn_client.commands.printing import hint, print_json, print_pairs, print_table
from cairn_client.receipt import is_whole, registry_entry, report
from cairn_client.receipt import verify as verify_receipt
from cairn_client.result import RECEIPT

_File = Annotated[
    Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A receipt, as JSON.")
]
_Keys = Annotated[
    Path | None,
    typer.Option("--keys", exists=True, dir_okay=False, help="A copy of the service's public keys."),
]


def _to(flag: str, words: str) -> Any:
    return typer.Option(flag, dir_okay=False, help=f"Write {words} to this file.")


def receipt(
    id: JobId = "latest",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the receipt to this file, as JSON.")
    ] = None,
    report_file: Annotated[
        Path | None, _to("--report", "a page to print for a data protection officer")
    ] = None,
    registry_file: Annotated[
        Path | None, _to("--registry", "an entry of the public registry of deployments, as YAML,")
    ] = None,
    as_json: Json = False,
) -> None:
    """Show what a job measured and was charged. Also checks the receipt's digest."""
    with Client() as signed_in:
        found = signed_in.job(id).receipt()
    whole = is_whole(found)
    if output is not None:
        output.write_text(json.dumps(found, indent=2) + "\n")
    if report_file is not None:
        report_file.write_text(report(found))
    if registry_file is not None:
        registry_file.write_text(registry_entry(found))
        hint("Replace what begins with FILL IN before you send the entry.")
    if as_json:
        print_json(found)
    elif not (output or report_file or registry_file):
        _show(found, whole)
    if not whole:
        hint("The digest does not match the receipt: fetch it again, or tell the curator.")
        raise typer.Exit(ExitCode.REFUSED)


def _show(found: dict[str, Any], whole: bool) -> None:
    print_pairs(
        [
            ("job", found["job"]),
            ("dataset", found["dataset"]),
            ("guarantee", found.get("statement")),
            ("neighbours", found["neighbours"]),
            ("accountant", found["accountant"]),
            ("charged", ", ".join(f"{name} {value}" for name, value in found["charged"].items())),
            ("digest", f"{found['digest']} ({'correct' if whole else 'WRONG'})"),
            ("signed by key", found.get("signature", {}).get("key", "not signed")),
            ("cite as", found.get("citation")),
        ]
    )
    typer.echo()
    steps = [[s["name"], s["mechanism"]["kind"], s["repeats"], s["share"]] for s in found["steps"]]
    print_table(["step", "mechanism", "times", "share"], steps, "No measurements.")


def verify(file: _File, keys: _Keys = None, as_json: Json = False) -> None:
    """Check that the service signed a receipt. With --keys no connection is needed."""
    found = json.loads(file.read_text())
    found = found.get(RECEIPT) or found
    if keys is not None:
        known = json.loads(keys.read_text())
    else:
        with Client() as signed_in:
            known = signed_in.public_keys()
    key = verify_receipt(found, known)
    facts = {"job": found["job"], "dataset": found["dataset"], "guarantee": found["statement"], "key": key}
    if not print_json(facts, as_json):
        print_pairs(list(facts.items()))
        typer.echo("\nThe service signed this receipt, and it has not been changed.")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (receipt, verify):
        app.command()(command)
