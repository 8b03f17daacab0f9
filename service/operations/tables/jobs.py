"""Tables of jobs and what they released."""

from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, String, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from service.operations.states import EndReason, JobState
from service.operations.tables.columns import (
    Base,
    DatasetId,
    GrantId,
    Id,
    PrincipalId,
    Sha256,
    Units,
    Uuid,
    indexed_where,
    one_of,
)


class Job(Base):
    """A request, its plan and its state."""

    __tablename__ = "jobs"

    number: Mapped[Id] = mapped_column(info={"harmless": "the order of the queue and of lists"})
    id: Mapped[Uuid] = mapped_column(unique=True)
    dataset_id: Mapped[DatasetId]
    principal_id: Mapped[PrincipalId]
    #: None: a job of the dataset's owner, which no cap limits.
    grant_id: Mapped[GrantId | None]
    #: Owner of the dataset, or former one whose own job it is: curators' lists are read by it.
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
    attempts: Mapped[int] = mapped_column(info={"harmless": "the charge is the same for every attempt"})
    worker: Mapped[str | None] = mapped_column(String(128), info={"harmless": "the charge names the worker"})
    lease: Mapped[Uuid | None] = mapped_column(
        info={"harmless": "of a running job: another worker takes it over"}
    )
    lease_expires_at: Mapped[datetime | None] = mapped_column(
        info={"harmless": "of a running job: another worker takes it over"}
    )
    queued_at: Mapped[datetime]
    claimed_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    #: When the end of the job is shown to its analyst.
    released_at: Mapped[datetime | None]
    progress: Mapped[dict[str, Any]] = mapped_column(info={"harmless": "shown while the job runs"})
    #: What the analyst calls the job and writes about it; no part of the request.
    name: Mapped[str] = mapped_column(
        String(80), server_default=text("''"), info={"harmless": "the analyst may change it"}
    )
    note: Mapped[str] = mapped_column(
        Text, server_default=text("''"), info={"harmless": "the analyst may change it"}
    )
    idempotency_key: Mapped[str | None] = mapped_column(String(128))
    request_digest: Mapped[Sha256]
    #: The periods that it reads, see `datasets.periods.selection`; None: a dataset without periods, in its
    #: first version.
    periods: Mapped[dict[str, Any] | None]

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
        """Kind of the job: `cluster`, or the question that it asks; requests of clusterings name none."""
        return str(self.request.get("kind", "cluster"))

    @property
    def charged_periods(self) -> tuple[str, ...]:
        """Labels of the accounts that it is charged to; one that is empty for the dataset as a whole."""
        return ("",) if self.periods is None else tuple(self.periods["charged"])

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
    #: Of a rehearsal: bytes of its result, answers and transcript, which count towards a quota.
    stored_bytes: Mapped[Units] = mapped_column(
        server_default="0", info={"harmless": "counts towards a quota of rehearsals"}
    )


class TranscriptPart(Base):
    """A part of what a job released, in order; stored with the result and read by streaming it."""

    __tablename__ = "transcript_parts"

    job_id: Mapped[Uuid] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes]


class JournalEntry(Base):
    """A value that a running job released, kept before the job uses it; deleted when the job ends.

    A worker that takes the job over goes on from these values.
    """

    __tablename__ = "journal_entries"
    harmless = (
        "noisy values of a running job, deleted when it ends. A worker that takes the job over goes on from "
        "them, so that an edit changes what is released, as do rows that are edited while a job runs and put "
        "back; it reveals nothing more and costs nothing"
    )

    job_id: Mapped[Uuid] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    ordinal: Mapped[int] = mapped_column(primary_key=True)
    #: Names what was asked: the step and its statistic, or the name of a seed.
    digest: Mapped[Sha256]
    #: None: too long to keep, so that nobody can go on from here.
    payload: Mapped[bytes | None]


class StoredAnswer(Base):
    """The answer for one k of a job, or other arrays of its release; stored with it, and read alone."""

    __tablename__ = "answers"

    job_id: Mapped[Uuid] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    k: Mapped[int] = mapped_column(primary_key=True)
    payload: Mapped[bytes]
