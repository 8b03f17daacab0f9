"""The database's history as Alembic revisions, and the functions that apply it.

Developers make a revision with `alembic revision --autogenerate` (alembic.ini, script.py.mako).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, MetaData, text

from service.operations.database import WRITE

__all__ = ["downgrade", "drift", "head", "is_current", "is_outdated", "transaction", "upgrade"]


#: Names the advisory lock of migrations on PostgreSQL.
_LOCK = 0x6361_6972_6E


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def upgrade(engine: Engine, revision: str = "head") -> None:
    """Bring the database to `revision`, in one transaction; waits while another process does."""
    with transaction(engine) as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        command.upgrade(_config(connection), revision)


def downgrade(engine: Engine, revision: str) -> None:
    """Take the database back to `revision`, in one transaction."""
    with transaction(engine) as connection:
        command.downgrade(_config(connection), revision)


@contextmanager
def transaction(engine: Engine) -> Iterator[Connection]:
    """A transaction in which SQLite lets tables be made anew: foreign keys are checked at its end."""
    with engine.execution_options(**{WRITE: True}).connect() as connection:
        if connection.dialect.name != "sqlite":
            with connection.begin():
                yield connection
            return
        raw = connection.connection.driver_connection
        assert raw is not None
        raw.execute("PRAGMA foreign_keys = OFF")  # has no effect inside a transaction
        try:
            with connection.begin():
                yield connection
                if connection.execute(text("PRAGMA foreign_key_check")).first() is not None:
                    raise RuntimeError("the migration would leave rows that refer to nothing")
        finally:
            raw.execute("PRAGMA foreign_keys = ON")


@cache  # readiness is asked for often, and every revision is read to answer
def head() -> str:
    """The newest revision."""
    newest = ScriptDirectory.from_config(_config()).get_current_head()
    assert newest is not None
    return newest


@cache
def _known() -> frozenset[str]:
    return frozenset(each.revision for each in ScriptDirectory.from_config(_config()).walk_revisions())


def is_current(connection: Connection) -> bool:
    """Return True when the database is at the newest revision."""
    return _revision(connection) == head()


def is_outdated(connection: Connection) -> bool:
    """Return True when the database must be upgraded before this version can use it.

    A revision that this version does not know was made by a newer one, whose migrations leave tables that
    this version can still use: so both run side by side during an upgrade.
    """
    revision = _revision(connection)
    return revision is None or (revision in _known() and revision != head())


def _revision(connection: Connection) -> str | None:
    return MigrationContext.configure(connection).get_current_revision()


def drift(connection: Connection, metadata: MetaData) -> list[object]:
    """Differences between the database and the tables in code; empty when there are none."""
    context = MigrationContext.configure(
        connection, opts={"compare_type": True, "compare_server_default": True}
    )
    return list(compare_metadata(context, metadata))
