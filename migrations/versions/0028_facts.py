"""Audit events carry digests of the facts that they leave behind; datasets, a keyed digest of their rows."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.add_column("audit_events", sa.Column("facts", sa.JSON(none_as_null=True), nullable=True))
    op.add_column("datasets", sa.Column("rows_digest", sa.String(length=64), nullable=True))


def downgrade() -> None:
    op.drop_column("datasets", "rows_digest")
    op.drop_column("audit_events", "facts")
