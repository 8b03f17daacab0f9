"""Keys of a person may end some days after their last sign-in by a provider; identities may be unused."""

import sqlalchemy as sa
from alembic import op

revision = "0031"
down_revision = "0030"


def upgrade() -> None:
    with op.batch_alter_table("identities") as identities:
        identities.alter_column("confirmed_at", existing_type=sa.BigInteger(), nullable=True)
    op.add_column("principals", sa.Column("keys_end_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("principals", "keys_end_at")
    op.execute("UPDATE identities SET confirmed_at = created_at WHERE confirmed_at IS NULL")
    with op.batch_alter_table("identities") as identities:
        identities.alter_column("confirmed_at", existing_type=sa.BigInteger(), nullable=False)
