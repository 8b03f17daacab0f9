"""Datasets may be listed in the catalogue, with the facts that their owner chooses."""

import sqlalchemy as sa
from alembic import op

revision = "0035"
down_revision = "0034"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("listing", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("datasets", "listing")
