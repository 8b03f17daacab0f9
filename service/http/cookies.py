"""The session cookie, and the short-lived one of a sign-in that is under way at a provider.

Over HTTPS the cookie is `Secure` and has the prefix `__Host-`, so that no other host can set it.
Without HTTPS there are sessions on a loopback address alone, where nothing travels over a network.
"""

from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from fastapi import Response
from starlette.requests import HTTPConnection

from service.errors import Forbidden, InvalidRequest

_NAME = "cairn-session"
_SIGN_IN = "cairn-sign-in"
#: Seconds that a sign-in at a provider may take.
_SIGN_IN_SECONDS = 600
_SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}


def read(connection: HTTPConnection) -> str | None:
    """Return the token that a request carries in its cookie, if any.

    Forbidden when another site may have caused the request: browsers send the token whichever page asks.
    """
    name = _name(connection, _NAME)
    token = connection.cookies.get(name) if name else None
    if token is None:
        return None
    origin = connection.headers.get("origin")
    own = f"{connection.scope['scheme']}://{_host(connection)}"
    if origin != own and not (origin is None and connection.scope["method"] in _SAFE_METHODS):
        raise Forbidden(
            "a request with a session cookie must come from a page of this service: its Origin must be " + own
        )
    return token


def set_session(
    connection: HTTPConnection, response: Response, token: str, lifetime: timedelta | None
) -> None:
    """Let the browser keep a token: for a lifetime, or until it is closed."""
    name = _require_name(connection, _NAME)
    seconds = int(lifetime.total_seconds()) if lifetime else None
    response.set_cookie(name, token, max_age=seconds, **_attributes(connection))


def clear_session(connection: HTTPConnection, response: Response) -> None:
    """Let the browser forget the token."""
    if name := _name(connection, _NAME):
        response.delete_cookie(name, **_attributes(connection))


def set_sign_in(connection: HTTPConnection, response: Response, text: str) -> None:
    """Let the browser keep what its sign-in must come back with.

    Unlike a session it is sent when the provider leads back here, which is another site (`Lax`).
    """
    attributes = {**_attributes(connection), "samesite": "lax"}
    response.set_cookie(_require_name(connection, _SIGN_IN), text, max_age=_SIGN_IN_SECONDS, **attributes)


def take_sign_in(connection: HTTPConnection, response: Response) -> str | None:
    """Return what the sign-in must come back with, if it began in this browser; it is used once."""
    name = _name(connection, _SIGN_IN)
    text = connection.cookies.get(name) if name else None
    if name and text:
        response.delete_cookie(name, **{**_attributes(connection), "samesite": "lax"})
    return text


def _attributes(connection: HTTPConnection) -> dict[str, Any]:
    return {"path": "/", "secure": _is_https(connection), "httponly": True, "samesite": "strict"}


def _require_name(connection: HTTPConnection, name: str) -> str:
    found = _name(connection, name)
    if found is None:
        raise InvalidRequest(
            "browsers sign in over HTTPS only, or on the machine that runs the service "
            "(http://localhost); ask the operator for the service's HTTPS address"
        )
    return found


def _name(connection: HTTPConnection, name: str) -> str | None:
    """Return the full name of a cookie, or None where there are no sessions: without HTTPS on a network."""
    if _is_https(connection):
        return f"__Host-{name}"
    return name if _is_loopback(_host(connection)) else None


def _is_https(connection: HTTPConnection) -> bool:
    return bool(connection.scope["scheme"] == "https")


def _host(connection: HTTPConnection) -> str:
    return connection.headers.get("host", "").lower()


def _is_loopback(host: str) -> bool:
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False
