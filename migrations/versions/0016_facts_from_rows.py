"""Datasets know which facts of their columns came from rows and were confirmed to be public."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("from_rows", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("datasets", "from_rows")
