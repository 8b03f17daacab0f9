"""Commands for accounts of people and programs, their keys and sessions, and the audit log."""

from datetime import datetime
from typing import Annotated, Literal

import typer

from cairn_client.client import Client
from cairn_client.commands.common import Group, Json
from cairn_client.commands.printing import hint, print_json, print_table
from cairn_client.wire import KeyFacts, NewKey

Role = Literal["analyst", "curator", "auditor", "operator"]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the person or program.")]


def list_principals(as_json: Json = False) -> None:
    """List all people and programs with an account."""
    with Client() as signed_in:
        found = signed_in.principals()
    if print_json(found, as_json):
        return
    rows = [
        [p.name, p.role, p.created_by, _day(p.created_at), len(p.keys), p.disabled_at, p.waits or None]
        for p in found
    ]
    headings = ["name", "role", "created by", "created", "keys", "disabled", "waits"]
    print_table(headings, rows, "There are no accounts.")


def add(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Name: lower-case letters, digits, `.`, `_`, `-`.")
    ],
    role: Annotated[Role, typer.Option(help="What they may do.")] = "analyst",
    as_json: Json = False,
) -> None:
    """Create an account for a person or program and print its first key, which is shown only once."""
    with Client() as signed_in:
        made = signed_in.add_principal(name, role)
    if print_json(made, as_json):
        return
    hint(f"{made.name} is {'a' if made.role == 'curator' else 'an'} {made.role}.")
    _show(made.first_key)


def disable(name: Name) -> None:
    """Disable an account. Its keys stop working; its history is kept."""
    with Client() as signed_in:
        signed_in.disable_principal(name)
    typer.echo(f"The account {name} is disabled.")


def enable(name: Name) -> None:
    """Enable an account that is disabled, or that waits since its holder first signed in by a provider."""
    with Client() as signed_in:
        signed_in.enable_principal(name)
    typer.echo(f"The account {name} is enabled.")


def link(
    name: Name,
    provider: Annotated[str, typer.Option(help="Name of the provider.")],
    subject: Annotated[str, typer.Option(help="The person's `sub` at the provider.")],
) -> None:
    """Let a person sign in to an account by a provider of your institution."""
    with Client() as signed_in:
        signed_in.link_identity(name, provider, subject)
    typer.echo(f"{name} can sign in by {provider}.")


def list_keys(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Only the keys of this person or program.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the keys of the accounts that you manage, without their secrets."""
    with Client() as signed_in:
        found = [each for each in signed_in.principals() if name in (None, each.name)]
    if print_json([{"principal": each.name, "keys": each.keys} for each in found], as_json):
        return
    rows = [
        [
            each.name,
            key.id,
            key.label,
            _limits(key),
            _day(key.created_at),
            _day(key.expires_at),
            key.revoked_at,
        ]
        for each in found
        for key in each.keys
    ]
    headings = ["name", "id", "label", "only for", "created", "expires", "revoked"]
    print_table(headings, rows, "There are no keys to show.")


def issue(
    name: Name,
    label: Annotated[str, typer.Option(help="What the key is for.")] = "",
    days: Annotated[int | None, typer.Option(help="Days until the key expires.")] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(metavar="DATASET", help="Only for this dataset; may be repeated.", show_default=False),
    ] = None,
    read_only: Annotated[bool, typer.Option("--read-only", help="Only for reading.")] = False,
    as_json: Json = False,
) -> None:
    """Issue another key and print it. It is shown only once."""
    with Client() as signed_in:
        made = signed_in.issue_key(name, label, days, datasets=dataset or None, read_only=read_only)
    if not print_json(made, as_json):
        _show(made)


def revoke_key(name: Name, id: Annotated[str, typer.Argument(metavar="ID", help="Id of the key.")]) -> None:
    """Revoke a key. It stops working immediately."""
    with Client() as signed_in:
        signed_in.revoke_key(name, id)
    typer.echo(f"Key {id} of {name} is revoked.")


def list_sessions(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A person whose account you manage, for curators; default: you."),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the browsers that are signed in to the console."""
    with Client() as signed_in:
        if name is None:
            found = signed_in.sessions()
        else:
            found = [
                each for person in signed_in.principals() if person.name == name for each in person.sessions
            ]
    if print_json(found, as_json):
        return
    rows = [[each.id, each.key or each.issuer, each.created_at, each.expires_at] for each in found]
    print_table(["id", "signed in with", "signed in", "expires"], rows, "No browser is signed in.")


def end_session(id: Annotated[str, typer.Argument(metavar="ID", help="Id of the session.")]) -> None:
    """Sign a browser out: a session of yours, or of an account that you manage."""
    with Client() as signed_in:
        signed_in.end_session(id)
    typer.echo(f"Session {id} has ended.")


def audit(
    dataset: Annotated[str | None, typer.Option(help="Only entries about this dataset.")] = None,
    access: Annotated[
        bool, typer.Option("--access", help="Show who read what, signed in or was refused.")
    ] = False,
    limit: Annotated[int, typer.Option(help="How many entries to show.")] = 50,
    as_json: Json = False,
) -> None:
    """Show who did what to your datasets, newest first."""
    with Client() as signed_in:
        found = signed_in.audit(dataset, limit, access=access)
    rows = [[e.at, e.actor, e.action, e.dataset, e.words] for e in found]
    if not print_json(found, as_json):
        print_table(["at", "by", "action", "dataset", "what"], rows, "There are no entries yet.")


def _show(key: NewKey) -> None:
    hint("The key is shown only once. Send it to its owner through a secure channel:")
    typer.echo(key.key)


def _limits(key: KeyFacts) -> str | None:
    """What a key is limited to, in a few words."""
    words = [*(key.datasets or ()), *(["reading"] if key.read_only else [])]
    return ", ".join(words) or None


def _day(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone().date().isoformat()


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    principals = typer.Typer(
        cls=Group, no_args_is_help=True, help="Accounts of people and programs, for curators and operators."
    )
    principals.command("list")(list_principals)
    principals.command()(add)
    principals.command()(disable)
    principals.command()(enable)
    principals.command()(link)
    app.add_typer(principals, name="principals")
    keys = typer.Typer(cls=Group, no_args_is_help=True, help="Keys of accounts, for curators and operators.")
    keys.command("list")(list_keys)
    keys.command()(issue)
    keys.command("revoke")(revoke_key)
    app.add_typer(keys, name="keys")
    sessions = typer.Typer(cls=Group, no_args_is_help=True, help="Browsers signed in to the console.")
    sessions.command("list")(list_sessions)
    sessions.command("end")(end_session)
    app.add_typer(sessions, name="sessions")
    app.command()(audit)
