"""Datasets may name any accountant of the registry: the service checks the name, not the table."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

STATES = "state IN ('draft', 'sealed', 'retired')"
ACCOUNTANTS = "accountant IN ('sum', 'zcdp')"


def upgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _remake(state=STATES)
    else:
        op.drop_constraint(op.f("ck_datasets_accountant"), "datasets", type_="check")


def downgrade() -> None:
    if op.get_bind().dialect.name == "sqlite":
        _remake(state=STATES, accountant=ACCOUNTANTS)
    else:
        op.create_check_constraint(op.f("ck_datasets_accountant"), "datasets", sa.text(ACCOUNTANTS))


def _remake(**checks: str) -> None:
    """SQLite changes no constraints: make the table again with these checks; all else is read off it."""
    named = (sa.CheckConstraint(check, name=op.f(f"ck_datasets_{name}")) for name, check in checks.items())
    with op.batch_alter_table("datasets", recreate="always", table_args=tuple(named)):
        pass
