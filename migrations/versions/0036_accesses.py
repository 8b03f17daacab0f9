"""Accesses in the audit log have a salt, so that they can be deleted and the chain still verifies."""

import sqlalchemy as sa
from alembic import op

revision = "0036"
down_revision = "0035"


def upgrade() -> None:
    op.add_column("audit_events", sa.Column("salt", sa.String(length=32), nullable=True))


def downgrade() -> None:
    op.drop_column("audit_events", "salt")
