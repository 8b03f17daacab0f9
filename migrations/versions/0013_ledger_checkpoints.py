"""Signed checkpoints from which ledgers are verified."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.create_table(
        "ledger_checkpoints",
        sa.Column("dataset_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), nullable=False),
        sa.Column("state", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("signature", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name="fk_ledger_checkpoints_dataset_id"),
        sa.PrimaryKeyConstraint("dataset_id", name="pk_ledger_checkpoints"),
    )


def downgrade() -> None:
    op.drop_table("ledger_checkpoints")
