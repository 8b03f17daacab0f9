"""Tables of datasets, their rows, bounds, sites and grants."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, Index, String, Text, UniqueConstraint, false, text, true
from sqlalchemy.orm import Mapped, mapped_column, relationship

from service.operations.states import DatasetState, RequestState, Unit
from service.operations.tables.columns import (
    Base,
    DatasetId,
    Id,
    Name,
    PopulationId,
    PrincipalId,
    RowNumber,
    Sha256,
    Units,
    Uuid,
    indexed_where,
    one_of,
)


class Dataset(Base):
    """Public facts of a dataset, and the report on its rows, which its owner alone may see."""

    __tablename__ = "datasets"
    audited = True

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
    #: Whether results appear at planned times; the column has its first name.
    planned_release: Mapped[bool] = mapped_column("release_ticks")
    #: Least epsilon of a job, and most jobs of one analyst in an hour.
    least_epsilon_units: Mapped[Units] = mapped_column(server_default="0")
    jobs_per_hour: Mapped[int] = mapped_column(server_default="1000")
    created_at: Mapped[datetime]
    sealed_at: Mapped[datetime | None]
    retired_at: Mapped[datetime | None]
    #: Keyed digest of the rows: which chunks there are, in order; None of rows from before revision 0028.
    rows_digest: Mapped[Sha256 | None]
    #: Report on the rows; a draft that has one has rows.
    upload: Mapped[dict[str, Any] | None]
    #: When the owner last saw a report on rows of the draft.
    checked_at: Mapped[datetime | None]
    #: Public facts that were changed after that.
    revised: Mapped[list[Any] | None]
    #: By column of a table: facts that came from rows, which its owner confirmed to be public.
    from_rows: Mapped[dict[str, Any] | None]
    #: The unit of privacy of a dataset with periods, see `ledger.charging`; None: a dataset without periods.
    unit: Mapped[Unit | None]
    #: The population whose people the rows are of; it never leaves it.
    population_id: Mapped[PopulationId | None]
    #: What its owner declared to join without an id column: no period has two rows of one person.
    one_row_per_person: Mapped[bool] = mapped_column(server_default=false())
    #: How delimited text is read; None if the rows were read by inference, before revision 0019.
    reading: Mapped[dict[str, Any] | None]
    #: What the catalogue shows of it, see `datasets.catalogue.listings`; None: it is not listed.
    listing: Mapped[dict[str, Any] | None]
    #: Its population, if it has joined one.
    population: Mapped["Population | None"] = relationship(lazy="joined", viewonly=True)
    #: The bounds that new jobs are planned in, if they are narrower than the declared ones.
    working: Mapped["WorkingBounds | None"] = relationship(
        primaryjoin="and_(Dataset.id == WorkingBounds.dataset_id, WorkingBounds.ended_at.is_(None))",
        lazy="joined",
        viewonly=True,
    )

    #: The public rows that new jobs may learn from, if any are attached.
    public_rows: Mapped["PublicRowSet | None"] = relationship(
        primaryjoin="and_(Dataset.id == PublicRowSet.dataset_id, PublicRowSet.ended_at.is_(None))",
        lazy="joined",
        viewonly=True,
    )

    __table_args__ = (one_of("state", DatasetState),)

    @property
    def has_accounts_of_periods(self) -> bool:
        """Whether each of its periods has an account; else there is one for all its rows."""
        return self.unit is not None and self.unit.has_accounts_of_periods


class Population(Base):
    """People who may be in several datasets, with a total of their own."""

    __tablename__ = "populations"
    audited = True

    id: Mapped[Id]
    name: Mapped[Name] = mapped_column(unique=True)
    owner_id: Mapped[PrincipalId] = mapped_column(index=True)
    description: Mapped[str] = mapped_column(Text)
    accountant: Mapped[str] = mapped_column(String(16))
    epsilon_units: Mapped[Units]
    delta_units: Mapped[Units]
    #: Names of other curators who may let their datasets join.
    curators: Mapped[list[Any]]
    created_at: Mapped[datetime]


class WorkingBounds(Base):
    """Bounds narrower than the declared ones; plans name them by digest, so none are deleted."""

    __tablename__ = "working_bounds"
    audited = True

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


class PublicRowSet(Base):
    """Public rows that jobs may learn from; plans name them by digest, so none are deleted."""

    __tablename__ = "public_row_sets"
    audited = True

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    #: SHA-256 of the numbers.
    digest: Mapped[Sha256]
    count: Mapped[int]
    width: Mapped[int]
    #: In the data's units: doubles, row by row.
    payload: Mapped[bytes] = mapped_column(deferred=True, info={"unaudited": "covered by `digest`"})
    set_by: Mapped[Name]
    set_at: Mapped[datetime]
    ended_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_public_row_sets_digest", "dataset_id", "digest"),
        indexed_where("uq_public_row_sets_now", "dataset_id", condition="ended_at IS NULL"),
    )


class Period(Base):
    """A version of a period: its public facts, and the report on its rows, which the owner alone may see.

    At most one version of a label is sealed, and at most one is a draft. Accounts belong to the label. A
    dataset without periods has one whose label is empty; the dataset itself holds its first version.
    """

    __tablename__ = "periods"
    audited = True

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    label: Mapped[Name]
    version: Mapped[int]
    #: Public order of magnitude of the number of its records.
    size: Mapped[Units]
    #: Budget of its account as declared; the dataset's, where there is one account for all periods.
    epsilon_units: Mapped[Units]
    delta_units: Mapped[Units]
    state: Mapped[DatasetState]
    #: Keyed digest of the rows: which chunks there are, in order.
    rows_digest: Mapped[Sha256 | None]
    upload: Mapped[dict[str, Any] | None]
    #: When the owner last saw a report on its rows.
    checked_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    sealed_at: Mapped[datetime | None]

    __table_args__ = (UniqueConstraint("dataset_id", "label", "version"), one_of("state", DatasetState))


class DatasetChunk(Base):
    """Encoded rows; written by uploads until they are sealed, read by workers alone."""

    __tablename__ = "dataset_chunks"

    id: Mapped[RowNumber]
    dataset_id: Mapped[DatasetId]
    ordinal: Mapped[int]
    first_record: Mapped[Units]
    rows: Mapped[int]
    digest: Mapped[Sha256]
    payload: Mapped[bytes]
    #: The version of the period whose rows they are; 0: the first version of a dataset without periods.
    period_id: Mapped[Units] = mapped_column(server_default=text("0"))

    __table_args__ = (UniqueConstraint("dataset_id", "ordinal"),)


class SiteSet(Base):
    """Public sites of a facility-location problem: coordinates, latitudes and longitudes, or distances.

    Plans name a set by its digest. A set without a name was sent with a job and is stored once.
    """

    __tablename__ = "site_sets"
    audited = True
    audited_where = "name IS NOT NULL"  # one that came with a job is named by the job's plan

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    name: Mapped[Name | None]
    kind: Mapped[str] = mapped_column(String(16))
    count: Mapped[int]
    width: Mapped[int]
    digest: Mapped[Sha256]
    #: How far a record can lie from a site; unknown for sets that were stored before revision 0004.
    reach: Mapped[int | None]
    payload: Mapped[bytes] = mapped_column(deferred=True, info={"unaudited": "covered by `digest`"})
    created_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("dataset_id", "name"),
        Index("ix_site_sets_digest", "dataset_id", "digest"),
        CheckConstraint("kind IN ('coordinates', 'great-circle', 'distances')", name="kind"),
    )


class Grant(Base):
    """An analyst's right to a dataset; a withdrawn grant keeps its account, so nothing is ever reset."""

    __tablename__ = "grants"
    audited = True

    id: Mapped[Id]
    dataset_id: Mapped[DatasetId]
    principal_id: Mapped[PrincipalId] = mapped_column(index=True)
    epsilon_units: Mapped[Units]
    delta_units: Mapped[Units]
    #: Kinds of jobs that it allows; None, as in grants made before revision 0015: clusterings alone.
    kinds: Mapped[list[Any] | None]
    created_at: Mapped[datetime]
    revoked_at: Mapped[datetime | None]
    #: What the data may be used for, and the number of the permit that says so.
    purpose: Mapped[str] = mapped_column(Text, server_default=text("''"))
    permit: Mapped[str] = mapped_column(String(128), server_default=text("''"))
    #: From then on it is as if withdrawn.
    ends_at: Mapped[datetime | None]
    #: Whether results can be read after its end.
    keeps_results: Mapped[bool] = mapped_column(server_default=true())

    __table_args__ = (UniqueConstraint("dataset_id", "principal_id"),)

    def has_ended(self, now: datetime) -> bool:
        """Return True from the grant's end on, if it has one."""
        return self.ends_at is not None and self.ends_at <= now

    @property
    def allowed_kinds(self) -> list[str]:
        """Kinds of jobs that it allows."""
        return allowed_kinds(self.kinds)


class AccessRequest(Base):
    """A request for a grant, a larger one or a larger total, and what became of it."""

    __tablename__ = "access_requests"
    audited = True

    number: Mapped[Id]
    id: Mapped[Uuid] = mapped_column(unique=True)
    dataset_id: Mapped[DatasetId]
    asked_by: Mapped[PrincipalId]
    #: Whose grant it is about; None: about a total.
    analyst_id: Mapped[PrincipalId | None]
    #: The period whose total it is about; None: the dataset's.
    period: Mapped[Name | None]
    asked_at: Mapped[datetime]
    #: Amounts and terms, as they were sent.
    asked: Mapped[dict[str, Any]]
    #: The plan that they are for, with its price and forecast.
    plan: Mapped[dict[str, Any] | None]
    state: Mapped[RequestState]
    #: Amounts and terms that the owner agreed to.
    decided: Mapped[dict[str, Any] | None]
    #: Who agreed as the owner, or who declined.
    decided_by: Mapped[PrincipalId | None]
    decided_at: Mapped[datetime | None]
    reason: Mapped[str] = mapped_column(Text, server_default=text("''"))
    #: The second curator who agreed.
    seconded_by: Mapped[PrincipalId | None]
    seconded_at: Mapped[datetime | None]

    __table_args__ = (
        one_of("state", RequestState),
        Index("ix_access_requests_dataset_number", "dataset_id", "number"),
        Index("ix_access_requests_asked_by", "asked_by", "number"),
        indexed_where(
            "ix_access_requests_pending",
            "state",
            condition="state IN ('open', 'proposed')",
            unique=False,
        ),
    )


def allowed_kinds(kinds: list[Any] | None) -> list[str]:
    """Return the kinds of jobs that a grant with this column allows."""
    return ["cluster"] if kinds is None else list(kinds)
