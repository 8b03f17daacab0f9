"""Drafts hold rows until they are sealed, and know what was changed after a look at them."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column("datasets", sa.Column("checked_at", sa.BigInteger(), nullable=True))
    op.add_column("datasets", sa.Column("revised", sa.JSON(), nullable=True))


def downgrade() -> None:
    # An earlier version takes a draft for a dataset without rows.
    drafts = "SELECT id FROM datasets WHERE state = 'draft'"
    op.execute(f"DELETE FROM dataset_chunks WHERE dataset_id IN ({drafts})")
    op.execute("UPDATE datasets SET upload = NULL WHERE state = 'draft'")
    op.drop_column("datasets", "revised")
    op.drop_column("datasets", "checked_at")
