"""Principals: people and programs, their roles, and who manages them.

A curator manages the analysts and curators that they created, analysts that a provider brought, and themself.
Operators manage everybody.
While there is an operator, curators create analysts alone.
"""

from datetime import datetime

from sqlalchemy import select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.errors import Forbidden, InvalidRequest, NotFound
from service.operations import audit
from service.operations.states import Role
from service.operations.tables import Principal
from service.people.authentication import Caller


def create(session: Session, name: str, role: Role, *, by: Caller | None, at: datetime) -> Principal:
    """Create a principal; InvalidRequest when the name is taken, Forbidden for a role that is not theirs."""
    if role != Role.ANALYST and by is not None and by.is_curator and _has_operator(session):
        raise Forbidden(f"operators create {role}s here; ask one of them")
    principal = Principal(name=name, role=role, created_by=by.id if by else None, created_at=at)
    try:
        with session.begin_nested():
            session.add(principal)
    except IntegrityError as error:
        raise InvalidRequest(f"the name {name} is taken; choose another", status=409) from error
    audit.record(session, "create-principal", actor=by.name if by else name, at=at, principal=name, role=role)
    return principal


def disable(session: Session, principal: Principal, *, by: str, at: datetime) -> None:
    """Disable a principal: keys stop working, queued jobs end void, and what they did stays on record."""
    # Locked, so that two curators who disable each other at the same moment cannot both succeed.
    active = session.scalars(
        select(Principal.id)
        .where(Principal.role == Role.CURATOR, Principal.disabled_at.is_(None))
        .order_by(Principal.id)
        .with_for_update()
    ).all()
    if principal.role == Role.CURATOR and set(active) <= {principal.id}:
        raise InvalidRequest("this is the last curator; create another before you disable it", status=409)
    if principal.disabled_at is None:
        principal.disabled_at = at
        audit.record(session, "disable-principal", actor=by, at=at, principal=principal.name)


def recover(session: Session, name: str, *, at: datetime) -> Principal:
    """Return an active curator of this name: enabled again, or new. For operators."""
    principal = session.scalars(select(Principal).where(Principal.name == name)).one_or_none()
    if principal is None:
        principal = create(session, name, Role.CURATOR, by=None, at=at)
    elif principal.role != Role.CURATOR:
        raise InvalidRequest(f"{name} is not a curator; choose another name", status=409)
    principal.disabled_at = None
    audit.record(session, "recover-curator", actor="operator", at=at, principal=name)
    return principal


def find(session: Session, name: str) -> Principal:
    """Return the principal of this name, or raise NotFound."""
    found = session.scalars(select(Principal).where(Principal.name == name)).one_or_none()
    if found is None:
        raise NotFound(f"there is no account named {name}; POST /v1/principals creates one")
    return found


def enable(session: Session, principal: Principal, *, by: str, at: datetime) -> None:
    """Let a disabled principal in again, or for the first time; keys that were revoked stay revoked."""
    if principal.disabled_at is not None:
        principal.disabled_at = None
        audit.record(session, "enable-principal", actor=by, at=at, principal=principal.name)


def exist(session: Session) -> bool:
    """Return True when there is any principal, so that the database is in use."""
    return session.scalar(select(Principal.id).limit(1)) is not None


def manages(caller: Caller, principal: Principal) -> bool:
    """Return True when the caller may issue and revoke the principal's keys."""
    if caller.role == Role.OPERATOR:
        return True
    created = principal.created_by == caller.id and principal.role in (Role.CURATOR, Role.ANALYST)
    brought = principal.created_by is None and principal.role == Role.ANALYST
    return caller.is_curator and (created or brought or principal.id == caller.id)


def require_manager(caller: Caller, principal: Principal) -> None:
    """Raise Forbidden unless the caller manages the principal."""
    if not manages(caller, principal):
        raise Forbidden("only operators, and the curator who created this account, manage it and its keys")


def are_independent(session: Session, one: Principal, other: Principal) -> bool:
    """Return True unless one curator may have had keys of both accounts.

    Whoever creates an account is shown its first key, and may issue more; operators are trusted with that.
    """
    return not (_holders(session, one) & _holders(session, other))


def _holders(session: Session, principal: Principal) -> set[int]:
    """Return the ids of a curator and of the curators who created their account, one after the other."""
    found = {principal.id}
    while principal.created_by is not None:
        principal = session.get_one(Principal, principal.created_by)
        if principal.role != Role.CURATOR or principal.id in found:
            break
        found.add(principal.id)
    return found


def _has_operator(session: Session) -> bool:
    active = select(Principal.id).where(Principal.role == Role.OPERATOR, Principal.disabled_at.is_(None))
    return session.scalar(active.limit(1)) is not None
