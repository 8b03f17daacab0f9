"""Retention of the audit log: accesses are deleted after a time, acts never.

A signed act says before which moment. What stays of an access is its number, its moment, its hashes and the
digest of what it said, so that the chain still verifies.
"""

from datetime import datetime

from sqlalchemy import select

from service.operations import audit, audit_chain
from service.operations.audit import Record
from service.operations.audit_chain import DELETE_ACCESSES, SERVICE
from service.operations.database import Database
from service.operations.signing import SigningKeys
from service.operations.tables import AuditEvent

#: Accesses in one transaction, so that nobody waits long for a lock.
_BATCH = 500


def delete_accesses(database: Database, keys: SigningKeys, *, before: datetime, now: datetime) -> int:
    """Delete who read what, signed in or was refused before a moment; return how many events that were."""
    before = before.replace(microsecond=0)  # as the signed act names it
    old = (AuditEvent.action.in_(Record.ACCESS.actions), AuditEvent.salt.is_not(None), AuditEvent.at < before)
    with database.read() as session:
        datasets = session.scalars(select(AuditEvent.dataset_id).where(*old).distinct()).all()
    for dataset_id in datasets:
        limit = audit_chain.signed_limit(dataset_id or SERVICE, before, keys)
        with database.write() as session:
            audit.record(
                session,
                DELETE_ACCESSES,
                actor="operator",
                at=now,
                dataset_id=dataset_id,
                changes_facts=False,
                **limit,
            )
    deleted = 0
    while True:
        with database.write() as session:
            found = session.scalars(
                select(AuditEvent).where(*old).order_by(AuditEvent.id).limit(_BATCH)
            ).all()
            for event in found:
                audit_chain.delete_access(event)
        if not found:
            return deleted
        deleted += len(found)
