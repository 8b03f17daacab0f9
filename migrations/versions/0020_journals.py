"""A running job keeps what it released, so that another worker can go on."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    op.create_table(
        "journal_entries",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=True),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_journal_entries_job_id")),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=op.f("pk_journal_entries")),
    )


def downgrade() -> None:
    op.drop_table("journal_entries")
