"""Commands to sign in and out, and to show who is signed in."""

import sys
from typing import Annotated

import typer

from cairn_client.address import full_address, is_open
from cairn_client.client import Client
from cairn_client.commands.common import Json
from cairn_client.commands.printing import hint, print_json
from cairn_client.errors import NotSignedIn
from cairn_client.login import Login, forget_login, store_login
from cairn_client.provider_login import sign_in


def login(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the service.", envvar="CAIRN_URL")
    ] = "http://127.0.0.1:8000",
    provider: Annotated[
        str | None, typer.Option(help="Sign in by this provider of your institution, instead of with a key.")
    ] = None,
) -> None:
    """Sign in: check a key and store it for later commands. Reads the key from a prompt or a pipe."""
    address = full_address(url)
    if provider is not None:
        _keep(sign_in(address, provider, _show_code))
        return
    if is_open(address):
        hint(f"Warning: the key is sent to {address} unencrypted. Use an https address if there is one.")
    if sys.stdin.isatty():
        key = typer.prompt("Key", hide_input=True, err=True)
    else:
        key = sys.stdin.readline()
    if not key.strip():
        raise NotSignedIn("no key was given: type or paste it at the prompt, or pipe it in")
    _keep(Login(address, key.strip()))


def _show_code(address: str, code: str) -> None:
    hint(f"Open {address} in a browser, on any device, and check that it shows the code {code}.")
    hint("Waiting until you have signed in there.")


def _keep(entered: Login) -> None:
    """Check a login and store it."""
    with Client(entered.address, entered.key) as entering:
        me = entering.whoami()
    path = store_login(entered)
    what = "token" if entered.renewal else "key"
    typer.echo(f"Signed in to {entered.address} as {me.name} ({me.role}). The {what} is stored in {path}.")


def logout() -> None:
    """Delete the stored address and key. The key itself stays valid until a curator revokes it."""
    typer.echo("Signed out: the stored key is deleted." if forget_login() else "You were not signed in.")


def whoami(as_json: Json = False) -> None:
    """Show who is signed in, and to which service."""
    with Client() as signed_in:
        me = signed_in.whoami()
    if not print_json({"name": me.name, "role": me.role, "url": signed_in.url}, as_json):
        typer.echo(f"{me.name} ({me.role}) at {signed_in.url}")


def add_to(app: typer.Typer) -> None:
    """Add these commands."""
    for command in (login, logout, whoami):
        app.command()(command)
