"""Transcripts of runs, stored in parts beside their results."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.create_table(
        "transcript_parts",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_transcript_parts_job_id")),
        sa.PrimaryKeyConstraint("job_id", "ordinal", name=op.f("pk_transcript_parts")),
    )


def downgrade() -> None:
    op.drop_table("transcript_parts")
