"""Chains of the audit log: one for each dataset, and one for accounts and operators.

An event carries its number in its chain, the hash of the event before it, and its own. Events are recorded
while a transaction works and appended when it commits: the lock of a chain is the last one that a transaction
takes, is held while it commits, and is taken once for any number of events.

The hash of an access covers a salted digest of who did what. When the access is deleted after its time, the
digest stays in its place, so that the chain still holds; an act cannot be passed off as such.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.operations import canonical, facts
from service.operations.clock import rfc3339
from service.operations.signing import SigningKeys
from service.operations.tables import AuditChain, AuditEvent

GENESIS = "0" * 64
#: The chain of events that concern no dataset.
SERVICE = 0
#: Action of an access that was deleted after its time; its details are the digest of what it said.
DELETED_ACCESS = "deleted-access"
#: The act that lets accesses of before a moment be deleted.
DELETE_ACCESSES = "delete-accesses"
_RECORDED = "audit events"
#: Rows in memory at a time.
_ROWS = 1000


@dataclass(frozen=True)
class _Recorded:
    """An event that waits for the end of its transaction."""

    event: AuditEvent
    changes_facts: bool

    @property
    def chain(self) -> int:
        return self.event.dataset_id or SERVICE


def add(session: Session, event: AuditEvent, *, changes_facts: bool) -> None:
    """Keep an event until the transaction commits."""
    session.info.setdefault(_RECORDED, []).append(_Recorded(event, changes_facts))


def append_recorded(session: Session) -> None:
    """Append the events that the transaction recorded, each to its chain; the last thing it does."""
    recorded: list[_Recorded] = session.info.pop(_RECORDED, [])
    session.flush()
    for chain in sorted({each.chain for each in recorded}):
        _append(session, chain, [each for each in recorded if each.chain == chain])


def _append(session: Session, chain: int, recorded: list[_Recorded]) -> None:
    head = _locked(session, chain)
    changing = [each.event for each in recorded if each.changes_facts]
    if changing:  # under the lock: facts that another transaction changed are committed by now
        changing[-1].facts = facts.snapshot(session, chain)
    # Events of earlier versions, which may still run while they are replaced, come first.
    earlier = session.scalars(_events(chain, AuditEvent.sequence.is_(None))).all()
    for event in [*earlier, *(each.event for each in recorded)]:
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
        **_said(event),
        **({} if event.facts is None else {"facts": event.facts}),
    }
    return canonical.digest(content)


def _said(event: Any) -> dict[str, Any]:
    """Return what the hash of an event covers of who did what: all of it, or of an access a digest."""
    said = {"actor": event.actor, "action": event.action, "details": event.details}
    if event.action == DELETED_ACCESS:  # anything but the digest breaks the hash
        rest = {"actor": event.actor, "salt": event.salt}
        return {**event.details, **{name: value for name, value in rest.items() if value}}
    if event.salt is not None:
        return {"access": canonical.digest({**said, "salt": event.salt})}
    return said


def delete_access(event: AuditEvent) -> None:
    """Delete who did what from the event of an access; its number, moment and hashes stay."""
    event.details = _said(event)
    event.action, event.actor, event.salt = DELETED_ACCESS, "", None


def signed_limit(chain: int, before: datetime, keys: SigningKeys) -> dict[str, Any]:
    """Return the details of an act that lets accesses of before a moment be deleted from a chain."""
    moment = rfc3339(before)
    return {"before": moment, "signature": keys.sign(DELETE_ACCESSES, canonical.text([chain, moment]))}


@dataclass
class _Deletions:
    """The latest access that is deleted, and up to when signed acts let accesses be deleted."""

    chain: int
    keys: SigningKeys
    latest: AuditEvent | None = None
    limits: list[datetime] = field(default_factory=list)

    def note(self, event: AuditEvent) -> None:
        if event.action == DELETED_ACCESS and (self.latest is None or event.at > self.latest.at):
            self.latest = event
        elif event.action == DELETE_ACCESSES:
            moment = event.details.get("before", "")
            signature = event.details.get("signature", {})
            if self.keys.verifies(DELETE_ACCESSES, canonical.text([self.chain, moment]), signature):
                self.limits.append(datetime.fromisoformat(moment))

    def faults(self) -> Iterator[str]:
        if self.latest is not None and all(self.latest.at >= limit for limit in self.limits):
            number = self.latest.sequence
            yield f"audit event {number} was deleted, and no act that the service signed says so"


@dataclass
class ChainEnd:
    """How far a chain was verified: the number of its last event, and the hash of that one."""

    events: int = 0
    head: str = GENESIS


def verify(session: Session, chain: int, keys: SigningKeys, since: ChainEnd) -> tuple[ChainEnd, list[str]]:
    """Return the end of a chain and its faults: events that are missing, changed, added or in another order.

    `since`: the end of an earlier verification, after which events are read.
    """
    number, previous, faults = since.events, since.head, []
    deletions = _Deletions(chain, keys)
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
        deletions.note(event)
    head = session.get(AuditChain, chain)
    if (number, previous) != ((head.events, head.head) if head else (0, GENESIS)):
        faults.append("the newest audit events are missing: the chain records another end")
    return ChainEnd(number, previous), [*faults, *deletions.faults(), *_facts_faults(session, chain)]


def _facts_faults(session: Session, chain: int) -> Iterator[str]:
    """Yield the tables whose rows are not what the newest event with facts recorded.

    Nothing is compared while an event of an earlier version, which recorded no facts, is in no chain.
    """
    known = _events(chain, AuditEvent.facts.is_not(None)).order_by(None)
    newest = session.scalars(known.order_by(AuditEvent.sequence.desc()).limit(1)).one_or_none()
    unchained = session.scalars(_events(chain, AuditEvent.sequence.is_(None)).limit(1)).one_or_none()
    if newest is None or newest.facts is None or unchained is not None:
        return
    for table in facts.differences(session, chain, newest.facts):
        yield f"the table {table} was changed: its rows are not those of audit event {newest.sequence}"


def _events(chain: int, condition: ColumnElement[bool]) -> Any:
    of_chain = AuditEvent.dataset_id == (chain or None)  # = or IS NULL: both use the index
    return select(AuditEvent).where(of_chain, condition).order_by(AuditEvent.sequence, AuditEvent.id)
