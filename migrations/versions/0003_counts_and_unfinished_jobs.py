"""Counts for operators, kept in the database; and an index of the jobs that have not ended."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"

UNFINISHED = "state IN ('queued', 'running')"


def upgrade() -> None:
    op.create_table(
        "counters",
        sa.Column("name", sa.String(length=32), nullable=False),
        sa.Column("label", sa.String(length=32), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", "label", name=op.f("pk_counters")),
    )
    op.create_index(
        "ix_jobs_unfinished",
        "jobs",
        ["principal_id"],
        sqlite_where=sa.text(UNFINISHED),
        postgresql_where=sa.text(UNFINISHED),
    )


def downgrade() -> None:
    op.drop_index("ix_jobs_unfinished", table_name="jobs")
    op.drop_table("counters")
