"""Jobs of curators have no grant; datasets can have working bounds, narrower than the declared ones."""

import re
from collections.abc import Callable

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
CHECK = "ck_jobs_granted_or_own"
#: A job without a grant is the dataset's owner's: nobody else can leave their cap aside.
CONDITION = "grant_id IS NOT NULL OR principal_id = owner_id"
CLAUSE = f", CONSTRAINT {CHECK} CHECK ({CONDITION}))"


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        op.alter_column("jobs", "grant_id", existing_type=KEY, nullable=True)
        op.create_check_constraint(op.f(CHECK), "jobs", CONDITION)
    else:
        _make_anew(lambda sql: _once(sql, "grant_id INTEGER NOT NULL,", "grant_id INTEGER,")[:-1] + CLAUSE)
    op.create_table(
        "working_bounds",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("domain", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("columns", sa.JSON(), nullable=False),
        sa.Column("set_by", sa.String(length=64), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.Column("ended_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_working_bounds_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_working_bounds")),
    )
    op.create_index("ix_working_bounds_digest", "working_bounds", ["dataset_id", "digest"])
    now = sa.text("ended_at IS NULL")
    op.create_index(
        "uq_working_bounds_now",
        "working_bounds",
        ["dataset_id"],
        unique=True,
        sqlite_where=now,
        postgresql_where=now,
    )


def downgrade() -> None:
    op.drop_table("working_bounds")
    if op.get_bind().dialect.name == "postgresql":
        op.drop_constraint(op.f(CHECK), "jobs")
        op.alter_column("jobs", "grant_id", existing_type=KEY, nullable=False)
    else:
        _make_anew(
            lambda sql: _once(_once(sql, CLAUSE, ")"), "grant_id INTEGER,", "grant_id INTEGER NOT NULL,")
        )


def _make_anew(change: Callable[[str], str]) -> None:
    """SQLite alters no constraint: make the table anew, from its own description with one change."""
    bind = op.get_bind()
    described = sa.text(
        "SELECT sql FROM sqlite_master WHERE tbl_name = 'jobs' AND type = :type AND sql <> ''"
    )
    table = bind.scalars(described, {"type": "table"}).one()
    indexes = bind.scalars(described, {"type": "index"}).all()
    op.execute(re.sub(r'^CREATE TABLE "?jobs"?', "CREATE TABLE new_jobs", change(table)))
    op.execute("INSERT INTO new_jobs SELECT * FROM jobs")
    op.execute("DROP TABLE jobs")
    op.execute("ALTER TABLE new_jobs RENAME TO jobs")
    for index in indexes:
        op.execute(index)


def _once(sql: str, old: str, new: str) -> str:
    if sql.count(old) != 1:
        raise RuntimeError(f"the table of jobs is not as expected: {old}")
    return sql.replace(old, new)
