"""Chain audit events; those that are there are chained with the next one of the same dataset."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INDEX = "ix_audit_events_dataset_sequence"


def upgrade() -> None:
    op.create_table(
        "audit_chains",
        sa.Column("id", KEY, autoincrement=False, nullable=False),
        sa.Column("events", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_chains")),
    )
    op.add_column("audit_events", sa.Column("sequence", sa.BigInteger(), nullable=True))
    op.add_column("audit_events", sa.Column("previous", sa.String(length=64), nullable=True))
    op.add_column("audit_events", sa.Column("hash", sa.String(length=64), nullable=True))
    op.create_index(INDEX, "audit_events", ["dataset_id", "sequence"])


def downgrade() -> None:
    op.drop_index(INDEX, table_name="audit_events")
    for name in ("hash", "previous", "sequence"):
        op.drop_column("audit_events", name)
    op.drop_table("audit_chains")
