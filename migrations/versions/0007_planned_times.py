"""Jobs have a planned time, and a time at which their end is shown to their analyst."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

_MOST_TICKS = 40


def upgrade() -> None:
    op.add_column("jobs", sa.Column("planned_ms", sa.BigInteger(), nullable=False, server_default="0"))
    op.add_column("jobs", sa.Column("released_at", sa.BigInteger(), nullable=True))
    # Ends that were shown at ticks after the claim stay where they were; the others were shown at once.
    ticked = "reason <> 'ended' AND dataset_id IN (SELECT id FROM datasets WHERE release_ticks)"
    for tick in (1_000_000 * 2**number for number in range(_MOST_TICKS)):
        op.execute(
            f"UPDATE jobs SET released_at = claimed_at + {tick} WHERE {ticked}"
            f" AND released_at IS NULL AND finished_at - claimed_at <= {tick}"
        )
    op.execute("UPDATE jobs SET released_at = finished_at WHERE released_at IS NULL")
    op.create_index("ix_jobs_principal_released", "jobs", ["principal_id", "released_at"])


def downgrade() -> None:
    op.drop_index("ix_jobs_principal_released", table_name="jobs")
    op.drop_column("jobs", "released_at")
    op.drop_column("jobs", "planned_ms")
