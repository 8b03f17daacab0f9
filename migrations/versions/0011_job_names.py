"""Names of jobs and notes about them."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.add_column("jobs", sa.Column("name", sa.String(80), nullable=False, server_default=sa.text("''")))
    op.add_column("jobs", sa.Column("note", sa.Text(), nullable=False, server_default=sa.text("''")))


def downgrade() -> None:
    op.drop_column("jobs", "note")
    op.drop_column("jobs", "name")
