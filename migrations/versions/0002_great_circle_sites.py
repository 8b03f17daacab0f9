"""Sites on the globe: sets of sites may hold latitudes and longitudes."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BEFORE = "kind IN ('coordinates', 'distances')"
AFTER = "kind IN ('coordinates', 'great-circle', 'distances')"


def upgrade() -> None:
    _replace_check(BEFORE, AFTER)


def downgrade() -> None:
    # The older tables have no word for them; they are public, and can be stored again.
    op.execute("DELETE FROM site_sets WHERE kind = 'great-circle'")
    _replace_check(AFTER, BEFORE)


def _replace_check(old: str, new: str) -> None:
    """On SQLite the table is made anew, from this description: constraints cannot be read off it."""
    table = sa.Table(
        "site_sets",
        sa.MetaData(),
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(old, name=op.f("ck_site_sets_kind")),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_site_sets_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site_sets")),
        sa.UniqueConstraint("dataset_id", "name", name=op.f("uq_site_sets_dataset_id_name")),
    )
    with op.batch_alter_table("site_sets", copy_from=table) as batch:
        batch.drop_constraint(op.f("ck_site_sets_kind"), type_="check")
        batch.create_check_constraint(op.f("ck_site_sets_kind"), sa.text(new))
