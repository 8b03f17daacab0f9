"""Indexes for every list of jobs and ledger entries, so that pages stay fast after years of use."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("owner_id", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE jobs SET owner_id = (SELECT owner_id FROM datasets WHERE datasets.id = jobs.dataset_id)"
    )
    op.create_index("ix_jobs_owner_number", "jobs", ["owner_id", "number"])
    op.create_index("ix_jobs_grant_number", "jobs", ["grant_id", "number"])
    only = sa.text("rehearsal")
    op.create_index(
        "ix_jobs_rehearsals",
        "jobs",
        ["principal_id", "queued_at"],
        sqlite_where=only,
        postgresql_where=only,
    )
    op.drop_index("ix_ledger_entries_grant_id", table_name="ledger_entries")
    op.create_index("ix_ledger_entries_grant_sequence", "ledger_entries", ["grant_id", "sequence"])
    op.create_index("ix_ledger_entries_job_id", "ledger_entries", ["job_id"])


def downgrade() -> None:
    op.drop_index("ix_ledger_entries_job_id", table_name="ledger_entries")
    op.drop_index("ix_ledger_entries_grant_sequence", table_name="ledger_entries")
    op.create_index("ix_ledger_entries_grant_id", "ledger_entries", ["grant_id"])
    op.drop_index("ix_jobs_rehearsals", table_name="jobs")
    op.drop_index("ix_jobs_grant_number", table_name="jobs")
    op.drop_index("ix_jobs_owner_number", table_name="jobs")
    op.drop_column("jobs", "owner_id")
