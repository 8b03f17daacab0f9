"""How a file is read is a declared fact; datasets from before have none."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("reading", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("datasets", "reading")
