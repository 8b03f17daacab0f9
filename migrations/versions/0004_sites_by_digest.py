"""Sites are named by their digest: sets sent with a job have no name, and planning needs no payload."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KINDS = "kind IN ('coordinates', 'great-circle', 'distances')"


def upgrade() -> None:
    with op.batch_alter_table("site_sets", copy_from=_described(nameless=False)) as table:
        table.alter_column("name", existing_type=sa.String(length=64), nullable=True)
        table.add_column(sa.Column("reach", sa.Integer(), nullable=True))
    op.create_index("ix_site_sets_digest", "site_sets", ["dataset_id", "digest"])


def downgrade() -> None:
    # Jobs that were sent with such sites cannot run any more; nothing else names them.
    op.execute("DELETE FROM site_sets WHERE name IS NULL")
    op.drop_index("ix_site_sets_digest", table_name="site_sets")
    with op.batch_alter_table("site_sets", copy_from=_described(nameless=True)) as table:
        table.drop_column("reach")
        table.alter_column("name", existing_type=sa.String(length=64), nullable=False)


def _described(*, nameless: bool) -> sa.Table:
    """On SQLite the table is made anew, from this description: constraints cannot be read off it."""
    return sa.Table(
        "site_sets",
        sa.MetaData(),
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=nameless),
        sa.Column("kind", sa.String(length=16), nullable=False),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("count", "width")),
        sa.Column("digest", sa.String(length=64), nullable=False),
        *((sa.Column("reach", sa.Integer(), nullable=True),) if nameless else ()),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(KINDS, name=op.f("ck_site_sets_kind")),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_site_sets_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site_sets")),
        sa.UniqueConstraint("dataset_id", "name", name=op.f("uq_site_sets_dataset_id_name")),
    )
