"""Commands about people, for curators: principals, their keys, the audit log."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from cairn_client.commands.common import Group, Json, client, hint, print_json, print_table
from cairn_client.wire import NewKey

__all__ = ["add_to"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the principal.")]


def list_principals(as_json: Json = False) -> None:
    """List everybody the service knows."""
    with client() as signed_in:
        found = signed_in.principals()
    if as_json:
        print_json(found)
        return
    rows = [[p.name, p.role, p.created_by, p.created_at, len(p.keys), p.disabled_at] for p in found]
    print_table(["name", "role", "created by", "created", "keys", "disabled"], rows, "There is nobody.")


def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name: lower-case letters, digits, `.`, `_`, `-`.")
    ],
    role: Annotated[Literal["analyst", "curator"], typer.Option(help="What they may do.")] = "analyst",
    as_json: Json = False,
) -> None:
    """Create a person or program with a first key, which is shown this once."""
    with client() as signed_in:
        made = signed_in.add_principal(name, role)
    if as_json:
        print_json(made)
        return
    hint(f"{made.name} is {'an' if made.role == 'analyst' else 'a'} {made.role}.")
    _show(made.first_key)


def disable(name: Name) -> None:
    """End a principal: their keys stop working; what they did stays on record."""
    with client() as signed_in:
        signed_in.disable_principal(name)
    typer.echo(f"{name} is disabled.")


def list_keys(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Only keys of this principal.")] = None,
    as_json: Json = False,
) -> None:
    """List the keys of the principals that you manage; never their secrets."""
    with client() as signed_in:
        found = [each for each in signed_in.principals() if name in (None, each.name)]
    if as_json:
        print_json([{"principal": each.name, "keys": each.keys} for each in found])
        return
    rows = [
        [each.name, key.id, key.label, key.created_at, key.expires_at, key.revoked_at]
        for each in found
        for key in each.keys
    ]
    print_table(
        ["principal", "id", "label", "created", "expires", "revoked"], rows, "There are no keys to show."
    )


def issue(
    name: Name,
    label: Annotated[str, typer.Option(help="What the key is for.")] = "",
    days: Annotated[int | None, typer.Option(help="Let it expire after so many days.")] = None,
    as_json: Json = False,
) -> None:
    """Issue another key, which is shown this once."""
    with client() as signed_in:
        made = signed_in.issue_key(name, label, days)
    if as_json:
        print_json(made)
    else:
        _show(made)


def revoke_key(name: Name, id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key.")]) -> None:
    """Revoke a key at once."""
    with client() as signed_in:
        signed_in.revoke_key(name, id)
    typer.echo(f"The key {id} of {name} is revoked.")


def audit(
    dataset: Annotated[str | None, typer.Option(help="Only acts on this dataset.")] = None,
    limit: Annotated[int, typer.Option(help="How many, newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """Show who did what to your datasets, newest first."""
    with client() as signed_in:
        found = signed_in.audit(dataset, limit)
    if as_json:
        print_json(found)
        return
    rows = [[e.at, e.actor, e.action, e.dataset, json.dumps(e.details, ensure_ascii=False)] for e in found]
    print_table(["at", "actor", "action", "dataset", "details"], rows, "Nothing has happened yet.")


def _show(key: NewKey) -> None:
    hint("Their key, shown this once; hand it over on a safe way:")
    typer.echo(key.key)


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    principals = typer.Typer(cls=Group, no_args_is_help=True, help="People and programs, for curators.")
    principals.command("list")(list_principals)
    principals.command()(add)
    principals.command()(disable)
    app.add_typer(principals, name="principals")
    keys = typer.Typer(cls=Group, no_args_is_help=True, help="Keys of people and programs, for curators.")
    keys.command("list")(list_keys)
    keys.command()(issue)
    keys.command("revoke")(revoke_key)
    app.add_typer(keys, name="keys")
    app.command()(audit)
