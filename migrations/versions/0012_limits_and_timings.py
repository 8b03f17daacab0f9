"""Datasets limit epsilon and jobs per hour; measured run times of algorithms."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column(
        "datasets", sa.Column("least_epsilon_units", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column("datasets", sa.Column("jobs_per_hour", sa.Integer(), nullable=False, server_default="1000"))
    op.create_index("ix_jobs_principal_queued", "jobs", ["principal_id", "dataset_id", "queued_at"])
    op.create_table(
        "timings",
        sa.Column("algorithm", sa.String(64), nullable=False),
        sa.Column("objective", sa.String(16), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("run_seconds", sa.Double(), nullable=False),
        sa.Column("row_seconds", sa.Double(), nullable=False),
        sa.Column("operation_seconds", sa.Double(), nullable=False),
        sa.Column("measured_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("algorithm", "objective", "kind", name="pk_timings"),
    )


def downgrade() -> None:
    op.drop_table("timings")
    op.drop_index("ix_jobs_principal_queued", table_name="jobs")
    op.drop_column("datasets", "jobs_per_hour")
    op.drop_column("datasets", "least_epsilon_units")
