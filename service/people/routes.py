"""Routes of principals, keys, sessions and the audit log."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from sqlalchemy import ColumnElement, select

from service.errors import Forbidden, InvalidRequest, Unavailable
from service.http import cookies
from service.http.context import Context, Services
from service.http.documentation import links
from service.http.json_limits import StrictRoute
from service.http.paging import Paging, Since, Until
from service.http.problems import answers
from service.http.wire import KEY_PATTERN, NAME_PATTERN, SESSION_PATTERN
from service.operations import audit
from service.operations.audit import Record
from service.operations.states import Role
from service.operations.tables import ApiKey, AuditEvent, BrowserSession, Dataset, Principal
from service.people import admission, keys, principals, sessions
from service.people.access_events import recorded
from service.people.authentication import Anyone, AuditReader, Caller, Manager
from service.people.sign_in_routes import sign_out_address
from service.people.wire import (
    AuditPage,
    IdentityBody,
    KeyBody,
    NewKey,
    NewPrincipal,
    PrincipalBody,
    PrincipalPage,
    SessionBody,
    SessionFacts,
    SessionPage,
    WhoAmI,
)

router = APIRouter(prefix="/v1", tags=["people"], route_class=StrictRoute)
PrincipalName = Annotated[str, Path(pattern=NAME_PATTERN, description="name of a principal")]


@router.get("/whoami", responses=answers())
def whoami(caller: Anyone) -> WhoAmI:
    """Get the holder of the key or session."""
    return WhoAmI.model_validate({"name": caller.name, "role": caller.role})


@router.post("/principals", status_code=201, responses={**answers(), **links(201, "principal")})
def create_principal(body: PrincipalBody, caller: Manager, context: Services) -> NewPrincipal:
    """Create a person or program and a first key, which is shown this once."""
    now = context.clock.now()
    with context.database.write() as session:
        principal = principals.create(session, body.name, Role(body.role), by=caller, at=now)
        issued = keys.issue(session, principal, by=caller.name, at=now, label="first")
        return NewPrincipal.model_validate(
            {"name": principal.name, "role": principal.role, "first_key": _new_key(issued)}
        )


@router.get("/principals", responses=answers())
def list_principals(
    caller: Manager,
    context: Services,
    paging: Paging,
    role: Annotated[Role | None, Query(description="only principals with this role")] = None,
) -> PrincipalPage:
    """List principals by name; keys, sessions and identities are shown of those you manage."""
    query = select(Principal).where(Principal.name > (paging.after(str) or "")).order_by(Principal.name)
    if role is not None:
        query = query.where(Principal.role == role)
    managers = select(Principal).where(Principal.role.in_((Role.CURATOR, Role.OPERATOR)))
    with context.database.read() as session:
        shown, following = paging.cut(session.scalars(query.limit(paging.fetch)).all(), lambda row: row.name)
        names = {row.id: row.name for row in session.scalars(managers)}
        managed = [row.id for row in shown if principals.manages(caller, row)]
        owned = keys.of_principals(session, managed)
        signed_in = sessions.of_principals(session, managed, context.clock.now())
        linked = admission.of_principals(session, managed)
    items = [
        {
            "name": row.name,
            "role": row.role,
            "created_by": names.get(row.created_by) if row.created_by is not None else None,
            "created_at": row.created_at,
            "disabled_at": row.disabled_at,
            "waits": row.disabled_at is not None and row.disabled_at == row.created_at,
            "identities": [
                {"issuer": each.issuer, "subject": each.subject} for each in linked.get(row.id, [])
            ],
            "keys": [_key(each) for each in owned.get(row.id, [])],
            "sessions": [_session(each, caller) for each in signed_in.get(row.id, [])],
        }
        for row in shown
    ]
    return PrincipalPage.model_validate({"items": items, "next": following})


@router.delete("/principals/{name}", status_code=204, responses=answers())
def disable_principal(name: PrincipalName, caller: Manager, context: Services) -> None:
    """Disable a principal: their keys stop working; what they did stays on record."""
    with context.database.write() as session:
        principal = principals.find(session, name)
        principals.require_manager(caller, principal)
        principals.disable(session, principal, by=caller.name, at=context.clock.now())


@router.post("/principals/{name}/enable", status_code=204, responses=answers())
def enable_principal(name: PrincipalName, caller: Manager, context: Services) -> None:
    """Enable an account that was disabled, or that waits since its holder first signed in by a provider."""
    with context.database.write() as session:
        principal = principals.find(session, name)
        principals.require_manager(caller, principal)
        principals.enable(session, principal, by=caller.name, at=context.clock.now())


@router.post("/principals/{name}/identities", status_code=204, responses=answers())
def link_identity(name: PrincipalName, body: IdentityBody, caller: Manager, context: Services) -> None:
    """Link an account to a person's identity at a provider, who can then sign in by it."""
    now = context.clock.now()
    with context.database.write() as session:
        principal = principals.find(session, name)
        principals.require_manager(caller, principal)
        published = context.providers.get(body.provider)
        if published is None:
            raise InvalidRequest(f"there is no provider named {body.provider}; ask the operator for its name")
        issuer = published.provider.issuer
        admission.link(session, principal, issuer, body.subject, at=now)
        audit.record(
            session,
            "link-identity",
            actor=caller.name,
            at=now,
            principal=name,
            subject=body.subject,
            issuer=issuer,
        )


@router.post("/principals/{name}/keys", status_code=201, responses={**answers(), **links(201, "key")})
def issue_key(name: PrincipalName, body: KeyBody, caller: Manager, context: Services) -> NewKey:
    """Issue another key, which is shown this once."""
    limits = keys.KeyLimits(
        timedelta(days=body.expires_in_days) if body.expires_in_days else None,
        None if body.datasets is None else tuple(body.datasets),
        body.read_only,
    )
    with context.database.write() as session:
        principal = principals.find(session, name)
        principals.require_manager(caller, principal)
        issued = keys.issue(
            session,
            principal,
            by=caller.name,
            at=context.clock.now(),
            label=body.label,
            limits=limits,
        )
        return NewKey.model_validate(_new_key(issued))


@router.delete("/principals/{name}/keys/{key_id}", status_code=204, responses=answers())
def revoke_key(
    name: PrincipalName,
    key_id: Annotated[str, Path(pattern=KEY_PATTERN, description="id of a key")],
    caller: Manager,
    context: Services,
) -> None:
    """Revoke a key, with immediate effect."""
    with context.database.write() as session:
        principal = principals.find(session, name)
        principals.require_manager(caller, principal)
        keys.revoke(session, principal, key_id, by=caller.name, at=context.clock.now())


@router.post("/sessions", status_code=201, responses=answers(), openapi_extra=recorded("start-session"))
def start_session(
    body: SessionBody, caller: Anyone, context: Services, request: Request, response: Response
) -> SessionFacts:
    """Sign in with a browser: exchange the key for a session cookie."""
    if caller.session is not None or caller.key_id is None:
        raise Forbidden("a session starts with a key: send it as `Authorization: Bearer <key>`")
    settings = context.settings
    if body.remember and not settings.remembered_session_days:
        raise InvalidRequest(
            "this service keeps nobody signed in after the browser is closed; sign in without that option"
        )
    kept = timedelta(days=settings.remembered_session_days) if body.remember else None
    with context.database.write() as session:
        started = sessions.start(
            session,
            session.get_one(ApiKey, caller.key_id),
            at=context.clock.now(),
            lifetime=kept or timedelta(hours=settings.session_hours),
            remembered=body.remember,
        )
        cookies.set_session(request, response, started.token, kept)
        return SessionFacts.model_validate({**_session(started.row, caller), "current": True})


@router.get("/sessions", responses=answers())
def list_sessions(caller: Anyone, context: Services) -> SessionPage:
    """List the browsers that you are signed in with."""
    with context.database.read() as session:
        found = sessions.of_principals(session, [caller.id], context.clock.now())[caller.id]
    items = [
        {**_session(each, caller), "sign_out_url": _sign_out_address(context, each, caller)} for each in found
    ]
    return SessionPage.model_validate({"items": items, "next": None})


@router.delete("/sessions/{session_id}", status_code=204, responses=answers())
def end_session(
    session_id: Annotated[
        str, Path(pattern=SESSION_PATTERN, description="id of a session, or `current` to sign out")
    ],
    caller: Anyone,
    context: Services,
    request: Request,
    response: Response,
) -> None:
    """End a session of yours, or of a person you manage, with immediate effect."""
    handle = caller.session or "" if session_id == "current" else session_id
    with context.database.write() as session:
        sessions.end(session, caller, handle, at=context.clock.now())
    if handle == caller.session:
        cookies.clear_session(request, response)


@dataclass(frozen=True)
class AuditFilter:
    """Which events of the audit log to list; what is left out does not matter."""

    dataset: Annotated[str | None, Query(pattern=NAME_PATTERN, description="only events of this dataset")] = (
        None
    )
    actor: Annotated[str | None, Query(pattern=NAME_PATTERN, description="only events of this person")] = None
    record: Annotated[
        Record,
        Query(description="`acts`, or `access`: who read what, who signed in and who was refused what"),
    ] = Record.ACTS
    since: Since = None
    until: Until = None

    def conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield what the filters other than the dataset demand."""
        yield AuditEvent.action.in_(self.record.actions)
        if self.actor is not None:
            yield AuditEvent.actor == self.actor
        if self.since is not None:
            yield AuditEvent.at >= self.since
        if self.until is not None:
            yield AuditEvent.at < self.until


@router.get("/audit", responses=answers(), openapi_extra=recorded("read-audit", "dataset"))
def list_audit(
    caller: AuditReader,
    context: Services,
    paging: Paging,
    wanted: Annotated[AuditFilter, Depends()],
) -> AuditPage:
    """List acts on your datasets, by you, and on principals, newest first; auditors see all acts.

    Of accesses, curators see those to their datasets and their own.
    """
    everybody = wanted.record == Record.ACTS or caller.role in (Role.AUDITOR, Role.OPERATOR)
    visible = select(Dataset.id, Dataset.name)
    if caller.role != Role.AUDITOR:
        visible = visible.where(Dataset.owner_id == caller.id)
    with context.database.read() as session:
        owned = {row.id: row.name for row in session.execute(visible)}
        found = audit.events(
            session,
            dataset_ids=[number for number, name in owned.items() if wanted.dataset in (None, name)],
            actor=caller.name if wanted.dataset is None else None,
            wanted=wanted.conditions(),
            of_service=wanted.dataset is None and everybody,
            before=paging.after(int),
            limit=paging.fetch,
        )
    shown, following = paging.cut(found, lambda event: event.id)
    items = [
        {
            "id": event.id,
            "at": event.at,
            "actor": event.actor,
            "action": event.action,
            "dataset": owned.get(event.dataset_id) if event.dataset_id is not None else None,
            "words": audit.in_words(event.action, event.details),
            "details": event.details,
        }
        for event in shown
    ]
    return AuditPage.model_validate({"items": items, "next": following})


def _sign_out_address(context: Context, row: BrowserSession, caller: Caller) -> str | None:
    """Return where this browser signs out of the provider that it signed in by."""
    if row.identity is None or row.handle != caller.session:
        return None
    try:
        return sign_out_address(context, row.identity.issuer)
    except Unavailable:
        return None  # signing out here must not wait for the provider


def _key(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.handle,
        "label": key.label,
        "created_at": key.created_at,
        "expires_at": key.expires_at,
        "revoked_at": key.revoked_at,
        "datasets": key.datasets,
        "read_only": key.read_only,
    }


def _new_key(issued: keys.IssuedKey) -> dict[str, Any]:
    return {**_key(issued.row), "key": issued.text}


def _session(row: BrowserSession, caller: Caller) -> dict[str, Any]:
    return {
        "id": row.handle,
        "key": row.key.handle if row.key else None,
        "issuer": row.identity.issuer if row.identity else None,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
        "remembered": row.remembered,
        "current": row.handle == caller.session,
    }
