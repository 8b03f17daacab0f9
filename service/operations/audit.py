"""The audit log: every act of a curator, kept permanently."""

from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, select
from sqlalchemy.orm import Session

from service.operations.tables import AuditEvent


def record(
    session: Session, action: str, *, actor: str, at: datetime, dataset_id: int | None = None, **details: Any
) -> None:
    """Record an act in the transaction that performs it."""
    session.add(AuditEvent(at=at, actor=actor, action=action, dataset_id=dataset_id, details=details))


def events(
    session: Session, *, dataset_ids: list[int], actor: str | None, before: int | None, limit: int
) -> list[AuditEvent]:
    """Return acts on these datasets and, for an actor, their own and those on principals, newest first."""
    wanted: ColumnElement[bool] = AuditEvent.dataset_id.in_(dataset_ids)
    if actor is not None:
        wanted = wanted | (AuditEvent.actor == actor) | AuditEvent.dataset_id.is_(None)
    query = select(AuditEvent).where(wanted)
    if before is not None:
        query = query.where(AuditEvent.id < before)
    return list(session.scalars(query.order_by(AuditEvent.id.desc()).limit(limit)))
