"""Kinds of jobs that a grant allows; grants made before allow clusterings alone."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"


def upgrade() -> None:
    op.add_column("grants", sa.Column("kinds", sa.JSON(), nullable=True))


def downgrade() -> None:
    op.drop_column("grants", "kinds")
