"""Admission of people by what their provider says of them: who is let in, as whom, and who no longer.

Only a provider's issuer and subject identify a person. A name never does: an account that exists already is
linked to an identity by whoever manages it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, delete, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.errors import InvalidRequest
from service.operations import audit
from service.operations.openid.providers import Provider
from service.operations.openid.tokens import Claims
from service.operations.states import Role
from service.operations.tables import BrowserSession, Identity, Principal

#: Roles in the order in which a new account gets the first that its groups allow.
_ROLES = (Role.CURATOR, Role.ANALYST, Role.AUDITOR, Role.OPERATOR)


@dataclass(frozen=True)
class Refusal:
    """Why a person is not let in."""

    reason: str


def admit(session: Session, provider: Provider, claims: Claims, *, at: datetime) -> Identity | Refusal:
    """Return the identity of a person who signs in, with an account if need be, or why they are refused.

    A refusal is recorded, and ends the sessions of the person: commit it.
    """
    identity = _find(session, claims)
    principal = session.get_one(Principal, identity.principal_id) if identity else None
    reason = refusal_of(provider, claims, principal)
    if reason is None and principal is None:
        principal = _create(session, provider, claims, at)
        reason = _unknown(provider, principal)
        if principal is not None:
            identity = link(session, principal, claims.issuer, claims.subject, at=at)
    if reason is not None:
        _refuse(session, identity, provider, claims, reason, at)
        return Refusal(reason)
    assert identity is not None
    assert principal is not None
    identity.confirmed_at, identity.refused_at = at, None
    if provider.keys_days is not None:
        principal.keys_end_at = at + timedelta(days=provider.keys_days)
    audit.record(session, "sign-in", actor=principal.name, at=at, issuer=claims.issuer)
    return identity


def refusal_of(provider: Provider, claims: Claims, principal: Principal | None) -> str | None:
    """Return why these claims do not let anybody in, or not this principal; None if they do."""
    if provider.required_acr and claims.acr not in provider.required_acr:
        return "this sign-in is not of the strength that is required here"
    if provider.required_amr and not claims.amr & set(provider.required_amr):
        return "this sign-in lacks a factor that is required here"
    roles = roles_of(provider, claims)
    if not roles:
        return "you are in none of the groups that may use this service"
    if principal is not None and principal.disabled_at is not None:
        return "your account is disabled, or waits for a curator or operator to enable it"
    if principal is not None and principal.role not in roles:
        return f"your groups do not allow the role that your account has, {principal.role}"
    return None


def roles_of(provider: Provider, claims: Claims) -> list[Role]:
    """Return the roles that a person may have, by their groups, the first one for a new account."""
    if not provider.groups:
        return [Role.ANALYST, Role.CURATOR, Role.AUDITOR, Role.OPERATOR]
    return [role for role in _ROLES if claims.groups & set(provider.groups.get(role, ()))]


def link(session: Session, principal: Principal, issuer: str, subject: str, *, at: datetime) -> Identity:
    """Link an account to an identity; InvalidRequest when that is linked already."""
    identity = Identity(principal_id=principal.id, issuer=issuer, subject=subject, created_at=at)
    try:
        with session.begin_nested():
            session.add(identity)
    except IntegrityError as error:
        raise InvalidRequest("this identity is linked to an account already", status=409) from error
    return identity


def of_principals(session: Session, principals: Sequence[int]) -> dict[int, list[Identity]]:
    """Return the identities of principals, oldest first."""
    found: dict[int, list[Identity]] = {}
    query = select(Identity).where(Identity.principal_id.in_(principals)).order_by(Identity.id)
    for identity in session.scalars(query):
        found.setdefault(identity.principal_id, []).append(identity)
    return found


def holder(session: Session, claims: Claims) -> tuple[Identity, Principal] | None:
    """Return the identity that claims are of, with its principal; None for somebody unknown."""
    query = select(Identity, Principal).join(Principal, Identity.principal_id == Principal.id)
    found = session.execute(query.where(*_named(claims))).one_or_none()
    return None if found is None else (found[0], found[1])


def _find(session: Session, claims: Claims) -> Identity | None:
    return session.scalars(select(Identity).where(*_named(claims)).with_for_update()).one_or_none()


def _named(claims: Claims) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    return Identity.issuer == claims.issuer, Identity.subject == claims.subject


def _create(session: Session, provider: Provider, claims: Claims, at: datetime) -> Principal | None:
    """Create an account for a person of a provider, where it may; None if it may not."""
    if provider.unknown == "refuse":
        return None
    name = re.sub("[^a-z0-9._-]+", "-", claims.name.lower()).strip("._-")[:64]
    taken = select(Principal.id).where(Principal.name == name)
    if not name or session.scalar(taken) is not None:
        return None
    principal = Principal(
        name=name,
        role=roles_of(provider, claims)[0],
        created_at=at,
        disabled_at=at if provider.unknown == "wait" else None,
    )
    session.add(principal)
    session.flush()
    audit.record(
        session,
        "create-principal",
        actor=f"provider {provider.name}",
        at=at,
        principal=name,
        role=principal.role,
    )
    return principal


def _unknown(provider: Provider, principal: Principal | None) -> str | None:
    """Return why a person who was unknown is not let in."""
    if principal is None:
        if provider.unknown == "refuse":
            return "you have no account here; ask a curator or operator for one"
        return "your name is missing or taken here; ask a curator or operator to link your account"
    return (
        "your account is new, and waits for a curator or operator to enable it"
        if principal.disabled_at
        else None
    )


def _refuse(
    session: Session, identity: Identity | None, provider: Provider, claims: Claims, reason: str, at: datetime
) -> None:
    if identity is not None:
        identity.refused_at = at
        session.execute(delete(BrowserSession).where(BrowserSession.identity_id == identity.id))
    audit.record(
        session,
        "refuse-sign-in",
        actor=f"provider {provider.name}",
        at=at,
        subject=claims.subject[:64],
        reason=reason,
    )
