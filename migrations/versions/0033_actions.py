"""Events of the audit log are found by their action: readings are many, and acts are read without them."""

from alembic import op

revision = "0033"
down_revision = "0032"


def upgrade() -> None:
    op.create_index("ix_audit_events_action", "audit_events", ["action", "dataset_id"])


def downgrade() -> None:
    op.drop_index("ix_audit_events_action", "audit_events")
