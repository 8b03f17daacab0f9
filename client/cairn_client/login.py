"""Sources of the client's address and key (or token): the environment first, then the login file.

`CAIRN_URL` and `CAIRN_KEY` take precedence over the file `login.json`, which `cairn login` writes to the
user's configuration directory, readable only by the user.
"""

import contextlib
import json
import os
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cairn_client.address import full_address
from cairn_client.errors import NotSignedIn

_HOW = "sign in with `cairn login`, or set CAIRN_URL and CAIRN_KEY"


@dataclass(frozen=True)
class Renewal:
    """How a provider's token is replaced when it has expired."""

    endpoint: str
    client_id: str
    refresh_token: str = field(repr=False)


@dataclass(frozen=True)
class Login:
    """An address with a key or a provider's token for it, which is left out of `repr`."""

    address: str
    key: str = field(repr=False)
    renewal: Renewal | None = None


def login_file() -> Path:
    """The file that `cairn login` writes."""
    base = os.environ.get("XDG_CONFIG_HOME") or (os.environ.get("APPDATA") if os.name == "nt" else None)
    return (Path(base) if base else Path.home() / ".config") / "cairn" / "login.json"


def find_login(address: str | None = None, key: str | None = None) -> Login:
    """The given address and key, else the environment's, else the file's; raises NotSignedIn without them.

    A stored key is only ever used for the address it was stored with.
    """
    address = address or os.environ.get("CAIRN_URL")
    key = key or os.environ.get("CAIRN_KEY")
    if address and key:
        return Login(address, key)
    stored = stored_login()
    if stored is None:
        raise NotSignedIn(f"{_missing(address, key)}: {_HOW}")
    if address and full_address(address) != full_address(stored.address):
        raise NotSignedIn(f"the stored key is for {stored.address}, not for {address}: pass a key, or {_HOW}")
    return Login(stored.address, key) if key else stored


def _missing(address: str | None, key: str | None) -> str:
    if not address and not key:
        return "you are not signed in"
    return "no key" if address else "no address"


def store_login(login: Login) -> Path:
    """Write the file so that at no time anybody but its owner can read it."""
    path = login_file()
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        fresh.unlink()
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        renewal = {"renewal": asdict(login.renewal)} if login.renewal else {}
        json.dump({"url": login.address, "key": login.key, **renewal}, file)
    fresh.replace(path)
    return path


def forget_login() -> bool:
    """Delete the file; returns False if there is none."""
    try:
        login_file().unlink()
    except FileNotFoundError:
        return False
    return True


def stored_login() -> Login | None:
    """Return what `cairn login` stored, if anything; NotSignedIn if others can read it."""
    path = login_file()
    try:
        if os.name == "posix" and stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise NotSignedIn(f"other users can read {path}: run `chmod 600 {path}`, or `cairn login` again")
        found = json.loads(path.read_text())
        renewal = Renewal(**found["renewal"]) if "renewal" in found else None
        return Login(found["url"], found["key"], renewal)
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError):
        raise NotSignedIn(f"{path} is damaged: run `cairn login` again") from None
