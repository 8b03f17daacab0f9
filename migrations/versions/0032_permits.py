"""A grant has a purpose, the number of a permit, and an end, after which results are readable or not."""

import sqlalchemy as sa
from alembic import op

revision = "0032"
down_revision = "0031"


def upgrade() -> None:
    op.add_column("grants", sa.Column("purpose", sa.Text(), nullable=False, server_default=sa.text("''")))
    op.add_column(
        "grants", sa.Column("permit", sa.String(length=128), nullable=False, server_default=sa.text("''"))
    )
    op.add_column("grants", sa.Column("ends_at", sa.BigInteger(), nullable=True))
    op.add_column(
        "grants", sa.Column("keeps_results", sa.Boolean(), nullable=False, server_default=sa.true())
    )


def downgrade() -> None:
    for column in ("keeps_results", "ends_at", "permit", "purpose"):
        op.drop_column("grants", column)
