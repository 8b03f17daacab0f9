"""Jobs know their algorithm and planned work, so that lists and the queue need not read plans."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("algorithm", sa.String(64), nullable=False, server_default=sa.text("''")))
    op.add_column("jobs", sa.Column("operations", sa.BigInteger(), nullable=False, server_default="0"))
    if op.get_bind().dialect.name == "postgresql":
        op.execute("UPDATE jobs SET algorithm = plan->>'algorithm'")
    else:
        op.execute("UPDATE jobs SET algorithm = json_extract(plan, '$.algorithm')")
    op.drop_index("ix_jobs_dataset_id", table_name="jobs")
    op.create_index("ix_jobs_dataset_number", "jobs", ["dataset_id", "number"])
    op.create_index("ix_jobs_principal_number", "jobs", ["principal_id", "number"])
    op.create_index("ix_jobs_claimed_at", "jobs", ["claimed_at", "principal_id"])


def downgrade() -> None:
    op.drop_index("ix_jobs_claimed_at", table_name="jobs")
    op.drop_index("ix_jobs_principal_number", table_name="jobs")
    op.drop_index("ix_jobs_dataset_number", table_name="jobs")
    op.create_index("ix_jobs_dataset_id", "jobs", ["dataset_id"])
    op.drop_column("jobs", "operations")
    op.drop_column("jobs", "algorithm")
