"""Four roles; people with identities of providers as well as keys; sessions of either; keys with limits."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
BEFORE = "role IN ('curator', 'analyst')"
ROLES = "role IN ('curator', 'analyst', 'auditor', 'operator')"
ONE_SIGN_IN = "(key_id IS NULL) <> (identity_id IS NULL)"


def upgrade() -> None:
    _allow_roles(ROLES)
    op.create_table(
        "identities",
        sa.Column("id", KEY, nullable=False),
        sa.Column("principal_id", KEY, nullable=False),
        sa.Column("issuer", sa.String(length=255), nullable=False),
        sa.Column("subject", sa.String(length=255), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("confirmed_at", sa.BigInteger(), nullable=False),
        sa.Column("refused_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["principal_id"], ["principals.id"], name=op.f("fk_identities_principal_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_identities")),
        sa.UniqueConstraint("issuer", "subject", name=op.f("uq_identities_issuer_subject")),
    )
    op.create_index("ix_identities_principal_id", "identities", ["principal_id"])
    op.add_column("api_keys", sa.Column("datasets", sa.JSON(), nullable=True))
    op.add_column("api_keys", sa.Column("read_only", sa.Boolean(), nullable=False, server_default=sa.false()))
    owner = sa.ForeignKey("identities.id", name=op.f("fk_sessions_identity_id"))
    with op.batch_alter_table("sessions") as sessions:
        sessions.alter_column("key_id", existing_type=KEY, nullable=True)
        sessions.add_column(sa.Column("identity_id", KEY, owner, nullable=True))
        sessions.create_check_constraint(op.f("ck_sessions_one_sign_in"), ONE_SIGN_IN)
    op.create_index("ix_sessions_identity_id", "sessions", ["identity_id"])


def downgrade() -> None:
    op.execute("DELETE FROM sessions WHERE key_id IS NULL")
    op.drop_index("ix_sessions_identity_id", "sessions")
    with op.batch_alter_table("sessions") as sessions:
        sessions.drop_constraint(op.f("ck_sessions_one_sign_in"), type_="check")
        sessions.drop_constraint(op.f("fk_sessions_identity_id"), type_="foreignkey")
        sessions.drop_column("identity_id")
        sessions.alter_column("key_id", existing_type=KEY, nullable=False)
    op.drop_column("api_keys", "read_only")
    op.drop_column("api_keys", "datasets")
    op.drop_table("identities")
    _allow_roles(BEFORE)


def _allow_roles(condition: str) -> None:
    with op.batch_alter_table("principals") as principals:
        principals.drop_constraint(op.f("ck_principals_role"), type_="check")
        principals.create_check_constraint(op.f("ck_principals_role"), sa.text(condition))
