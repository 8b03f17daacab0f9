"""Answers for every k of jobs that left k open."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_answers_job_id")),
        sa.PrimaryKeyConstraint("job_id", "k", name=op.f("pk_answers")),
    )


def downgrade() -> None:
    op.drop_table("answers")
