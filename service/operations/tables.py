"""The tables, typed; migrations/ makes them and a test compares the two.

Amounts are BIGINT in fixed units (see `ledger.units`). Times are BIGINT microseconds since 1970, so that
both databases store and compare them exactly.
"""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column, relationship

from service.operations.columns import Base as Base
from service.operations.columns import (
    DatasetId,
    GrantId,
    Id,
    Key,
    Name,
    PrincipalId,
    Sha256,
    Units,
    Uuid,
    indexed_where,
    one_of,
)
from service.operations.states import DatasetState, EndReason, EntryKind, JobState, Role


class Principal(Base):
    """A person or a program that may hold keys."""

    __tablename__ = "principals"

    id: Mapped[Id]
    name: Mapped[Name] = mapped_column(unique=True)
    role: Mapped[Role]
    created_by: Mapped[PrincipalId | None]
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]

    __table_args__ = (one_of("role", Role),)


class ApiKey(Base):
    """A key, of which only the SHA-256 is kept."""

    __tablename__ = "api_keys"

    id: Mapped[Id]
    principal_id: Mapped[PrincipalId] = mapped_column(index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Sha256]
    label: Mapped[Name]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class BrowserSession(Base):
    """A browser that is signed in with a key; only the SHA-256 of its cookie is kept."""

    __tablename__ = "sessions"

    id: Mapped[Id]
    key_id: Mapped[int] = mapped_column(Key, ForeignKey("api_keys.id"), index=True)
    handle: Mapped[str] = mapped_column(String(16), unique=True)
    digest: Mapped[Sha256]
    #: Kept by the browser after it is closed.
    remembered: Mapped[bool]
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime]
    key: Mapped[ApiKey] = relationship(lazy="joined")


class Dataset(Base):
    """Public facts of a dataset, and the report on its rows, which its owner alone may see."""

    __tablename__ = "datasets"

    id: Mapped[Id]
    name: Mapped[Name] = mapped_column(unique=True)
    owner_id: Mapped[PrincipalId] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(Text)
    state: Mapped[DatasetState]
    domain: Mapped[dict[str, Any]]
    id_column: Mapped[str | None] = mapped_column(String(128))
    accountant: Mapped[str] = mapped_column(String(16))
    epsilon_units: Mapped[Units]
    delta_units: Mapped[Units]
    release_ticks: Mapped[bool]
    #: Least epsilon of a job, and most jobs of one analyst in an hour.
    least_epsilon_units: Mapped[Units] = mapped_column(server_default="0")
    jobs_per_hour: Mapped[int] = mapped_column(server_default="1000")
    created_at: Mapped[datetime]
    sealed_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    #: Report on the rows; a draft that has one has rows.
    upload: Mapped[dict[str, Any] | None]
    #: When the owner was last told something about rows of the draft.
    checked_at: Mapped[datetime | None]
    #: Public facts that were changed after that.
    revised: Mapped[list[Any] | None]
    #: By column of a table: facts that came from rows, which its owner confirmed to be public.
    from_rows: Mapped[dict[str, Any] | None]
    #: The bounds that new jobs are planned in, if they are narrower than the declared ones.
    working: Mapped["WorkingBounds | None"] = relationship(
        primaryjoin="and_(Dataset.id == WorkingBounds.dataset_id, WorkingBounds.ended_at.is_(None))",
        lazy="joined",
        viewonly=True,
    )

    __table_args__ = (
        one_of("state", DatasetState),
        CheckConstraint("accountant IN ('sum', 'zcdp')", name="accountant"),
    )


class WorkingBounds(Base):
    """Bounds narrower than the declared ones; plans name them by digest, so none are deleted."""

    __tablename__ = "working_bounds"

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    #: Fingerprint of the domain.
    digest: Mapped[Sha256]
    domain: Mapped[dict[str, Any]]
    #: Each column with new bounds, and where these come from.
    columns: Mapped[list[Any]]
    set_by: Mapped[Name]
    set_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_working_bounds_digest", "dataset_id", "digest"),
        indexed_where("uq_working_bounds_now", "dataset_id", condition="ended_at IS NULL"),
    )


class DatasetChunk(Base):
    """Encoded rows; written by uploads until the dataset is sealed, read by workers alone."""

    __tablename__ = "dataset_chunks"

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    ordinal: Mapped[int]
    first_record: Mapped[Units]
    rows: Mapped[int]
    digest: Mapped[Sha256]
    payload: Mapped[bytes]

    __table_args__ = (UniqueConstraint("dataset_id", "ordinal"),)


class SiteSet(Base):
    """Public sites of a facility-location problem: coordinates, latitudes and longitudes, or distances.

    Plans name a set by its digest. A set without a name was sent with a job and is stored once.
    """

    __tablename__ = "site_sets"

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    name: Mapped[Name | None]
    kind: Mapped[str] = mapped_column(String(16))
    count: Mapped[int]
    width: Mapped[int]
    digest: Mapped[Sha256]
    #: How far a record can lie from a site; unknown for sets that were stored before revision 0004.
    reach: Mapped[int | None]
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

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    principal_id: Mapped[PrincipalId] = mapped_column(index=True)
    epsilon_units: Mapped[Units]
    delta_units: Mapped[Units]
    #: Kinds of jobs that it allows; None, as in grants made before revision 0015: clusterings alone.
    kinds: Mapped[list[Any] | None]
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]

    __table_args__ = (UniqueConstraint("dataset_id", "principal_id"),)

    @property
    def allowed_kinds(self) -> list[str]:
        """Kinds of jobs that it allows."""
        return allowed_kinds(self.kinds)


def allowed_kinds(kinds: list[Any] | None) -> list[str]:
    """Return the kinds of jobs that a grant with this column allows."""
    return ["cluster"] if kinds is None else list(kinds)


class Account(Base):
    """Reserved, spent and total of a dataset or of a grant; the database itself refuses to overspend.

    The dataset's account also carries the head of the ledger's chain, so that cutting off the newest
    entries is noticed, and its row lock puts the entries in order. Its entries are also counted by kind.
    """

    __tablename__ = "accounts"

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    grant_id: Mapped[GrantId | None] = mapped_column(unique=True)
    loss_total: Mapped[Units]
    loss_reserved: Mapped[Units]
    loss_spent: Mapped[Units]
    delta_total: Mapped[Units]
    delta_reserved: Mapped[Units]
    delta_spent: Mapped[Units]
    entries: Mapped[Units]
    entries_by_kind: Mapped[dict[str, Any] | None]
    head: Mapped[Sha256]

    __table_args__ = (
        CheckConstraint("loss_reserved >= 0 AND loss_spent >= 0", name="loss_not_negative"),
        CheckConstraint("delta_reserved >= 0 AND delta_spent >= 0", name="delta_not_negative"),
        CheckConstraint("loss_reserved + loss_spent <= loss_total", name="loss_within_total"),
        CheckConstraint("delta_reserved + delta_spent <= delta_total", name="delta_within_total"),
        indexed_where("uq_accounts_dataset", "dataset_id", condition="grant_id IS NULL"),
    )


class LedgerEntry(Base):
    """One event of a dataset's ledger; never changed, never deleted (a trigger refuses both)."""

    __tablename__ = "ledger_entries"

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    sequence: Mapped[Units]
    kind: Mapped[EntryKind]
    grant_id: Mapped[GrantId | None]
    actor: Mapped[Name]
    job_id: Mapped[Uuid | None] = mapped_column(index=True)
    loss_units: Mapped[Units]
    delta_units: Mapped[Units]
    at: Mapped[datetime]
    previous: Mapped[Sha256]
    hash: Mapped[Sha256]

    __table_args__ = (
        UniqueConstraint("dataset_id", "sequence"),
        Index("ix_ledger_entries_grant_sequence", "grant_id", "sequence"),
        one_of("kind", EntryKind),
        CheckConstraint("loss_units >= 0 AND delta_units >= 0", name="not_negative"),
        # A job is reserved once and settled once: charged or void, never both, never twice.
        indexed_where("uq_ledger_entries_reserved", "job_id", condition="kind = 'reserve'"),
        indexed_where("uq_ledger_entries_settled", "job_id", condition="kind IN ('charge', 'void')"),
    )


class LedgerCheckpoint(Base):
    """The end of a dataset's last verification without faults, signed by a key outside the database."""

    __tablename__ = "ledger_checkpoints"

    dataset_id: Mapped[DatasetId] = mapped_column(primary_key=True, autoincrement=False)
    state: Mapped[dict[str, Any]]
    signature: Mapped[dict[str, Any]]
    at: Mapped[datetime]


class Job(Base):
    """A request, its plan and its state."""

    __tablename__ = "jobs"

    number: Mapped[Id]
    id: Mapped[Uuid] = mapped_column(unique=True)
    dataset_id: Mapped[DatasetId]
    principal_id: Mapped[PrincipalId]
    #: None: a job of the dataset's owner, which no cap limits.
    grant_id: Mapped[GrantId | None]
    #: Owner of the dataset, who never changes: curators' lists are read by it.
    owner_id: Mapped[Units] = mapped_column(server_default="0")
    rehearsal: Mapped[bool]
    request: Mapped[dict[str, Any]]
    algorithm: Mapped[str] = mapped_column(String(64), server_default=text("''"))
    #: Operations that the plan expects, from public numbers.
    operations: Mapped[Units] = mapped_column(server_default="0")
    #: Time after the claim at which the end is shown, from public numbers; 0: at a tick.
    planned_ms: Mapped[Units] = mapped_column(server_default="0")
    plan: Mapped[dict[str, Any]]
    plan_digest: Mapped[Sha256]
    loss_units: Mapped[Units]
    delta_units: Mapped[Units]
    state: Mapped[JobState]
    reason: Mapped[EndReason]
    attempts: Mapped[int]
    worker: Mapped[str | None] = mapped_column(String(128))
    lease: Mapped[Uuid | None]
    lease_expires_at: Mapped[datetime | None]
    queued_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    #: When the end of the job is shown to its analyst.
    released_at: Mapped[datetime | None]
    progress: Mapped[dict[str, Any]]
    #: What the analyst calls the job and writes about it; no part of the request.
    name: Mapped[str] = mapped_column(String(80), server_default=text("''"))
    note: Mapped[str] = mapped_column(Text, server_default=text("''"))
    idempotency_key: Mapped[str | None] = mapped_column(String(128))
    request_digest: Mapped[Sha256]

    __table_args__ = (
        UniqueConstraint("principal_id", "idempotency_key"),
        one_of("state", JobState),
        CheckConstraint("grant_id IS NOT NULL OR principal_id = owner_id", name="granted_or_own"),
        Index("ix_jobs_state_number", "state", "number"),
        Index("ix_jobs_dataset_number", "dataset_id", "number"),
        Index("ix_jobs_principal_number", "principal_id", "number"),
        Index("ix_jobs_owner_number", "owner_id", "number"),
        Index("ix_jobs_grant_number", "grant_id", "number"),
        Index("ix_jobs_claimed_at", "claimed_at", "principal_id"),
        Index("ix_jobs_principal_queued", "principal_id", "dataset_id", "queued_at"),
        Index("ix_jobs_principal_released", "principal_id", "released_at"),
        indexed_where(
            "ix_jobs_unfinished", "principal_id", condition="state IN ('queued', 'running')", unique=False
        ),
        indexed_where("ix_jobs_rehearsals", "principal_id", "queued_at", condition="rehearsal", unique=False),
    )

    @property
    def kind(self) -> str:
        """Whether it is a clustering or which question it asks; requests name the latter alone."""
        return str(self.request.get("kind", "cluster"))

    @property
    def planned(self) -> timedelta:
        """Time after the claim at which the end of the job is shown, unless its run takes longer."""
        return timedelta(milliseconds=self.planned_ms)

    def end(
        self, state: JobState, reason: EndReason, at: datetime, released_at: datetime | None = None
    ) -> None:
        """End the job and its worker's lease; shown to its analyst at once, or when it is released."""
        self.state, self.reason, self.finished_at, self.released_at = state, reason, at, released_at or at
        self.lease = self.lease_expires_at = None


class Result(Base):
    """Released result of a job; at most one per job."""

    __tablename__ = "results"

    job_id: Mapped[Uuid] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    body: Mapped[dict[str, Any]]
    receipt: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class TranscriptPart(Base):
    """A part of what a job released, in order; stored with the result and read by streaming it."""

    __tablename__ = "transcript_parts"

    job_id: Mapped[Uuid] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes]


class Answer(Base):
    """The answer for one k of a job that left k open; stored with the result, and read alone."""

    __tablename__ = "answers"

    job_id: Mapped[Uuid] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    k: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes]


class AuditEvent(Base):
    """Every act of a curator, and every refusal that matters."""

    __tablename__ = "audit_events"

    id: Mapped[Id]
    at: Mapped[datetime]
    actor: Mapped[Name]
    action: Mapped[str] = mapped_column(String(32))
    dataset_id: Mapped[DatasetId | None] = mapped_column(index=True)
    details: Mapped[dict[str, Any]]


class Timing(Base):
    """Run time of an algorithm, measured on synthetic rows by `cairn-server calibrate`."""

    __tablename__ = "timings"

    algorithm: Mapped[str] = mapped_column(String(64), primary_key=True)
    objective: Mapped[str] = mapped_column(String(16), primary_key=True)
    kind: Mapped[str] = mapped_column(String(16), primary_key=True)
    run_seconds: Mapped[float]
    row_seconds: Mapped[float]
    operation_seconds: Mapped[float]
    measured_at: Mapped[datetime]


class Counter(Base):
    """A number for operators: refusals, waiting times, chunks read, jobs that have ended."""

    __tablename__ = "counters"

    name: Mapped[str] = mapped_column(String(32), primary_key=True)
    label: Mapped[str] = mapped_column(String(32), primary_key=True)
    value: Mapped[Units]
