"""Results of rehearsals state how many bytes they take, for a quota; those of before count as none."""

import sqlalchemy as sa
from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("results", sa.Column("stored_bytes", sa.BigInteger(), server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("results", "stored_bytes")
