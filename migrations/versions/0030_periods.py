"""Datasets may have periods, each with rows of its own; jobs store which ones they read."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0029"


def upgrade() -> None:
    op.create_table(
        "periods",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("dataset_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("label", sa.String(length=64), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("epsilon_units", sa.BigInteger(), nullable=False),
        sa.Column("delta_units", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("rows_digest", sa.String(length=64), nullable=True),
        sa.Column("upload", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("checked_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sealed_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("state IN ('draft', 'sealed', 'retired')", name=op.f("ck_periods_state")),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_periods_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_periods")),
        sa.UniqueConstraint(
            "dataset_id", "label", "version", name=op.f("uq_periods_dataset_id_label_version")
        ),
    )
    op.add_column("datasets", sa.Column("unit", sa.String(length=16), nullable=True))
    op.add_column(
        "dataset_chunks",
        sa.Column("period_id", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
    )
    op.add_column("jobs", sa.Column("periods", sa.JSON(none_as_null=True), nullable=True))


def downgrade() -> None:
    op.drop_column("jobs", "periods")
    op.drop_column("dataset_chunks", "period_id")
    op.drop_column("datasets", "unit")
    op.drop_table("periods")
