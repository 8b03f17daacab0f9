"""Entries of the ledger say what a job paid for; those that are there keep their format, 1."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    op.add_column("ledger_entries", sa.Column("format", sa.Integer(), server_default="1", nullable=False))
    op.add_column("ledger_entries", sa.Column("payload", sa.Text(), nullable=True))


def downgrade() -> None:
    op.drop_column("ledger_entries", "payload")
    op.drop_column("ledger_entries", "format")
