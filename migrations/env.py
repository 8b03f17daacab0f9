"""Entry point of Alembic: run revisions on the given connection, or on CAIRN_DATABASE_URL."""

from alembic import context
from sqlalchemy import Connection

import migrations
from service.operations.database import Database
from service.operations.settings import Settings
from service.operations.tables import Base


def run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=Base.metadata, compare_type=True)
    with context.begin_transaction():
        context.run_migrations()


handed = context.config.attributes.get("connection")
if handed is not None:
    run(handed)
else:
    with migrations.transaction(Database(Settings().database_address()).engine) as opened:
        run(opened)
