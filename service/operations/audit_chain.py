"""Chains of the audit log: one for each dataset, and one for accounts and operators.

An event carries its number in its chain, the hash of the event before it, and its own. Events are recorded
while a transaction works and appended when it commits: the lock of a chain is the last one that a transaction
takes, is held while it commits, and is taken once for any number of events.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.operations import canonical
from service.operations.tables import AuditChain, AuditEvent

GENESIS = "0" * 64
#: The chain of events that concern no dataset.
SERVICE = 0
_RECORDED = "audit events"
#: Rows in memory at a time.
_ROWS = 1000


def add(session: Session, event: AuditEvent) -> None:
    """Keep an event until the transaction commits."""
    session.info.setdefault(_RECORDED, []).append(event)


def append_recorded(session: Session) -> None:
    """Append the events that the transaction recorded, each to its chain; the last thing it does."""
    recorded: list[AuditEvent] = session.info.pop(_RECORDED, [])
    session.flush()
    for chain in sorted({_chain_of(event) for event in recorded}):
        _append(session, chain, [event for event in recorded if _chain_of(event) == chain])


def _append(session: Session, chain: int, recorded: list[AuditEvent]) -> None:
    head = _locked(session, chain)
    # Those of earlier versions, which may still run while they are replaced, come first.
    for event in [*session.scalars(_events(chain, AuditEvent.sequence.is_(None))), *recorded]:
        head.events += 1
        event.sequence, event.previous = head.events, head.head
        event.hash = head.head = hash_of(chain, event)
        session.add(event)
    session.flush()


def _locked(session: Session, chain: int) -> AuditChain:
    """Lock a chain until the transaction ends; the first event creates it."""
    query = select(AuditChain).where(AuditChain.id == chain).with_for_update()
    head = session.scalars(query.execution_options(populate_existing=True)).one_or_none()
    if head is not None:
        return head
    try:
        with session.begin_nested():
            session.execute(insert(AuditChain).values(id=chain, events=0, head=GENESIS))
    except IntegrityError:
        pass  # another transaction was faster
    return session.scalars(query).one()


def hash_of(chain: int, event: Any) -> str:
    """Return the hash of an event with its place in a chain."""
    content = {
        "chain": chain,
        "sequence": event.sequence,
        "previous": event.previous,
        "at": event.at.isoformat(),
        "actor": event.actor,
        "action": event.action,
        "details": event.details,
    }
    return canonical.digest(content)


@dataclass
class ChainEnd:
    """How far a chain was verified: the number of its last event, and the hash of that one."""

    events: int = 0
    head: str = GENESIS


def verify(session: Session, chain: int, since: ChainEnd) -> tuple[ChainEnd, list[str]]:
    """Return the end of a chain and its faults: events that are missing, changed, added or in another order.

    `since`: the end of an earlier verification, after which events are read.
    """
    number, previous, faults = since.events, since.head, []
    later = _events(chain, AuditEvent.sequence > since.events).execution_options(yield_per=_ROWS)
    for event in session.scalars(later):
        number += 1
        if event.sequence != number:
            faults.append(f"audit event {number} is missing: the next has number {event.sequence}")
            number = event.sequence
        if event.previous != previous:
            faults.append(f"audit event {number} does not follow the one before it")
        if event.hash != hash_of(chain, event):
            faults.append(f"audit event {number} was altered: its hash does not match its content")
        previous = event.hash
    head = session.get(AuditChain, chain)
    if (number, previous) != ((head.events, head.head) if head else (0, GENESIS)):
        faults.append("the newest audit events are missing: the chain records another end")
    return ChainEnd(number, previous), faults


def _chain_of(event: AuditEvent) -> int:
    return event.dataset_id or SERVICE


def _events(chain: int, condition: ColumnElement[bool]) -> Any:
    of_chain = AuditEvent.dataset_id.is_not_distinct_from(chain or None)
    return select(AuditEvent).where(of_chain, condition).order_by(AuditEvent.sequence, AuditEvent.id)
