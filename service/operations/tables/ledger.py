"""Tables of the ledger: accounts, entries and signed checkpoints."""

from datetime import datetime
from typing import Any

from sqlalchemy import JSON, CheckConstraint, Index, Text, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from service.operations.states import EntryKind
from service.operations.tables.columns import (
    Base,
    DatasetId,
    GrantId,
    Name,
    PopulationId,
    RowNumber,
    Sha256,
    Units,
    Uuid,
    indexed_where,
    one_of,
)


class Account(Base):
    """Reserved, spent and total of a population, dataset, period or grant; the database refuses to overspend.

    The dataset's account also carries the head of the ledger's chain, so that cutting off the newest
    entries is noticed, and its row lock puts the entries in order. Its entries are also counted by kind.
    """

    __tablename__ = "accounts"

    id: Mapped[RowNumber]
    #: None: the account of a population.
    dataset_id: Mapped[DatasetId | None]
    #: The population whose account it is; of a dataset's own account, the one that its jobs are charged to.
    population_id: Mapped[PopulationId | None]
    #: Label of the period; empty: of the dataset as a whole.
    period: Mapped[Name] = mapped_column(server_default=text("''"))
    grant_id: Mapped[GrantId | None]
    loss_total: Mapped[Units]
    loss_reserved: Mapped[Units]
    loss_spent: Mapped[Units]
    delta_total: Mapped[Units]
    delta_reserved: Mapped[Units]
    delta_spent: Mapped[Units]
    entries: Mapped[Units]
    entries_by_kind: Mapped[dict[str, Any] | None] = mapped_column(info={"harmless": "shown as a metric"})
    head: Mapped[Sha256]

    __table_args__ = (
        CheckConstraint("loss_reserved >= 0 AND loss_spent >= 0", name="loss_not_negative"),
        CheckConstraint("delta_reserved >= 0 AND delta_spent >= 0", name="delta_not_negative"),
        CheckConstraint("loss_reserved + loss_spent <= loss_total", name="loss_within_total"),
        CheckConstraint("delta_reserved + delta_spent <= delta_total", name="delta_within_total"),
        CheckConstraint("dataset_id IS NOT NULL OR population_id IS NOT NULL", name="of_something"),
        UniqueConstraint("grant_id", "period"),
        indexed_where("uq_accounts_population", "population_id", condition="dataset_id IS NULL"),
        indexed_where("uq_accounts_period", "dataset_id", "period", condition="grant_id IS NULL"),
    )

    @property
    def carries_chain(self) -> bool:
        """Whether it is the dataset's own account."""
        return self.dataset_id is not None and self.grant_id is None and not self.period


class LedgerEntry(Base):
    """One event of a dataset's ledger; never changed, never deleted (a trigger refuses both)."""

    __tablename__ = "ledger_entries"

    id: Mapped[RowNumber]
    #: Which columns the hash covers; see `ledger.entries`.
    format: Mapped[int] = mapped_column(server_default="1")
    dataset_id: Mapped[DatasetId]
    sequence: Mapped[Units]
    kind: Mapped[EntryKind]
    grant_id: Mapped[GrantId | None]
    actor: Mapped[Name]
    job_id: Mapped[Uuid | None] = mapped_column(index=True)
    loss_units: Mapped[Units]
    delta_units: Mapped[Units]
    at: Mapped[datetime]
    #: Labels of the periods whose accounts it changes; None: the account of the dataset as a whole.
    periods: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    #: The population whose account it changes as well, and by how much: what the job costs one person.
    population_id: Mapped[PopulationId | None]
    person_loss_units: Mapped[Units | None]
    person_delta_units: Mapped[Units | None]
    #: What a job paid for, or what a dataset that joins a population has reserved, as canonical JSON; None in
    #: other entries, and in those of format 1.
    payload: Mapped[str | None] = mapped_column(Text)
    previous: Mapped[Sha256]
    hash: Mapped[Sha256]

    __table_args__ = (
        UniqueConstraint("dataset_id", "sequence"),
        Index("ix_ledger_entries_grant_sequence", "grant_id", "sequence"),
        one_of("kind", EntryKind),
        CheckConstraint("loss_units >= 0 AND delta_units >= 0", name="not_negative"),
        indexed_where(
            "ix_ledger_entries_population",
            "population_id",
            condition="population_id IS NOT NULL",
            unique=False,
        ),
        # A job is reserved once and settled once: charged or void, never both, never twice.
        indexed_where("uq_ledger_entries_reserved", "job_id", condition="kind = 'reserve'"),
        indexed_where("uq_ledger_entries_settled", "job_id", condition="kind IN ('charge', 'void')"),
    )


class LedgerCheckpoint(Base):
    """The end of a dataset's last verification without faults, signed by a key outside the database."""

    __tablename__ = "ledger_checkpoints"

    dataset_id: Mapped[DatasetId] = mapped_column(
        primary_key=True, autoincrement=False, info={"harmless": "the next verification reads every entry"}
    )
    state: Mapped[dict[str, Any]]
    signature: Mapped[dict[str, Any]]
    at: Mapped[datetime] = mapped_column(info={"harmless": "shown nowhere; what was verified is signed"})
