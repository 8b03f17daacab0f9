"""Datasets can have public rows, which jobs learn from."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "public_row_sets",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("set_by", sa.String(length=64), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_public_row_sets_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_public_row_sets")),
    )
    op.create_index("ix_public_row_sets_digest", "public_row_sets", ["dataset_id", "digest"])
    now = sa.text("ended_at IS NULL")
    op.create_index(
        "uq_public_row_sets_now",
        "public_row_sets",
        ["dataset_id"],
        unique=True,
        sqlite_where=now,
        postgresql_where=now,
    )


def downgrade() -> None:
    op.drop_table("public_row_sets")
