"""Requests for access: a grant, a larger one or a larger total, and what became of each."""

import sqlalchemy as sa
from alembic import op

revision = "0034"
down_revision = "0033"

_KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "access_requests",
        sa.Column("number", _KEY, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("dataset_id", _KEY, nullable=False),
        sa.Column("asked_by", _KEY, nullable=False),
        sa.Column("analyst_id", _KEY, nullable=True),
        sa.Column("period", sa.String(length=64), nullable=True),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.Column("asked", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("decided", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("decided_by", _KEY, nullable=True),
        sa.Column("decided_at", sa.BigInteger(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=False, server_default=sa.text("''")),
        sa.Column("seconded_by", _KEY, nullable=True),
        sa.Column("seconded_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint(
            "state IN ('open', 'proposed', 'granted', 'declined', 'withdrawn')",
            name=op.f("ck_access_requests_state"),
        ),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_access_requests_dataset_id")),
        *(
            sa.ForeignKeyConstraint([each], ["principals.id"], name=op.f(f"fk_access_requests_{each}"))
            for each in ("asked_by", "analyst_id", "decided_by", "seconded_by")
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_access_requests")),
        sa.UniqueConstraint("id", name=op.f("uq_access_requests_id")),
    )
    op.create_index("ix_access_requests_dataset_number", "access_requests", ["dataset_id", "number"])
    op.create_index("ix_access_requests_asked_by", "access_requests", ["asked_by", "number"])
    pending = sa.text("state IN ('open', 'proposed')")
    op.create_index(
        "ix_access_requests_pending",
        "access_requests",
        ["state"],
        sqlite_where=pending,
        postgresql_where=pending,
    )


def downgrade() -> None:
    op.drop_table("access_requests")
