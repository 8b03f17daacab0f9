"""The tables, typed; migrations/ makes them and a test compares the two.

Amounts are BIGINT in fixed units (see `ledger.units`). Times are BIGINT microseconds since 1970, so that
both databases store and compare them exactly.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Dialect,
    Enum,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from service.operations.states import DatasetState, EndReason, EntryKind, JobState, Role

__all__ = [
    "Account",
    "ApiKey",
    "AuditEvent",
    "Base",
    "Counter",
    "Dataset",
    "DatasetChunk",
    "Grant",
    "Job",
    "LedgerEntry",
    "Principal",
    "Result",
    "SiteSet",
]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Moment(TypeDecorator[datetime]):
    """A UTC moment, stored as whole microseconds since 1970."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        return None if value is None else _EPOCH + value * _MICROSECOND


# SQLite numbers rows by itself only for INTEGER primary keys, which it stores as 64 bits.
Key = BigInteger().with_variant(Integer, "sqlite")


def _stored(kind: type[StrEnum], length: int = 16) -> Enum:
    """Store an enumeration as the text of its values."""
    return Enum(kind, native_enum=False, length=length, values_callable=lambda each: [x.value for x in each])


class Base(DeclarativeBase):
    """The schema; constraints are named so that migrations can speak of them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        datetime: Moment,
        dict[str, Any]: JSON(none_as_null=True),
        list[Any]: JSON,
        bytes: LargeBinary,
        bool: Boolean,
        Role: _stored(Role),
        DatasetState: _stored(DatasetState),
        EntryKind: _stored(EntryKind),
        JobState: _stored(JobState),
        EndReason: _stored(EndReason, 32),
    }


class Principal(Base):
    """A person or a program that may hold keys."""

    __tablename__ = "principals"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    role: Mapped[Role]
    created_by: Mapped[int | None] = mapped_column(Key, ForeignKey("principals.id"))
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]

    __table_args__ = (CheckConstraint("role IN ('curator', 'analyst')", name="role"),)


class ApiKey(Base):
    """A key, of which only the SHA-256 is kept."""

    __tablename__ = "api_keys"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    principal_id: Mapped[int] = mapped_column(Key, ForeignKey("principals.id"), index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[str] = mapped_column(String(64))
    label: Mapped[str] = mapped_column(String(64))
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class Dataset(Base):
    """What is public about a dataset, and what its owner alone may see (upload)."""

    __tablename__ = "datasets"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    name: Mapped[str] = mapped_column(String(64), unique=True)
    owner_id: Mapped[int] = mapped_column(Key, ForeignKey("principals.id"), index=True)
    description: Mapped[str] = mapped_column(Text)
    state: Mapped[DatasetState]
    domain: Mapped[dict[str, Any]]
    id_column: Mapped[str | None] = mapped_column(String(128))
    accountant: Mapped[str] = mapped_column(String(16))
    epsilon_units: Mapped[int] = mapped_column(BigInteger)
    delta_units: Mapped[int] = mapped_column(BigInteger)
    release_ticks: Mapped[bool]
    created_at: Mapped[datetime]
    sealed_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    upload: Mapped[dict[str, Any] | None]

    __table_args__ = (
        CheckConstraint("state IN ('draft', 'sealed', 'retired')", name="state"),
        CheckConstraint("accountant IN ('sum', 'zcdp')", name="accountant"),
    )


class DatasetChunk(Base):
    """Encoded rows; written once by the upload, read by workers alone."""

    __tablename__ = "dataset_chunks"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(Key, ForeignKey("datasets.id"))
    ordinal: Mapped[int] = mapped_column(Integer)
    first_record: Mapped[int] = mapped_column(BigInteger)
    rows: Mapped[int] = mapped_column(Integer)
    digest: Mapped[str] = mapped_column(String(64))
    payload: Mapped[bytes]

    __table_args__ = (UniqueConstraint("dataset_id", "ordinal"),)


class SiteSet(Base):
    """Public sites of a facility-location problem: coordinates, latitudes and longitudes, or distances.

    Plans name a set by its digest. A set without a name was sent with a job and is stored once.
    """

    __tablename__ = "site_sets"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(Key, ForeignKey("datasets.id"))
    name: Mapped[str | None] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(16))
    count: Mapped[int] = mapped_column(Integer)
    width: Mapped[int] = mapped_column(Integer)
    digest: Mapped[str] = mapped_column(String(64))
    #: How far a record can lie from a site; unknown for sets that were stored before revision 0004.
    reach: Mapped[int | None] = mapped_column(Integer)
    payload: Mapped[bytes] = mapped_column(deferred=True)
    created_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("dataset_id", "name"),
        Index("ix_site_sets_digest", "dataset_id", "digest"),
        CheckConstraint("kind IN ('coordinates', 'great-circle', 'distances')", name="kind"),
    )


class Grant(Base):
    """An analyst's right to a dataset; a withdrawn grant keeps its account, so nothing is ever reset."""

    __tablename__ = "grants"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(Key, ForeignKey("datasets.id"))
    principal_id: Mapped[int] = mapped_column(Key, ForeignKey("principals.id"), index=True)
    epsilon_units: Mapped[int] = mapped_column(BigInteger)
    delta_units: Mapped[int] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    __table_args__ = (UniqueConstraint("dataset_id", "principal_id"),)


class Account(Base):
    """Reserved, spent and total of a dataset or of a grant; the database itself refuses to overspend.

    The dataset's account also carries the head of the ledger's chain, so that cutting off the newest
    entries is noticed, and its row lock puts the entries in order.
    """

    __tablename__ = "accounts"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(Key, ForeignKey("datasets.id"))
    grant_id: Mapped[int | None] = mapped_column(Key, ForeignKey("grants.id"), unique=True)
    loss_total: Mapped[int] = mapped_column(BigInteger)
    loss_reserved: Mapped[int] = mapped_column(BigInteger)
    loss_spent: Mapped[int] = mapped_column(BigInteger)
    delta_total: Mapped[int] = mapped_column(BigInteger)
    delta_reserved: Mapped[int] = mapped_column(BigInteger)
    delta_spent: Mapped[int] = mapped_column(BigInteger)
    entries: Mapped[int] = mapped_column(BigInteger)
    head: Mapped[str] = mapped_column(String(64))

    __table_args__ = (
        CheckConstraint("loss_reserved >= 0 AND loss_spent >= 0", name="loss_not_negative"),
        CheckConstraint("delta_reserved >= 0 AND delta_spent >= 0", name="delta_not_negative"),
        CheckConstraint("loss_reserved + loss_spent <= loss_total", name="loss_within_total"),
        CheckConstraint("delta_reserved + delta_spent <= delta_total", name="delta_within_total"),
        Index(
            "uq_accounts_dataset",
            "dataset_id",
            unique=True,
            sqlite_where=text("grant_id IS NULL"),
            postgresql_where=text("grant_id IS NULL"),
        ),
    )


class LedgerEntry(Base):
    """One event of a dataset's ledger; never changed, never deleted (a trigger refuses both)."""

    __tablename__ = "ledger_entries"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    dataset_id: Mapped[int] = mapped_column(Key, ForeignKey("datasets.id"))
    sequence: Mapped[int] = mapped_column(BigInteger)
    kind: Mapped[EntryKind]
    grant_id: Mapped[int | None] = mapped_column(Key, ForeignKey("grants.id"), index=True)
    actor: Mapped[str] = mapped_column(String(64))
    job_id: Mapped[str | None] = mapped_column(String(36))
    loss_units: Mapped[int] = mapped_column(BigInteger)
    delta_units: Mapped[int] = mapped_column(BigInteger)
    at: Mapped[datetime]
    previous: Mapped[str] = mapped_column(String(64))
    hash: Mapped[str] = mapped_column(String(64))

    __table_args__ = (
        UniqueConstraint("dataset_id", "sequence"),
        CheckConstraint("kind IN ('open', 'raise', 'cap', 'reserve', 'charge', 'void')", name="kind"),
        CheckConstraint("loss_units >= 0 AND delta_units >= 0", name="not_negative"),
        # A job is reserved once and settled once: charged or void, never both, never twice.
        Index(
            "uq_ledger_entries_reserved",
            "job_id",
            unique=True,
            sqlite_where=text("kind = 'reserve'"),
            postgresql_where=text("kind = 'reserve'"),
        ),
        Index(
            "uq_ledger_entries_settled",
            "job_id",
            unique=True,
            sqlite_where=text("kind IN ('charge', 'void')"),
            postgresql_where=text("kind IN ('charge', 'void')"),
        ),
    )


class Job(Base):
    """A request, its plan, and where it stands."""

    __tablename__ = "jobs"

    number: Mapped[int] = mapped_column(Key, primary_key=True)
    id: Mapped[str] = mapped_column(String(36), unique=True)
    dataset_id: Mapped[int] = mapped_column(Key, ForeignKey("datasets.id"), index=True)
    principal_id: Mapped[int] = mapped_column(Key, ForeignKey("principals.id"))
    grant_id: Mapped[int] = mapped_column(Key, ForeignKey("grants.id"))
    rehearsal: Mapped[bool]
    request: Mapped[dict[str, Any]]
    plan: Mapped[dict[str, Any]]
    plan_digest: Mapped[str] = mapped_column(String(64))
    loss_units: Mapped[int] = mapped_column(BigInteger)
    delta_units: Mapped[int] = mapped_column(BigInteger)
    state: Mapped[JobState]
    reason: Mapped[EndReason]
    attempts: Mapped[int] = mapped_column(Integer)
    worker: Mapped[str | None] = mapped_column(String(128))
    lease: Mapped[str | None] = mapped_column(String(36))
    lease_expires_at: Mapped[datetime | None]
    queued_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    progress: Mapped[dict[str, Any]]
    idempotency_key: Mapped[str | None] = mapped_column(String(128))
    request_digest: Mapped[str] = mapped_column(String(64))

    __table_args__ = (
        UniqueConstraint("principal_id", "idempotency_key"),
        CheckConstraint("state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name="state"),
        Index("ix_jobs_state_number", "state", "number"),
        Index(
            "ix_jobs_unfinished",
            "principal_id",
            sqlite_where=text("state IN ('queued', 'running')"),
            postgresql_where=text("state IN ('queued', 'running')"),
        ),
    )

    def end(self, state: JobState, reason: EndReason, at: datetime) -> None:
        """End the job and its worker's lease."""
        self.state, self.reason, self.finished_at = state, reason, at
        self.lease = self.lease_expires_at = None


class Result(Base):
    """What a job released; at most one per job."""

    __tablename__ = "results"

    job_id: Mapped[str] = mapped_column(String(36), ForeignKey("jobs.id"), primary_key=True)
    body: Mapped[dict[str, Any]]
    receipt: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class AuditEvent(Base):
    """Every act of a curator, and every refusal that matters."""

    __tablename__ = "audit_events"

    id: Mapped[int] = mapped_column(Key, primary_key=True)
    at: Mapped[datetime]
    actor: Mapped[str] = mapped_column(String(64))
    action: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[int | None] = mapped_column(Key, ForeignKey("datasets.id"), index=True)
    details: Mapped[dict[str, Any]]


class Counter(Base):
    """A number that only grows, for operators: refusals, waiting times, chunks read."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    label: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[int] = mapped_column(BigInteger)
