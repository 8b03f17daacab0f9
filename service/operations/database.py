"""The database behind one engine: short read and write sessions, the same rules on SQLite and PostgreSQL.

A write session on SQLite begins with BEGIN IMMEDIATE, so it holds the write lock before it reads and
never has to upgrade; on PostgreSQL the functions that need it lock rows with SELECT ... FOR UPDATE.
A read session sees one snapshot of the database, however many queries it makes. Every wait has a limit: for
a lock, for a server that does not answer, and on the server for a client that is idle in a transaction.
"""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, Executable, Row, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import DBAPIError, InvalidatePoolError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from service.operations import audit_chain

Found = TypeVar("Found")

WRITE = "cairn_write"
#: Longest wait of a writer for a lock; the request then fails with 503.
LOCK_SECONDS = 30.0
#: Longest idle time in a transaction before PostgreSQL ends the session and frees its locks.
SILENT_SECONDS = 60.0
#: How long, and how often, a worker in the middle of a job retries a database that does not answer.
PATIENCE_SECONDS = 60.0
_PAUSE_SECONDS = 0.5
#: Bytes that SQLite's write-ahead log keeps on disk once what it holds is in the database file. An upload
#: makes it as large as its rows; a transaction that finds all of it in the file cuts it to this.
_KEPT_LOG_BYTES = 16 << 20
#: Longest wait for readers and writers when the log is emptied.
_EMPTYING_SECONDS = 1.0
#: A connection that was idle for longer is tried before it is used: the server may have gone meanwhile.
_TRUSTED_SECONDS = 1.0
#: Timeouts of libpq over TCP: seconds, and milliseconds for the last.
_CONNECT = {
    "connect_timeout": 10,
    "keepalives_idle": 20,
    "keepalives_interval": 5,
    "keepalives_count": 4,
    "tcp_user_timeout": 40_000,
}


class Database:
    """A pool of connections to one database."""

    def __init__(self, url: str, *, pool: int = 10):
        address = make_url(url)
        self.url = url
        self.is_sqlite = address.get_backend_name() == "sqlite"
        if self.is_sqlite:
            self.engine = _sqlite_engine(url, pool)
        else:
            self.engine = _postgres_engine(url, pool)
        self._read_engine = self._autocommit_engine = self.engine
        if not self.is_sqlite:  # SQLite's readers see one moment anyway, and begin at no cost
            self._read_engine = self.engine.execution_options(
                isolation_level="REPEATABLE READ", postgresql_readonly=True
            )
            self._autocommit_engine = self.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._write_engine = self.engine.execution_options(**{WRITE: True})

    def find_row(self, query: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
        """Return the only row that a query finds, or None, without the round trips of a transaction.

        Most requests begin with this. One that meets a connection whose server has died takes another.
        """
        try:
            return self._find_row(query, parameters)
        except DBAPIError as error:
            if not error.connection_invalidated:
                raise
            return self._find_row(query, parameters)

    def _find_row(self, query: Executable, parameters: Mapping[str, Any]) -> Row[Any] | None:
        with self._autocommit_engine.connect() as connection:
            return connection.execute(query, parameters).one_or_none()

    @contextmanager
    def read(self) -> Iterator[Session]:
        """Open a read session on one snapshot of the database; changes are never kept."""
        with Session(self._read_engine, expire_on_commit=False) as session:
            yield session
            if not self.is_sqlite:
                # The transaction is read-only, so this keeps nothing. A ROLLBACK would make the driver forget
                # every statement it has prepared on this connection.
                session.expunge_all()
                session.commit()

    def patiently(self, act: Callable[[Session], Found], *, write: bool = False) -> Found:
        """Return what `act` finds in a session; retry for a while when the database is unavailable.

        For workers in the middle of a job, which is charged and gets no second run. An outage reveals nothing
        about rows, and waiting changes nothing that is released. A write may have been committed before it
        is tried again.
        """
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                with self.write() if write else self.read() as session:
                    return act(session)
            except (DBAPIError, PoolTimeout):
                if time.monotonic() > deadline:
                    raise
                time.sleep(_PAUSE_SECONDS)

    @contextmanager
    def write(self) -> Iterator[Session]:
        """Open a session for one transaction: committed at the end, rolled back by an exception.

        What was recorded in the audit log meanwhile is appended to its chains last.
        """
        with Session(self._write_engine, expire_on_commit=False) as session, session.begin():
            if self.is_sqlite:
                session.connection()  # takes the write lock now, before anything is read
            yield session
            audit_chain.append_recorded(session)

    def empty_log(self) -> None:
        """Move what SQLite's write-ahead log holds into the database file, and empty the log.

        Done by the transactions that follow where readers or writers are in the way for too long.
        """
        if not self.is_sqlite:
            return
        # Whoever asks has committed what they came for: that must not fail now.
        with suppress(sqlite3.OperationalError, PoolTimeout), closing(self.engine.raw_connection()) as opened:
            cursor = opened.cursor()
            cursor.execute(f"PRAGMA busy_timeout = {_EMPTYING_SECONDS * 1000:.0f}")
            try:
                cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            finally:
                cursor.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}")
                cursor.close()

    def dispose(self) -> None:
        """Close every connection."""
        self.engine.dispose()


def _sqlite_engine(url: str, pool: int) -> Engine:
    path = make_url(url).database
    if not path or path == ":memory:":
        raise ValueError(
            "an in-memory SQLite database cannot be shared by processes; name a file: sqlite:///path"
        )
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    engine = create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        connect_args={"timeout": LOCK_SECONDS},
    )

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not begin transactions by itself
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout = {LOCK_SECONDS * 1000:.0f}")
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute(f"PRAGMA journal_size_limit = {_KEPT_LOG_BYTES}")
        # FULL: a charge must survive a power cut before the first row is read.
        cursor.execute("PRAGMA synchronous = FULL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        write = connection.get_execution_options().get(WRITE, False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine


def _postgres_engine(url: str, pool: int) -> Engine:
    engine = create_engine(
        url,
        pool_size=pool,
        max_overflow=0,
        connect_args=_CONNECT,
    )

    @event.listens_for(engine, "checkin")
    def note(_connection: Any, record: Any) -> None:
        record.info["used"] = time.monotonic()

    @event.listens_for(engine, "checkout")
    def check(connection: Any, record: Any, _proxy: Any) -> None:
        if time.monotonic() - record.info.get("used", 0.0) < _TRUSTED_SECONDS:
            return
        try:
            engine.dialect.do_ping(connection)
        except engine.dialect.loaded_dbapi.Error:
            raise InvalidatePoolError from None

    @event.listens_for(engine, "connect")
    def set_up(connection: Any, _record: Any) -> None:
        connection.autocommit = True  # else the settings would be rolled back with the first transaction
        connection.execute(
            f"SET lock_timeout = {LOCK_SECONDS * 1000:.0f};"
            f"SET idle_in_transaction_session_timeout = {SILENT_SECONDS * 1000:.0f};"
            # A charge must survive a crash before the first row is read, whatever the server's default.
            "SELECT set_config('synchronous_commit', 'on', false)"
            " WHERE current_setting('synchronous_commit') = 'off'"
        )
        connection.autocommit = False

    return engine
