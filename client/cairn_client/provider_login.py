"""Sign-in by an institution's provider without a browser on this machine: the device flow (RFC 8628).

The provider's access token is kept and sent like a key. When the service takes it no longer, it is replaced
with the refresh token that came with it.
"""

import time
from collections.abc import Callable
from typing import Any, NoReturn

import httpx

from cairn_client.errors import NotSignedIn, Unreachable
from cairn_client.login import Login, Renewal, store_login, stored_login

_SECONDS = 10.0
_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
#: Answers to a poll that mean: ask again later.
_WAITING = ("authorization_pending", "slow_down")


def sign_in(address: str, provider: str, show: Callable[[str, str], None]) -> Login:
    """Sign in to the service at an address; `show` gets the address and the code for the person's browser."""
    described = _json("GET", f"{address}/.well-known/cairn-providers.json")
    found = [each for each in described.get("items", ()) if each["name"] == provider and each["command"]]
    if not found:
        names = ", ".join(each["name"] for each in described.get("items", ()) if each["command"])
        raise NotSignedIn(f"no provider named {provider} signs commands in; there are: {names or 'none'}")
    command = found[0]["command"]
    endpoints = _json("GET", f"{found[0]['issuer'].rstrip('/')}/.well-known/openid-configuration")
    form = {"client_id": command["client_id"], "scope": " ".join(command["scopes"])}
    if ":" in command["audience"]:
        form["resource"] = command["audience"]  # RFC 8707, for providers whose resources have addresses
    begun = _json("POST", endpoints["device_authorization_endpoint"], data=form)
    if "device_code" not in begun:
        _refused(begun)
    show(begun.get("verification_uri_complete") or begun["verification_uri"], begun["user_code"])
    tokens = _wait_for(endpoints["token_endpoint"], command["client_id"], begun)
    return _login(address, Renewal(endpoints["token_endpoint"], command["client_id"], ""), tokens)


def renew(used: Login) -> Login | None:
    """Replace a token that the service takes no longer, in the login file too; None if that is impossible."""
    stored = stored_login()
    if stored is None or stored.renewal is None or stored.address != used.address:
        return None
    if stored.key != used.key:
        return stored  # another command was quicker
    form = {"grant_type": "refresh_token", "refresh_token": stored.renewal.refresh_token}
    tokens = _json("POST", stored.renewal.endpoint, data={**form, "client_id": stored.renewal.client_id})
    if "access_token" not in tokens:
        return None
    renewed = _login(stored.address, stored.renewal, tokens)
    store_login(renewed)
    return renewed


def _wait_for(endpoint: str, client_id: str, begun: dict[str, Any]) -> dict[str, Any]:
    """Ask for the tokens until the person has signed in, as often as the provider wants."""
    interval, ends = begun.get("interval", 5), time.monotonic() + begun["expires_in"]
    form = {"grant_type": _GRANT, "device_code": begun["device_code"], "client_id": client_id}
    while time.monotonic() < ends:
        time.sleep(interval)
        tokens = _json("POST", endpoint, data=form)
        if "access_token" in tokens:
            return tokens
        if tokens.get("error") not in _WAITING:
            _refused(tokens)
        interval += 5 if tokens["error"] == "slow_down" else 0
    raise NotSignedIn("nobody signed in before the code expired: run `cairn login` again")


def _login(address: str, renewal: Renewal, tokens: dict[str, Any]) -> Login:
    refresh = tokens.get("refresh_token") or renewal.refresh_token
    kept = Renewal(renewal.endpoint, renewal.client_id, refresh) if refresh else None
    return Login(address, tokens["access_token"], kept)


def _json(verb: str, address: str, **options: Any) -> dict[str, Any]:
    try:
        response = httpx.request(verb, address, timeout=_SECONDS, **options)
        found: dict[str, Any] = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise Unreachable(f"{address} does not answer as it should ({type(error).__name__})") from error
    return found


def _refused(answer: dict[str, Any]) -> NoReturn:
    reason = answer.get("error_description") or answer.get("error") or "no reason was given"
    raise NotSignedIn(f"the provider did not sign you in: {reason}")
