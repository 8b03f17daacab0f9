"""Tables for operators: audit log, measured run times, counters, workers."""

from datetime import datetime
from typing import Any

from sqlalchemy import Index, String
from sqlalchemy.orm import Mapped, mapped_column

from core.kernels.backend import NUMPY
from service.operations.tables.columns import Base, DatasetId, Key, Name, RowNumber, Sha256, Units


class AuditEvent(Base):
    """An act, a reading, a sign-in or a refusal, with its place in a chain; see `operations.audit_chain`."""

    __tablename__ = "audit_events"

    id: Mapped[RowNumber]
    at: Mapped[datetime]
    actor: Mapped[Name]
    action: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[DatasetId | None] = mapped_column(index=True)
    details: Mapped[dict[str, Any]]
    #: Place in the chain of the dataset, or of the service; None for events of versions before revision 0024,
    #: until the next event is appended.
    sequence: Mapped[Units | None]
    previous: Mapped[Sha256 | None]
    hash: Mapped[Sha256 | None]
    #: Of an access: random, part of the digest by which the chain names it, so that nobody can guess what a
    #: deleted one said. None: an act, or an access that is deleted.
    salt: Mapped[str | None] = mapped_column(String(32))
    #: Digests of the facts that the act left behind; see `operations.facts`.
    facts: Mapped[dict[str, Any] | None]

    __table_args__ = (
        Index("ix_audit_events_dataset_sequence", "dataset_id", "sequence"),
        Index("ix_audit_events_action", "action", "dataset_id"),
    )


class AuditChain(Base):
    """The end of a chain of audit events, whose lock puts them in order; 0 is that of the service."""

    __tablename__ = "audit_chains"

    id: Mapped[int] = mapped_column(Key, primary_key=True, autoincrement=False)
    events: Mapped[Units]
    head: Mapped[Sha256]


class Timing(Base):
    """Run time of an algorithm, measured on synthetic rows by `cairn-server calibrate`."""

    __tablename__ = "timings"
    harmless = "plans are timed by it; what a plan costs and measures does not depend on it"

    algorithm: Mapped[str] = mapped_column(String(64), primary_key=True)
    objective: Mapped[str] = mapped_column(String(16), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    run_seconds: Mapped[float]
    row_seconds: Mapped[float]
    operation_seconds: Mapped[float]
    #: The body of the kernels that ran (`core.kernels.backend`).
    kernels: Mapped[str] = mapped_column(String(16), default=NUMPY, server_default=NUMPY)
    measured_at: Mapped[datetime]


class Counter(Base):
    """A number for operators: refusals, waiting times, chunks read, jobs that have ended."""

    __tablename__ = "counters"
    harmless = "numbers for operators"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    label: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[Units]


class WorkerRecord(Base):
    """A worker process as it last announced itself; see `operations.workforce`."""

    __tablename__ = "workers"
    harmless = "what workers last announced; they announce it again"

    name: Mapped[str] = mapped_column(String(64), primary_key=True)
    machine: Mapped[str] = mapped_column(String(64))
    #: When it was last seen; in the future if it waits until then.
    seen_at: Mapped[datetime]
    #: Most memory that a plan may need to run on this worker.
    plan_bytes: Mapped[Units]
    #: Size of the chunk cache of its machine, and of the disk that holds it.
    cache_bytes: Mapped[Units]
    disk_bytes: Mapped[Units]
    disk_free_bytes: Mapped[Units]
