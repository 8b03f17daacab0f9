"""The first tables, and the triggers that keep the ledger append-only."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

SQLITE_TRIGGERS = [
    f"CREATE TRIGGER ledger_entries_no_{verb} BEFORE {verb.upper()} ON ledger_entries "
    "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
    for verb in ("update", "delete")
]
POSTGRESQL_TRIGGERS = [
    "CREATE FUNCTION ledger_is_append_only() RETURNS trigger LANGUAGE plpgsql AS "
    "$$ BEGIN RAISE EXCEPTION 'the ledger is append-only'; END $$",
    "CREATE TRIGGER ledger_entries_no_change BEFORE UPDATE OR DELETE OR TRUNCATE ON ledger_entries "
    "FOR EACH STATEMENT EXECUTE FUNCTION ledger_is_append_only()",
    # Encoded rows are dense integers: compressing them costs time and saves nothing.
    "ALTER TABLE dataset_chunks ALTER COLUMN payload SET STORAGE EXTERNAL",
]


def upgrade() -> None:
    op.create_table(
        "principals",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=16), nullable=False),
        sa.Column("created_by", KEY, nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("disabled_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("role IN ('curator', 'analyst')", name=op.f("ck_principals_role")),
        sa.ForeignKeyConstraint(["created_by"], ["principals.id"], name=op.f("fk_principals_created_by")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_principals")),
        sa.UniqueConstraint("name", name=op.f("uq_principals_name")),
    )
    op.create_table(
        "api_keys",
        sa.Column("id", KEY, nullable=False),
        sa.Column("principal_id", KEY, nullable=False),
        sa.Column("handle", sa.String(length=16), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("label", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["principal_id"], ["principals.id"], name=op.f("fk_api_keys_principal_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_api_keys")),
        sa.UniqueConstraint("handle", name=op.f("uq_api_keys_handle")),
    )
    op.create_index(op.f("ix_api_keys_principal_id"), "api_keys", ["principal_id"], unique=False)
    op.create_table(
        "datasets",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("owner_id", KEY, nullable=False),
        sa.Column("description", sa.Text(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("domain", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("id_column", sa.String(length=128), nullable=True),
        sa.Column("accountant", sa.String(length=16), nullable=False),
        sa.Column("epsilon_units", sa.BigInteger(), nullable=False),
        sa.Column("delta_units", sa.BigInteger(), nullable=False),
        sa.Column("release_ticks", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("sealed_at", sa.BigInteger(), nullable=True),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        sa.Column("upload", sa.JSON(none_as_null=True), nullable=True),
        sa.CheckConstraint("accountant IN ('sum', 'zcdp')", name=op.f("ck_datasets_accountant")),
        sa.CheckConstraint("state IN ('draft', 'sealed', 'retired')", name=op.f("ck_datasets_state")),
        sa.ForeignKeyConstraint(["owner_id"], ["principals.id"], name=op.f("fk_datasets_owner_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_datasets")),
        sa.UniqueConstraint("name", name=op.f("uq_datasets_name")),
    )
    op.create_index(op.f("ix_datasets_owner_id"), "datasets", ["owner_id"], unique=False)
    op.create_table(
        "audit_events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("action", sa.String(length=32), nullable=False),
        sa.Column("dataset_id", KEY, nullable=True),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_audit_events_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit_events")),
    )
    op.create_index(op.f("ix_audit_events_dataset_id"), "audit_events", ["dataset_id"], unique=False)
    op.create_table(
        "dataset_chunks",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("ordinal", sa.Integer(), nullable=False),
        sa.Column("first_record", sa.BigInteger(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_dataset_chunks_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_dataset_chunks")),
        sa.UniqueConstraint("dataset_id", "ordinal", name=op.f("uq_dataset_chunks_dataset_id_ordinal")),
    )
    op.create_table(
        "grants",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("principal_id", KEY, nullable=False),
        sa.Column("epsilon_units", sa.BigInteger(), nullable=False),
        sa.Column("delta_units", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_grants_dataset_id")),
        sa.ForeignKeyConstraint(["principal_id"], ["principals.id"], name=op.f("fk_grants_principal_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_grants")),
        sa.UniqueConstraint("dataset_id", "principal_id", name=op.f("uq_grants_dataset_id_principal_id")),
    )
    op.create_index(op.f("ix_grants_principal_id"), "grants", ["principal_id"], unique=False)
    op.create_table(
        "site_sets",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("width", sa.Integer(), nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("kind IN ('coordinates', 'distances')", name=op.f("ck_site_sets_kind")),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_site_sets_dataset_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_site_sets")),
        sa.UniqueConstraint("dataset_id", "name", name=op.f("uq_site_sets_dataset_id_name")),
    )
    op.create_table(
        "accounts",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("grant_id", KEY, nullable=True),
        sa.Column("loss_total", sa.BigInteger(), nullable=False),
        sa.Column("loss_reserved", sa.BigInteger(), nullable=False),
        sa.Column("loss_spent", sa.BigInteger(), nullable=False),
        sa.Column("delta_total", sa.BigInteger(), nullable=False),
        sa.Column("delta_reserved", sa.BigInteger(), nullable=False),
        sa.Column("delta_spent", sa.BigInteger(), nullable=False),
        sa.Column("entries", sa.BigInteger(), nullable=False),
        sa.Column("head", sa.String(length=64), nullable=False),
        sa.CheckConstraint(
            "delta_reserved + delta_spent <= delta_total", name=op.f("ck_accounts_delta_within_total")
        ),
        sa.CheckConstraint(
            "delta_reserved >= 0 AND delta_spent >= 0", name=op.f("ck_accounts_delta_not_negative")
        ),
        sa.CheckConstraint(
            "loss_reserved + loss_spent <= loss_total", name=op.f("ck_accounts_loss_within_total")
        ),
        sa.CheckConstraint(
            "loss_reserved >= 0 AND loss_spent >= 0", name=op.f("ck_accounts_loss_not_negative")
        ),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_accounts_dataset_id")),
        sa.ForeignKeyConstraint(["grant_id"], ["grants.id"], name=op.f("fk_accounts_grant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_accounts")),
        sa.UniqueConstraint("grant_id", name=op.f("uq_accounts_grant_id")),
    )
    op.create_index(
        "uq_accounts_dataset",
        "accounts",
        ["dataset_id"],
        unique=True,
        sqlite_where=sa.text("grant_id IS NULL"),
        postgresql_where=sa.text("grant_id IS NULL"),
    )
    op.create_table(
        "jobs",
        sa.Column("number", KEY, nullable=False),
        sa.Column("id", sa.String(length=36), nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("principal_id", KEY, nullable=False),
        sa.Column("grant_id", KEY, nullable=False),
        sa.Column("rehearsal", sa.Boolean(), nullable=False),
        sa.Column("request", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("plan", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("plan_digest", sa.String(length=64), nullable=False),
        sa.Column("loss_units", sa.BigInteger(), nullable=False),
        sa.Column("delta_units", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("reason", sa.String(length=32), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("worker", sa.String(length=128), nullable=True),
        sa.Column("lease", sa.String(length=36), nullable=True),
        sa.Column("lease_expires_at", sa.BigInteger(), nullable=True),
        sa.Column("queued_at", sa.BigInteger(), nullable=False),
        sa.Column("claimed_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("progress", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("idempotency_key", sa.String(length=128), nullable=True),
        sa.Column("request_digest", sa.String(length=64), nullable=False),
        sa.CheckConstraint(
            "state IN ('queued', 'running', 'succeeded', 'failed', 'cancelled')", name=op.f("ck_jobs_state")
        ),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_jobs_dataset_id")),
        sa.ForeignKeyConstraint(["grant_id"], ["grants.id"], name=op.f("fk_jobs_grant_id")),
        sa.ForeignKeyConstraint(["principal_id"], ["principals.id"], name=op.f("fk_jobs_principal_id")),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_jobs_id")),
        sa.UniqueConstraint(
            "principal_id", "idempotency_key", name=op.f("uq_jobs_principal_id_idempotency_key")
        ),
    )
    op.create_index(op.f("ix_jobs_dataset_id"), "jobs", ["dataset_id"], unique=False)
    op.create_index("ix_jobs_state_number", "jobs", ["state", "number"], unique=False)
    op.create_table(
        "ledger_entries",
        sa.Column("id", KEY, nullable=False),
        sa.Column("dataset_id", KEY, nullable=False),
        sa.Column("sequence", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("grant_id", KEY, nullable=True),
        sa.Column("actor", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=36), nullable=True),
        sa.Column("loss_units", sa.BigInteger(), nullable=False),
        sa.Column("delta_units", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("previous", sa.String(length=64), nullable=False),
        sa.Column("hash", sa.String(length=64), nullable=False),
        sa.CheckConstraint(
            "kind IN ('open', 'raise', 'cap', 'reserve', 'charge', 'void')",
            name=op.f("ck_ledger_entries_kind"),
        ),
        sa.CheckConstraint(
            "loss_units >= 0 AND delta_units >= 0", name=op.f("ck_ledger_entries_not_negative")
        ),
        sa.ForeignKeyConstraint(["dataset_id"], ["datasets.id"], name=op.f("fk_ledger_entries_dataset_id")),
        sa.ForeignKeyConstraint(["grant_id"], ["grants.id"], name=op.f("fk_ledger_entries_grant_id")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_ledger_entries")),
        sa.UniqueConstraint("dataset_id", "sequence", name=op.f("uq_ledger_entries_dataset_id_sequence")),
    )
    op.create_index(op.f("ix_ledger_entries_grant_id"), "ledger_entries", ["grant_id"], unique=False)
    op.create_index(
        "uq_ledger_entries_reserved",
        "ledger_entries",
        ["job_id"],
        unique=True,
        sqlite_where=sa.text("kind = 'reserve'"),
        postgresql_where=sa.text("kind = 'reserve'"),
    )
    op.create_index(
        "uq_ledger_entries_settled",
        "ledger_entries",
        ["job_id"],
        unique=True,
        sqlite_where=sa.text("kind IN ('charge', 'void')"),
        postgresql_where=sa.text("kind IN ('charge', 'void')"),
    )
    op.create_table(
        "results",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("body", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("receipt", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_results_job_id")),
        sa.PrimaryKeyConstraint("job_id", name=op.f("pk_results")),
    )
    postgresql = op.get_bind().dialect.name == "postgresql"
    for statement in POSTGRESQL_TRIGGERS if postgresql else SQLITE_TRIGGERS:
        op.execute(statement)


def downgrade() -> None:
    op.drop_table("results")
    op.drop_index(
        "uq_ledger_entries_settled",
        table_name="ledger_entries",
        sqlite_where=sa.text("kind IN ('charge', 'void')"),
        postgresql_where=sa.text("kind IN ('charge', 'void')"),
    )
    op.drop_index(
        "uq_ledger_entries_reserved",
        table_name="ledger_entries",
        sqlite_where=sa.text("kind = 'reserve'"),
        postgresql_where=sa.text("kind = 'reserve'"),
    )
    op.drop_index(op.f("ix_ledger_entries_grant_id"), table_name="ledger_entries")
    op.drop_table("ledger_entries")
    op.drop_index("ix_jobs_state_number", table_name="jobs")
    op.drop_index(op.f("ix_jobs_dataset_id"), table_name="jobs")
    op.drop_table("jobs")
    op.drop_index(
        "uq_accounts_dataset",
        table_name="accounts",
        sqlite_where=sa.text("grant_id IS NULL"),
        postgresql_where=sa.text("grant_id IS NULL"),
    )
    op.drop_table("accounts")
    op.drop_table("site_sets")
    op.drop_index(op.f("ix_grants_principal_id"), table_name="grants")
    op.drop_table("grants")
    op.drop_table("dataset_chunks")
    op.drop_index(op.f("ix_audit_events_dataset_id"), table_name="audit_events")
    op.drop_table("audit_events")
    op.drop_index(op.f("ix_datasets_owner_id"), table_name="datasets")
    op.drop_table("datasets")
    op.drop_index(op.f("ix_api_keys_principal_id"), table_name="api_keys")
    op.drop_table("api_keys")
    op.drop_table("principals")
    if op.get_bind().dialect.name == "postgresql":
        op.execute("DROP FUNCTION ledger_is_append_only()")
