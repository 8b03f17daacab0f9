"""The tables, typed; migrations/ makes them and a test compares the two.

Amounts are BIGINT in fixed units (see `ledger.units`). Times are BIGINT microseconds since 1970, so that
both databases store and compare them exactly.
"""

from service.operations.tables.columns import Base
from service.operations.tables.datasets import (
    AccessRequest,
    Dataset,
    DatasetChunk,
    Grant,
    Period,
    Population,
    PublicRowSet,
    SiteSet,
    WorkingBounds,
    allowed_kinds,
)
from service.operations.tables.jobs import Job, JournalEntry, Result, StoredAnswer, TranscriptPart
from service.operations.tables.ledger import Account, LedgerCheckpoint, LedgerEntry
from service.operations.tables.monitoring import AuditChain, AuditEvent, Counter, Timing, WorkerRecord
from service.operations.tables.people import ApiKey, BrowserSession, Identity, Principal

__all__ = [
    "AccessRequest",
    "Account",
    "ApiKey",
    "AuditChain",
    "AuditEvent",
    "Base",
    "BrowserSession",
    "Counter",
    "Dataset",
    "DatasetChunk",
    "Grant",
    "Identity",
    "Job",
    "JournalEntry",
    "LedgerCheckpoint",
    "LedgerEntry",
    "Period",
    "Population",
    "Principal",
    "PublicRowSet",
    "Result",
    "SiteSet",
    "StoredAnswer",
    "Timing",
    "TranscriptPart",
    "WorkerRecord",
    "WorkingBounds",
    "allowed_kinds",
]
