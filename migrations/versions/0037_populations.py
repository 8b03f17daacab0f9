"""Populations have accounts, which entries of datasets that join them change as well."""

import re

import sqlalchemy as sa
from alembic import op

revision = "0037"
down_revision = "0036"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
KINDS_BEFORE = "kind IN ('open', 'raise', 'cap', 'reserve', 'charge', 'void')"
KINDS = "kind IN ('open', 'raise', 'cap', 'reserve', 'charge', 'void', 'join')"
SOMETHING = "dataset_id IS NOT NULL OR population_id IS NOT NULL"
#: Tables with a column for the population.
MEMBERS = ("accounts", "datasets", "ledger_entries")


def upgrade() -> None:
    op.create_table(
        "populations",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("owner_id", KEY, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("accountant", sa.String(length=16), nullable=False),
        sa.Column("epsilon_units", sa.BigInteger(), nullable=False),
        sa.Column("delta_units", sa.BigInteger(), nullable=False),
        sa.Column("curators", sa.JSON(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["owner_id"], ["principals.id"], name=op.f("fk_populations_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_populations")),
        sa.UniqueConstraint("name", name=op.f("uq_populations_name")),
    )
    op.create_index(op.f("ix_populations_owner_id"), "populations", ["owner_id"])
    for table in MEMBERS:
        _add_population(table)
    op.add_column(
        "datasets",
        sa.Column("one_row_per_person", sa.Boolean(), server_default=sa.false(), nullable=False),
    )
    for column in ("person_loss_units", "person_delta_units"):
        op.add_column("ledger_entries", sa.Column(column, sa.BigInteger(), nullable=True))
    if _is_sqlite():
        check = f", CONSTRAINT ck_accounts_of_something CHECK ({SOMETHING}))"
        _make_anew("accounts", {"dataset_id INTEGER NOT NULL": "dataset_id INTEGER", r"\)$": check})
        _make_anew("ledger_entries", {re.escape(KINDS_BEFORE): KINDS})
    else:
        op.alter_column("accounts", "dataset_id", existing_type=KEY, nullable=True)
        op.create_check_constraint(op.f("ck_accounts_of_something"), "accounts", SOMETHING)
        _replace_kinds(KINDS)
    _index("uq_accounts_population", "accounts", "dataset_id IS NULL", unique=True)
    _index("ix_ledger_entries_population", "ledger_entries", "population_id IS NOT NULL", unique=False)


def downgrade() -> None:
    op.drop_index("ix_ledger_entries_population", table_name="ledger_entries")
    op.drop_index("uq_accounts_population", table_name="accounts")
    op.execute("DELETE FROM accounts WHERE dataset_id IS NULL")
    if _is_sqlite():
        check = f", CONSTRAINT ck_accounts_of_something CHECK ({SOMETHING})"
        _make_anew("accounts", {"dataset_id INTEGER": "dataset_id INTEGER NOT NULL", re.escape(check): ""})
        _make_anew("ledger_entries", {re.escape(KINDS): KINDS_BEFORE})
    else:
        op.drop_constraint(op.f("ck_accounts_of_something"), "accounts")
        op.alter_column("accounts", "dataset_id", existing_type=KEY, nullable=False)
        _replace_kinds(KINDS_BEFORE)
    for column in ("person_loss_units", "person_delta_units"):
        op.drop_column("ledger_entries", column)
    op.drop_column("datasets", "one_row_per_person")
    for table in MEMBERS:
        _drop_population(table)
    op.drop_table("populations")


def _is_sqlite() -> bool:
    return bool(op.get_bind().dialect.name == "sqlite")


def _reference(table: str) -> str:
    return f", CONSTRAINT fk_{table}_population_id FOREIGN KEY(population_id) REFERENCES populations (id)"


def _add_population(table: str) -> None:
    op.add_column(table, sa.Column("population_id", KEY, nullable=True))
    if _is_sqlite():
        _make_anew(table, {r"\)$": f"{_reference(table)})"})
    else:
        name = op.f(f"fk_{table}_population_id")
        op.create_foreign_key(name, table, "populations", ["population_id"], ["id"])


def _drop_population(table: str) -> None:
    if _is_sqlite():
        _make_anew(table, {re.escape(_reference(table)): ""})
    op.drop_column(table, "population_id")


def _replace_kinds(kinds: str) -> None:
    op.drop_constraint(op.f("ck_ledger_entries_kind"), "ledger_entries")
    op.create_check_constraint(op.f("ck_ledger_entries_kind"), "ledger_entries", kinds)


def _make_anew(table: str, changes: dict[str, str]) -> None:
    """SQLite alters no constraint: make a table anew, from its own description with some changes."""
    bind = op.get_bind()
    described = sa.text(
        "SELECT sql FROM sqlite_master WHERE tbl_name = :table AND type = :type AND sql <> ''"
    )
    (sql,) = bind.scalars(described, {"table": table, "type": "table"})
    others = [bind.scalars(described, {"table": table, "type": kind}).all() for kind in ("index", "trigger")]
    for old, new in {rf'^CREATE TABLE "?{table}"?': f"CREATE TABLE new_{table}", **changes}.items():
        sql, times = re.subn(old, new, sql.strip())
        if times != 1:
            raise RuntimeError(f"the table {table} is not as expected: {old}")
    op.execute(sql)
    op.execute(f"INSERT INTO new_{table} SELECT * FROM {table}")
    op.execute(f"DROP TABLE {table}")
    op.execute(f"ALTER TABLE new_{table} RENAME TO {table}")
    for statement in (each for found in others for each in found):
        op.execute(statement)


def _index(name: str, table: str, condition: str, *, unique: bool) -> None:
    where = sa.text(condition)
    op.create_index(name, table, ["population_id"], unique=unique, sqlite_where=where, postgresql_where=where)
