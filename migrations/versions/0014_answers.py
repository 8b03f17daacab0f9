"""Answers for every k of jobs that left k open; jobs and ledger entries counted for operators."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"


def upgrade() -> None:
    op.create_table(
        "answers",
        sa.Column("job_id", sa.String(length=36), nullable=False),
        sa.Column("k", sa.Integer(), nullable=False),
        sa.Column("payload", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], name=op.f("fk_answers_job_id")),
        sa.PrimaryKeyConstraint("job_id", "k", name=op.f("pk_answers")),
    )
    op.add_column("accounts", sa.Column("entries_by_kind", sa.JSON(none_as_null=True), nullable=True))
    _count()


def _count() -> None:
    """Count what there is, once."""
    connection = op.get_bind()
    kinds: dict[int, dict[str, int]] = {}
    for dataset, kind, times in connection.execute(
        sa.text("SELECT dataset_id, kind, count(*) FROM ledger_entries GROUP BY dataset_id, kind")
    ):
        kinds.setdefault(dataset, {})[kind] = times
    for dataset, found in kinds.items():
        connection.execute(
            sa.text(
                "UPDATE accounts SET entries_by_kind = :found "
                "WHERE dataset_id = :dataset AND grant_id IS NULL"
            ).bindparams(sa.bindparam("found", type_=sa.JSON())),
            {"found": found, "dataset": dataset},
        )
    connection.execute(
        sa.text(
            "INSERT INTO counters (name, label, value) "
            "SELECT 'jobs', state || ' ' || dataset_id, count(*) FROM jobs "
            "WHERE state NOT IN ('queued', 'running') GROUP BY state, dataset_id"
        )
    )


def downgrade() -> None:
    op.execute("DELETE FROM counters WHERE name = 'jobs'")
    op.drop_column("accounts", "entries_by_kind")
    op.drop_table("answers")
