"""Sign-in by an institution's provider in a browser: OpenID Connect's code flow with PKCE, state and nonce.

What a sign-in must come back with lies in a cookie of the browser that began it, so the service keeps nothing
about sign-ins that nobody finishes.
"""

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import partial
from html import escape
from typing import Annotated, Any
from urllib.parse import urlencode

import structlog
from anyio import to_thread
from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from pydantic import Field

from service.errors import NotFound, ServiceError, SignInRefused
from service.http import cookies
from service.http.context import Context, Services
from service.http.pages import page
from service.http.problems import answers
from service.http.wire import Answer, example
from service.operations.openid import tokens
from service.operations.openid.published import Published, fetch
from service.people import admission, sessions
from service.people.sessions import StartedSession

log = structlog.get_logger()
router = APIRouter(tags=["people"])
ProviderName = Annotated[str, Path(max_length=32, description="name of a provider")]
#: Where the console goes on after a sign-in.
_SIGNED_IN = "/#/signed-in"
#: Longest value that a provider sends back.
_Sent = Annotated[str, Query(max_length=4096)]
_COMMAND = {"client_id": "cairn-command", "scopes": ["openid", "offline_access"], "audience": "cairn-api"}
_PROVIDER = {
    "name": "uni",
    "title": "University of Elsewhere",
    "issuer": "https://login.example.org",
    "command": _COMMAND,
}


class CommandSignIn(Answer, json_schema_extra=example(_COMMAND)):
    """How `cairn login` signs in by a provider: the device flow (RFC 8628)."""

    client_id: str
    scopes: list[str]
    audience: str = Field(description="the resource that its access tokens are for (RFC 8707)")


class ProviderFacts(Answer, json_schema_extra=example(_PROVIDER)):
    """A provider that people may sign in by."""

    name: str
    title: str
    issuer: str
    command: CommandSignIn | None


class ProviderList(Answer, json_schema_extra=example({"items": [_PROVIDER]})):
    """The providers, in the operator's order."""

    items: list[ProviderFacts]


@dataclass(frozen=True)
class _Begun:
    """What a sign-in that began in a browser must come back with."""

    provider: str
    state: str
    nonce: str
    verifier: str


@router.get("/.well-known/cairn-providers.json", responses=answers(anonymous=True))
def list_providers(context: Services) -> ProviderList:
    """List the providers that people may sign in by."""
    items = [
        {
            "name": each.name,
            "title": each.title,
            "issuer": each.issuer,
            "command": None
            if each.command_client_id is None
            else {
                "client_id": each.command_client_id,
                "scopes": list(each.command_scopes),
                "audience": each.audience,
            },
        }
        for each in (published.provider for published in context.providers.values())
    ]
    return ProviderList.model_validate({"items": items})


@router.get("/sign-in/{provider}", include_in_schema=False)
async def begin(provider: ProviderName, request: Request, context: Services) -> Response:
    """Send a browser to a provider to sign in."""
    return await _shown(lambda: _begin(context, provider, request))


@router.get("/sign-in/{provider}/callback", include_in_schema=False)
async def finish(
    provider: ProviderName,
    request: Request,
    context: Services,
    state: _Sent = "",
    code: _Sent = "",
    error: _Sent = "",
    iss: _Sent = "",
) -> Response:
    """Take a browser back from a provider, and start its session."""
    response = RedirectResponse(_SIGNED_IN, status_code=303)
    came_back = cookies.take_sign_in(request, response)

    async def sign_in() -> Response:
        published = _published(context, provider)
        begun = _begun(came_back, provider, state)
        if iss not in ("", published.provider.issuer):
            raise SignInRefused("the answer is of another provider")
        if error or not code:
            raise SignInRefused(f"{published.provider.title} did not sign you in")
        work = partial(_exchange, context, published, begun, code)
        started = await to_thread.run_sync(work, limiter=context.sign_ins)
        cookies.set_session(request, response, started.token, None)
        return response

    return await _shown(sign_in)


async def _shown(act: Callable[[], Awaitable[Response]]) -> Response:
    """Return what an act responds; a problem as a page, because a person looks at it."""
    try:
        return await act()
    except ServiceError as error:
        log.info("sign-in refused", reason=error.detail)
        words = escape(f"{error.detail[:1].upper()}{error.detail[1:]}.")
        content = (
            f'<h1>{escape(error.title)}</h1><p>{words}</p><p><a href="/">Back to the sign-in page</a></p>'
        )
        return HTMLResponse(page(error.title, content), status_code=error.answer_status)


async def _begin(context: Context, provider: str, request: Request) -> Response:
    published = _published(context, provider)
    begun = _Begun(provider, *(secrets.token_urlsafe(32) for _ in range(3)))
    endpoint = await to_thread.run_sync(published.require, "authorization_endpoint", limiter=context.sign_ins)
    challenge = base64.urlsafe_b64encode(hashlib.sha256(begun.verifier.encode()).digest())
    asked = {
        "response_type": "code",
        "client_id": published.provider.client_id,
        "redirect_uri": _callback(context, provider),
        "scope": " ".join(published.provider.scopes),
        "state": begun.state,
        "nonce": begun.nonce,
        "code_challenge": challenge.rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if published.provider.required_acr:
        asked["acr_values"] = " ".join(published.provider.required_acr)
    joint = "&" if "?" in endpoint else "?"
    response = RedirectResponse(f"{endpoint}{joint}{urlencode(asked)}", status_code=303)
    kept = base64.urlsafe_b64encode(json.dumps(asdict(begun)).encode()).decode()
    cookies.set_sign_in(request, response, kept)
    return response


def _published(context: Context, provider: str) -> Published:
    found = context.providers.get(provider)
    if found is None:
        raise NotFound("there is no such provider")
    return found


def _callback(context: Context, provider: str) -> str:
    return f"{context.settings.address}/sign-in/{provider}/callback"


def _begun(kept: str | None, provider: str, state: str) -> _Begun:
    """Return the sign-in that this browser began and that an answer belongs to; SignInRefused for none."""
    try:
        begun = _Begun(**json.loads(base64.urlsafe_b64decode(kept or "")))
        matches = begun.provider == provider and hmac.compare_digest(begun.state.encode(), state.encode())
    except (ValueError, TypeError, AttributeError):
        matches = False
    if not matches:
        raise SignInRefused("this answer belongs to no sign-in that began in this browser; sign in again")
    return begun


def _exchange(context: Context, published: Published, begun: _Begun, code: str) -> StartedSession:
    """Exchange a code for an id token, verify it, admit the person, and start a session."""
    provider, now = published.provider, context.clock.now()
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "redirect_uri": _callback(context, provider.name),
        "code_verifier": begun.verifier,
        "client_id": provider.client_id,
    }
    secret = provider.client_secret()
    credentials: dict[str, Any] = {} if secret is None else {"auth": (provider.client_id, secret)}
    found = fetch(provider, published.require("token_endpoint"), data=form, **credentials)
    if "id_token" not in found:
        raise SignInRefused(f"{provider.title} did not take the code; sign in again")
    try:
        claims = tokens.verify(
            published, str(found["id_token"]), audience=provider.client_id, now=now, nonce=begun.nonce
        )
    except tokens.TokenRefused as error:
        raise SignInRefused(f"the id token does not hold: {error}") from error
    settings = context.settings
    lifetime = min(timedelta(hours=settings.session_hours), timedelta(minutes=settings.provider_minutes))
    with context.database.write() as session:
        admitted = admission.admit(session, provider, claims, at=now)
        if not isinstance(admitted, admission.Refusal):
            return sessions.start(session, admitted, at=now, lifetime=lifetime, remembered=False)
    raise SignInRefused(admitted.reason)


def sign_out_address(context: Context, issuer: str) -> str | None:
    """Return where a browser signs out of the provider, too; None where the provider does not offer it."""
    for published in context.providers.values():
        if published.provider.issuer == issuer:
            endpoint = published.endpoint("end_session_endpoint")
            asked = {
                "client_id": published.provider.client_id,
                "post_logout_redirect_uri": f"{context.settings.address}/",
            }
            return None if endpoint is None else f"{endpoint}?{urlencode(asked)}"
    return None
