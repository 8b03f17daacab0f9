"""Accounts may be of a period of a dataset, and entries of the ledger name the periods that they change."""

from collections.abc import Sequence

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

CHECKS = {
    "loss_not_negative": "loss_reserved >= 0 AND loss_spent >= 0",
    "delta_not_negative": "delta_reserved >= 0 AND delta_spent >= 0",
    "loss_within_total": "loss_reserved + loss_spent <= loss_total",
    "delta_within_total": "delta_reserved + delta_spent <= delta_total",
}
WITHOUT_GRANT = sa.text("grant_id IS NULL")


def upgrade() -> None:
    op.add_column("ledger_entries", sa.Column("periods", sa.JSON(none_as_null=True), nullable=True))
    op.add_column(
        "accounts", sa.Column("period", sa.String(length=64), server_default=sa.text("''"), nullable=False)
    )
    op.drop_index("uq_accounts_dataset", table_name="accounts")
    _one_account_for(["grant_id", "period"], in_place_of=["grant_id"])
    _index("uq_accounts_period", ["dataset_id", "period"])


def downgrade() -> None:
    op.drop_index("uq_accounts_period", table_name="accounts")
    _one_account_for(["grant_id"], in_place_of=["grant_id", "period"])
    op.drop_column("accounts", "period")
    _index("uq_accounts_dataset", ["dataset_id"])
    op.drop_column("ledger_entries", "periods")


def _one_account_for(columns: Sequence[str], *, in_place_of: Sequence[str]) -> None:
    """Make these columns unique; SQLite, which changes no constraints, makes the table again."""
    old, new = (op.f(f"uq_accounts_{'_'.join(names)}") for names in (in_place_of, columns))
    named = ((check, op.f(f"ck_accounts_{name}")) for name, check in CHECKS.items())
    checks = tuple(sa.CheckConstraint(sa.text(check), name) for check, name in named)
    sqlite = op.get_bind().dialect.name == "sqlite"
    with op.batch_alter_table("accounts", table_args=checks if sqlite else ()) as accounts:
        accounts.drop_constraint(old, type_="unique")
        accounts.create_unique_constraint(new, list(columns))


def _index(name: str, columns: Sequence[str]) -> None:
    op.create_index(
        name,
        "accounts",
        list(columns),
        unique=True,
        sqlite_where=WITHOUT_GRANT,
        postgresql_where=WITHOUT_GRANT,
    )
