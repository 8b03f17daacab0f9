"""Measured run times name the body of the kernels that ran; those before are taken for numpy's."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.add_column(
        "timings", sa.Column("kernels", sa.String(length=16), server_default="numpy", nullable=False)
    )


def downgrade() -> None:
    op.drop_column("timings", "kernels")
