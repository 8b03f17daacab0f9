"""Signed heads: how far each chain had come, in a file outside the database; a chain behind it was cut off.

A line is a JSON object, signed on its own. Lines are appended, and the last one of a chain counts; a whole
verification, which finds the chains behind none of them, leaves only those.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import select
from sqlalchemy.orm import Session

from service.ledger.charging import WHOLE
from service.operations import canonical
from service.operations.audit_chain import SERVICE
from service.operations.clock import rfc3339
from service.operations.signing import SigningKeys
from service.operations.tables import Account, AuditChain, AuditEvent, LedgerEntry

LEDGER = "ledger"
AUDIT = "audit"
_PURPOSE = "head"


@dataclass(frozen=True)
class Head:
    """The end of a chain: of a dataset's ledger or audit events, or of the service's (dataset 0)."""

    chain: str
    dataset: int
    number: int
    hash: str
    at: str


def present(session: Session, at: datetime, dataset_id: int | None = None) -> list[Head]:
    """Return the heads of all chains, or of those of one dataset."""
    ledgers = select(Account.dataset_id, Account.entries, Account.head).where(
        Account.dataset_id.is_not(None), Account.grant_id.is_(None), Account.period == WHOLE
    )
    audits = select(AuditChain.id, AuditChain.events, AuditChain.head)
    if dataset_id is not None:
        ledgers = ledgers.where(Account.dataset_id == dataset_id)
        audits = audits.where(AuditChain.id == dataset_id)
    moment = rfc3339(at)
    return [
        Head(chain, dataset or SERVICE, number, head, moment)
        for chain, query in ((LEDGER, ledgers), (AUDIT, audits))
        for dataset, number, head in session.execute(query)
    ]


def record(path: Path, heads: list[Head], keys: SigningKeys) -> None:
    """Append heads to the file, each signed."""
    lines = [asdict(head) for head in heads]
    signed = [{**line, "signature": keys.sign(_PURPOSE, canonical.text(line))} for line in lines]
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write("".join(f"{canonical.text(line)}\n" for line in signed))
        file.flush()
        os.fsync(file.fileno())


def shorten(path: Path) -> None:
    """Leave the last line of each chain. What a worker appends meanwhile is lost, and signed again later."""
    newest: dict[tuple[str, int], str] = {}
    for line in path.read_text().splitlines(keepends=True):
        head = json.loads(line)
        newest[head["chain"], head["dataset"]] = line
    shorter = path.with_suffix(".new")
    descriptor = os.open(shorter, os.O_WRONLY | os.O_TRUNC | os.O_CREAT, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.writelines(newest.values())
        file.flush()
        os.fsync(file.fileno())
    shorter.replace(path)


def faults(session: Session, path: Path, keys: SigningKeys) -> Iterator[str]:
    """Yield the chains that do not have the entry with which they ended when their head was signed."""
    if not path.exists():
        return
    newest: dict[tuple[str, int], Head] = {}
    for number, line in enumerate(path.read_text().splitlines(), start=1):
        head = _read(line, keys)
        if head is None:
            yield f"line {number} of {path.name} is damaged, or not signed by a key of this service"
        else:
            newest[head.chain, head.dataset] = head
    for head in newest.values():
        if head.number and _hash_at(session, head) != head.hash:
            whose = f"dataset {head.dataset}" if head.dataset != SERVICE else "the service"
            yield (
                f"the {head.chain} of {whose} is behind number {head.number}, which was signed at {head.at}: "
                "later entries were removed or rewritten, or an older back-up was restored"
            )


def _read(line: str, keys: SigningKeys) -> Head | None:
    """Return a head that a key of the service signed; None for any other line."""
    try:
        content = json.loads(line)
        signature = content.pop("signature")
        valid = keys.verifies(_PURPOSE, canonical.text(content), signature)
        return Head(**content) if valid else None
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _hash_at(session: Session, head: Head) -> str | None:
    if head.chain == LEDGER:
        entries = select(LedgerEntry.hash).where(LedgerEntry.dataset_id == head.dataset)
        return session.scalar(entries.where(LedgerEntry.sequence == head.number))
    dataset_id = None if head.dataset == SERVICE else head.dataset
    events = select(AuditEvent.hash).where(AuditEvent.dataset_id == dataset_id)
    return session.scalar(events.where(AuditEvent.sequence == head.number))
