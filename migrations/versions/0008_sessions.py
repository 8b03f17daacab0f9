"""Sessions of browsers that signed in with a key."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"


def upgrade() -> None:
    key = sa.BigInteger().with_variant(sa.Integer, "sqlite")
    op.create_table(
        "sessions",
        sa.Column("id", key, primary_key=True),
        sa.Column("key_id", key, sa.ForeignKey("api_keys.id", name="fk_sessions_key_id"), nullable=False),
        sa.Column("handle", sa.String(16), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("remembered", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("handle", name="uq_sessions_handle"),
    )
    op.create_index("ix_sessions_key_id", "sessions", ["key_id"])


def downgrade() -> None:
    op.drop_table("sessions")
